"""
The group heartbeat: one statement that beats for many runs and waits for none.

Written as SQL because the ORM has no way to update the rows that could be locked and
tell which they were in one statement.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from django.db import connections

from django_runstore.db.backends import has_one_writer
from django_runstore.models import Run
from django_runstore.owners import OwnerId

Beat: TypeAlias = Literal["beaten", "held", "lost", "missing"]

# SKIP LOCKED passes over a row that an open transaction holds: one such row must not
# stop the beat of the others.
_BEAT_FREE_ROWS: Final = """
WITH free AS (
    SELECT run.run_id
      FROM unnest(%(run_ids)s::text[], %(fences)s::bigint[]) AS wanted (run_id, fence)
      JOIN runstore_run AS run ON run.run_id = wanted.run_id
     WHERE run.owner_host_id = %(host_id)s AND run.owner_pid = %(pid)s
       AND run.owner_nonce = %(nonce)s AND run.owner_fence = wanted.fence
       FOR NO KEY UPDATE OF run SKIP LOCKED
)
UPDATE runstore_run AS run
   SET heartbeat_at_ms = GREATEST(run.heartbeat_at_ms, %(now_ms)s)
  FROM free WHERE run.run_id = free.run_id
RETURNING run.run_id
"""

# SQLite has one writer, whose lock the caller holds: no row can be locked by another. A
# join and not a row-value IN, for which SQLite would read the whole table.
_BEAT_ONE_WRITER: Final = """
WITH wanted (run_id, fence) AS (VALUES {pairs})
UPDATE runstore_run
   SET heartbeat_at_ms = MAX(heartbeat_at_ms, %s)
  FROM wanted
 WHERE runstore_run.run_id = wanted.run_id AND owner_fence = wanted.fence
   AND owner_host_id = %s AND owner_pid = %s AND owner_nonce = %s
RETURNING run_id
"""

MOST_RUNS: Final = 1_000
"""Runs per statement; within the number of parameters that every SQLite accepts."""


def beat_many(
    using: str, owner: OwnerId, runs: Sequence[tuple[str, int]], now_ms: int
) -> Mapping[str, Beat]:
    """
    Renew every run of ``runs`` that ``owner`` still holds under the given fence.

    One statement while all is well; a second one asks what became of the rest.

    Args:
        runs: At most ``MOST_RUNS`` pairs of run id and fence, each run once.
        now_ms: The reading sent; a later stamp is kept.
    """
    if has_one_writer(using):
        beaten = _beat_one_writer(using, owner, runs, now_ms)
    else:
        beaten = _beat_free_rows(using, owner, runs, now_ms)
    answers: dict[str, Beat] = dict.fromkeys(beaten, "beaten")
    unbeaten = [(run_id, fence) for run_id, fence in runs if run_id not in beaten]
    return answers | _explain(using, owner, unbeaten) if unbeaten else answers


def _beat_free_rows(
    using: str, owner: OwnerId, runs: Sequence[tuple[str, int]], now_ms: int
) -> set[str]:
    with connections[using].cursor() as cursor:
        cursor.execute(
            _BEAT_FREE_ROWS,
            {
                "run_ids": [run_id for run_id, _ in runs],
                "fences": [fence for _, fence in runs],
                "host_id": owner.host_id,
                "pid": owner.pid,
                "nonce": owner.nonce,
                "now_ms": now_ms,
            },
        )
        return {run_id for (run_id,) in cursor.fetchall()}


def _beat_one_writer(
    using: str, owner: OwnerId, runs: Sequence[tuple[str, int]], now_ms: int
) -> set[str]:
    pairs = ", ".join(["(%s, %s)"] * len(runs))
    flat = [value for pair in runs for value in pair]
    with connections[using].cursor() as cursor:
        cursor.execute(
            _BEAT_ONE_WRITER.format(pairs=pairs),
            [*flat, now_ms, owner.host_id, owner.pid, owner.nonce],
        )
        return {run_id for (run_id,) in cursor.fetchall()}


def _explain(using: str, owner: OwnerId, runs: Sequence[tuple[str, int]]) -> dict[str, Beat]:
    """Tell runs that are gone or lost from those whose row somebody holds at the moment."""
    rows = Run.objects.using(using).filter(pk__in=[run_id for run_id, _ in runs])
    columns = ("owner_host_id", "owner_pid", "owner_nonce", "owner_fence")
    known = {run_id: holder for run_id, *holder in rows.values_list("run_id", *columns)}
    answers: dict[str, Beat] = {}
    for run_id, fence in runs:
        if run_id not in known:
            answers[run_id] = "missing"
        else:
            # Its last committed version is still the caller's: neither renewed nor refused.
            mine = known[run_id] == [owner.host_id, owner.pid, owner.nonce, fence]
            answers[run_id] = "held" if mine else "lost"
    return answers


def begin_pulse(using: str, timeout_ms: int) -> None:
    """
    Prepare the transaction of a pulse; call it first in a transaction of one's own.

    A table locked by a migration would otherwise stall the pulse for good. And at the
    isolation levels above READ COMMITTED, one row that somebody saved since the transaction
    began would fail the beat of all. Both settings end with the transaction, so a pooler in
    transaction mode keeps nothing of them.
    """
    if has_one_writer(using):
        return
    with connections[using].cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{timeout_ms}ms"])
