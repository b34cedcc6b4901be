"""
Reading a database server's own time without touching the caller's transaction.

A failing query inside a transaction makes PostgreSQL refuse the rest of it, and a query
as its first statement fixes the snapshot at REPEATABLE READ. So inside a transaction the
time is asked for on a second connection that is closed right away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import connections

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

# now() stands still within a transaction; clock_timestamp() does not.
_SERVER_TIME_SQL: Final = {
    "postgresql": "SELECT extract(epoch FROM clock_timestamp()) * 1000",
}


def has_server_time(using: str) -> bool:
    """Tell whether a server with a clock of its own stands behind the alias."""
    return connections[using].vendor in _SERVER_TIME_SQL


def read_server_time_ms(using: str) -> float:
    """
    Ask the server of an alias for its time, in milliseconds since the Unix epoch.

    Raises:
        django.db.Error: the server cannot be reached or refuses.
    """
    connection = connections[using]
    if connection.in_atomic_block or not connection.get_autocommit():
        return _read_and_close(connection.copy())
    if connection.connection is None:
        # This thread has not used the database; leave no open connection behind in it.
        return _read_and_close(connection)
    return _read(connection)


def _read_and_close(connection: BaseDatabaseWrapper) -> float:
    try:
        return _read(connection)
    finally:
        connection.close()


def _read(connection: BaseDatabaseWrapper) -> float:
    with connection.cursor() as cursor:
        cursor.execute(_SERVER_TIME_SQL[connection.vendor])
        (milliseconds,) = cursor.fetchone()
    return float(milliseconds)
