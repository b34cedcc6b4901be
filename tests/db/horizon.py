"""
Wait until changes that are committed can be followed.

PostgreSQL tells them apart by transactions, of which all databases of a server have one
count: what a test in another process does in a database of its own withholds the changes of
this one until it ends, which is what the package promises and not what these tests are about.
"""

import time

from django.db import connections

DEADLINE_SECONDS = 100.0

_WRITERS_ELSEWHERE = (
    "SELECT pid, backend_xid::text FROM pg_stat_activity "
    "WHERE backend_xid IS NOT NULL AND datname <> current_database()"
)


def await_other_databases(using: str = "default") -> None:
    """Return when every transaction that now writes to another database of the server has ended."""
    if connections[using].vendor != "postgresql":
        return
    waited_for = _writers_elsewhere(using)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while waited_for & _writers_elsewhere(using):
        assert time.monotonic() < deadline, "a writer of another database did not end"
        time.sleep(0.02)


def _writers_elsewhere(using: str) -> set[tuple[int, str]]:
    with connections[using].cursor() as cursor:
        # Inside a transaction the view would stand still.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(_WRITERS_ELSEWHERE)
        return set(cursor.fetchall())
