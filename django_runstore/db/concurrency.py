"""
How many live runs share a concurrency key, counted from the rows themselves.

Nothing is kept that could drift: a run counts while it is running or claimed, so one whose
process was killed holds its place until it is taken over, and gives it up with that write.
"""

import hashlib
from collections.abc import Collection, Mapping
from typing import Final

from django.db import connections
from django.db.models.expressions import RawSQL

from django_runstore.db.backends import has_one_writer

# Literals and not parameters, for which no partial index is used.
_LIVE: Final = """
    SELECT concurrency_key, concurrency_limit FROM runstore_run
     WHERE status = 'running' AND concurrency_key <> ''
    UNION ALL
    SELECT concurrency_key, concurrency_limit FROM runstore_run
     WHERE claim_host_id IS NOT NULL AND status <> 'running' AND concurrency_key <> ''
"""

FULL_KEYS: Final = RawSQL(  # noqa: S611 - nothing but constants
    f"SELECT concurrency_key FROM ({_LIVE}) AS live"  # noqa: S608 - nothing but constants
    " GROUP BY concurrency_key HAVING COUNT(*) >= MAX(concurrency_limit)",
    [],
)
"""
The keys whose live runs are as many as their own limits allow, for a claim to pass over.

An estimate, since limits are each run's own and may have been changed by a deploy; the count
under the lock decides.
"""


def lock_keys(using: str, keys: Collection[str]) -> frozenset[str]:
    """
    Take the locks under which live runs of these keys are counted, until the transaction ends.

    Never waits, so that no order of keys can deadlock: a key that somebody else is claiming
    under is left out, and so are all where the isolation level is stricter than READ
    COMMITTED, under which the count would not see what was committed a moment ago.

    Returns:
        The keys that may be counted and claimed under.
    """
    if has_one_writer(using):
        return frozenset(keys)
    numbers = {_lock_number(key): key for key in sorted(keys)}
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT number, pg_try_advisory_xact_lock(number) FROM unnest(%s::bigint[]) AS number"
            " WHERE current_setting('transaction_isolation') = 'read committed'",
            [sorted(numbers)],
        )
        return frozenset(numbers[number] for number, is_locked in cursor.fetchall() if is_locked)


def live_runs(using: str, keys: Collection[str]) -> Mapping[str, int]:
    """Count the live runs of these keys; keys without any are left out."""
    if not keys:
        return {}
    chosen = sorted(keys)
    places = ", ".join(["%s"] * len(chosen))
    with connections[using].cursor() as cursor:
        cursor.execute(
            f"SELECT concurrency_key, COUNT(*) FROM ({_LIVE}) AS live"  # noqa: S608 - constants
            f" WHERE concurrency_key IN ({places}) GROUP BY concurrency_key",
            chosen,
        )
        return dict(cursor.fetchall())


def _lock_number(key: str) -> int:
    """Give a key's number among the advisory locks of the database."""
    digest = hashlib.sha256(f"django-runstore concurrency key {key}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
