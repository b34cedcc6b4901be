"""Stamp every run and tombstone anew: for a database that is no longer the one it was."""

from collections.abc import Sequence
from typing import Any, Final

from django.db import connections

from django_runstore.db.backends import has_one_writer
from django_runstore.db.lock_wait import limit_lock_wait

# Taken whole and before any row: writers that hold some rows and want others would otherwise
# meet an update of all of them in the middle.
_LOCK: Final = "LOCK TABLE runstore_run, runstore_run_tombstone IN SHARE ROW EXCLUSIVE MODE"
# The sequence may lag where only rows were restored.
_CATCH_UP: Final = """
SELECT setval('runstore_revision', 1 + greatest(
    (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM runstore_revision),
    (SELECT max(revision) FROM runstore_run),
    (SELECT max(revision) FROM runstore_run_tombstone)), false)
"""
# The trigger puts number and transaction in place of whatever is written here.
_STAMP_RUNS: Final = "UPDATE runstore_run SET revision = 0"
_STAMP_TOMBSTONES: Final = """
UPDATE runstore_run_tombstone
   SET revision = nextval('runstore_revision'), revision_xid = pg_current_xact_id()::text::bigint
"""
_HIGHEST: Final = """
SELECT max(coalesce((SELECT revision FROM runstore_store_identity WHERE id = 1), 0),
           coalesce((SELECT max(revision) FROM runstore_run), 0),
           coalesce((SELECT max(revision) FROM runstore_run_tombstone), 0))
"""
# Spec: run-store 2.3, the order of the baseline. No trigger fires: none names these columns.
_NUMBER_RUNS: Final = """
UPDATE runstore_run SET revision = %s + ranked.place, revision_xid = 0
  FROM (SELECT run_id, row_number() OVER (ORDER BY created_at_ms, run_id) AS place
          FROM runstore_run) AS ranked
 WHERE ranked.run_id = runstore_run.run_id
"""
_NUMBER_TOMBSTONES: Final = """
UPDATE runstore_run_tombstone SET revision = %s + ranked.place
  FROM (SELECT run_id, row_number() OVER (ORDER BY revision) AS place
          FROM runstore_run_tombstone) AS ranked
 WHERE ranked.run_id = runstore_run_tombstone.run_id
"""
_IDENTIFY: Final = """
INSERT INTO runstore_store_identity (id, identity{column}) VALUES (1, %s{value})
ON CONFLICT (id) DO UPDATE SET identity = excluded.identity{update}
"""


def restamp(using: str, identity: str, lock_timeout_ms: int) -> tuple[int, int]:
    """
    Give the database ``identity`` and every run and tombstone a new revision.

    To be called in a write transaction. Makes the identity's row where it is missing.

    Args:
        lock_timeout_ms: How long to wait for writers to end; on PostgreSQL those that come
            later wait meanwhile.

    Returns:
        How many runs and how many tombstones there are.
    """
    if has_one_writer(using):
        return _restamp_counted(using, identity)
    limit_lock_wait(using, lock_timeout_ms)
    _execute(using, _LOCK)
    _execute(using, _IDENTIFY.format(column="", value="", update=""), [identity])
    _execute(using, _CATCH_UP)
    return _execute(using, _STAMP_RUNS), _execute(using, _STAMP_TOMBSTONES)


def _restamp_counted(using: str, identity: str) -> tuple[int, int]:
    with connections[using].cursor() as cursor:
        cursor.execute(_HIGHEST)
        (highest,) = cursor.fetchone()
    runs = _execute(using, _NUMBER_RUNS, [highest])
    tombstones = _execute(using, _NUMBER_TOMBSTONES, [highest + runs])
    identify = _IDENTIFY.format(
        column=", revision", value=", %s", update=", revision = excluded.revision"
    )
    _execute(using, identify, [identity, highest + runs + tombstones])
    return runs, tombstones


def _execute(using: str, statement: str, parameters: Sequence[Any] = ()) -> int:
    with connections[using].cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)
