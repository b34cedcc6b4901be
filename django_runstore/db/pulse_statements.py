"""
The group heartbeat: one statement that beats for many runs and waits for none.

Written as SQL because the ORM has no way to update the rows that could be locked and
report the rest in one statement.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from django.db import connections

from django_runstore.db.backends import has_one_writer
from django_runstore.owners import OwnerId

Beat: TypeAlias = Literal["beaten", "held", "lost", "missing"]

# SKIP LOCKED passes over a row that an open transaction holds: one such row must not
# stop the beat of the others. Such a row is "held" when its last committed version is
# still the caller's: neither renewed nor refused.
_SKIPPING: Final = """
WITH wanted (run_id, fence) AS (
    SELECT * FROM unnest(%(run_ids)s::text[], %(fences)s::bigint[])
), free AS (
    SELECT run.run_id
      FROM runstore_run AS run JOIN wanted ON wanted.run_id = run.run_id
     WHERE run.owner_host_id = %(host_id)s AND run.owner_pid = %(pid)s
       AND run.owner_nonce = %(nonce)s AND run.owner_fence = wanted.fence
       FOR NO KEY UPDATE OF run SKIP LOCKED
), beaten AS (
    UPDATE runstore_run AS run
       SET heartbeat_at_ms = GREATEST(run.heartbeat_at_ms, %(now_ms)s)
      FROM free WHERE run.run_id = free.run_id
    RETURNING run.run_id
)
SELECT wanted.run_id,
       CASE WHEN beaten.run_id IS NOT NULL THEN 'beaten'
            WHEN run.run_id IS NULL THEN 'missing'
            WHEN run.owner_host_id = %(host_id)s AND run.owner_pid = %(pid)s
             AND run.owner_nonce = %(nonce)s AND run.owner_fence = wanted.fence THEN 'held'
            ELSE 'lost' END
  FROM wanted
  LEFT JOIN beaten ON beaten.run_id = wanted.run_id
  LEFT JOIN runstore_run AS run ON run.run_id = wanted.run_id
"""

# SQLite has one writer, whose lock the caller holds: no row can be locked by another.
_BEAT_ONE_WRITER: Final = """
UPDATE runstore_run
   SET heartbeat_at_ms = MAX(heartbeat_at_ms, %s)
 WHERE owner_host_id = %s AND owner_pid = %s AND owner_nonce = %s
   AND (run_id, owner_fence) IN (VALUES {pairs})
RETURNING run_id
"""
_KNOWN: Final = "SELECT run_id FROM runstore_run WHERE run_id IN ({marks})"

MOST_RUNS: Final = 1_000
"""Runs per statement; within the number of parameters that every SQLite accepts."""


def beat_many(
    using: str, owner: OwnerId, runs: Sequence[tuple[str, int]], now_ms: int
) -> Mapping[str, Beat]:
    """
    Renew every run of ``runs`` that ``owner`` still holds under the given fence.

    Args:
        runs: At most ``MOST_RUNS`` pairs of run id and fence, each run once.
        now_ms: The reading sent; a later stamp is kept.
    """
    if has_one_writer(using):
        return _beat_one_writer(using, owner, runs, now_ms)
    with connections[using].cursor() as cursor:
        cursor.execute(
            _SKIPPING,
            {
                "run_ids": [run_id for run_id, _ in runs],
                "fences": [fence for _, fence in runs],
                "host_id": owner.host_id,
                "pid": owner.pid,
                "nonce": owner.nonce,
                "now_ms": now_ms,
            },
        )
        return dict(cursor.fetchall())


def _beat_one_writer(
    using: str, owner: OwnerId, runs: Sequence[tuple[str, int]], now_ms: int
) -> Mapping[str, Beat]:
    answers: dict[str, Beat] = {run_id: "missing" for run_id, _ in runs}
    with connections[using].cursor() as cursor:
        pairs = ", ".join(["(%s, %s)"] * len(runs))
        identity = (now_ms, owner.host_id, owner.pid, owner.nonce)
        flat = [value for pair in runs for value in pair]
        cursor.execute(_BEAT_ONE_WRITER.format(pairs=pairs), [*identity, *flat])
        beaten = {run_id for (run_id,) in cursor.fetchall()}
        unbeaten = [run_id for run_id in answers if run_id not in beaten]
        if unbeaten:
            marks = ", ".join(["%s"] * len(unbeaten))
            cursor.execute(_KNOWN.format(marks=marks), unbeaten)
            answers.update((run_id, "lost") for (run_id,) in cursor.fetchall())
    answers.update((run_id, "beaten") for run_id in beaten)
    return answers


def limit_lock_wait(using: str, timeout_ms: int) -> None:
    """
    Bound, for this transaction only, how long a statement may wait for a lock.

    A table locked by a migration would otherwise stall the pulse for good. The setting
    is local to the transaction, so a pooler in transaction mode keeps nothing of it.
    """
    if has_one_writer(using):
        return
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{timeout_ms}ms"])
