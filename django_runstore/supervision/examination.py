"""Judge one stale row and act on it: read it, look for its holder, take it or say why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django_runstore.db.failures import classify
from django_runstore.errors import RunDecodeFailed, RunNotFound
from django_runstore.liveness import gather_claim_evidence, gather_evidence
from django_runstore.outcomes import Recovered
from django_runstore.states import RunStatus
from django_runstore.supervision.doubts import doubt_about
from django_runstore.supervision.stale_rows import bounded_statements
from django_runstore.supervision.sweep_report import SweepAnswer
from django_runstore.supervision.takeover import (
    Circumstances,
    LockedElsewhere,
    Taken,
    clear_claim,
    take_over,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django_runstore.clocks import Clock
    from django_runstore.owners import OwnerId
    from django_runstore.services import RunStore
    from django_runstore.snapshots import RunRow
    from django_runstore.supervision.stale_rows import StaleRow

MOST_BUSY_ROWS: Final = 3
"""After so many rows that found the database busy the sweep ends: every one waits its time."""

_ANSWERS: Final[Mapping[RunStatus, SweepAnswer]] = {
    RunStatus.SUSPENDED: SweepAnswer.PUT_BACK,
    RunStatus.FAILED: SweepAnswer.FAILED,
    RunStatus.CANCELLED: SweepAnswer.CANCELLED,
}
_LOCKED: Final = (SweepAnswer.HELD, "locked by another transaction")


class Examiner:
    """
    Looks after one row at a time; what is wrong with one is an answer, not an exception.

    Args:
        lock_wait_ms: How long a statement may wait for a lock.
        dry_run: Write nothing.
    """

    def __init__(
        self,
        store: RunStore,
        observer: OwnerId,
        clock: Clock,
        *,
        lock_wait_ms: int,
        dry_run: bool,
    ) -> None:
        self._store = store
        self._observer = observer
        self._clock = clock
        self._lock_wait_ms = lock_wait_ms
        self._dry_run = dry_run
        self._busy_rows = 0

    def begin(self) -> None:
        """Begin a sweep."""
        self._busy_rows = 0

    def claim(self, seen: StaleRow) -> tuple[SweepAnswer, str]:
        """Clear a stale claim whose claimant is dead; the answer and its reason."""
        return self._isolated(self._look_after_claim, seen)

    def run(self, seen: StaleRow) -> tuple[SweepAnswer, str]:
        """Take a stale run from an owner that is dead; the answer and its reason."""
        return self._isolated(self._look_after_run, seen)

    def _isolated(
        self, look_after: Callable[[StaleRow, RunRow], tuple[SweepAnswer, str]], seen: StaleRow
    ) -> tuple[SweepAnswer, str]:
        try:
            # The one read that evidence and takeover both go by.
            with bounded_statements(self._store.using, self._lock_wait_ms):
                row = self._store.get(seen.run_id)
            return look_after(seen, row)
        except RunNotFound as error:
            return SweepAnswer.MOVED_ON, error.code
        except RunDecodeFailed as error:
            return SweepAnswer.UNDECODABLE, str(error)
        except Exception as error:
            match classify(error):
                case "io":
                    raise
                case "busy":
                    self._busy_rows += 1
                    if self._busy_rows >= MOST_BUSY_ROWS:
                        raise
                    return SweepAnswer.HELD, "the database was busy"
                case _:
                    # The class alone: the words of drivers and checks may quote the row.
                    return SweepAnswer.BROKEN, type(error).__name__

    def _look_after_claim(self, seen: StaleRow, row: RunRow) -> tuple[SweepAnswer, str]:
        if (row.claim, row.claimed_at_ms, row.fence) != (seen.holder, seen.stamp_ms, seen.fence):
            return SweepAnswer.MOVED_ON, "claim_changed"
        evidence = gather_claim_evidence(row, self._observer, self._clock)
        if evidence is None:
            return self._doubt(seen)
        if self._dry_run:
            return SweepAnswer.CLAIM_CLEARED, str(evidence.kind)
        outcome = clear_claim(
            self._store, self._observer, row, evidence, lock_wait_ms=self._lock_wait_ms
        )
        match outcome:
            case Recovered():
                return SweepAnswer.CLAIM_CLEARED, str(evidence.kind)
            case LockedElsewhere():
                return _LOCKED
            case lost:
                return SweepAnswer.MOVED_ON, lost.code

    def _look_after_run(self, seen: StaleRow, row: RunRow) -> tuple[SweepAnswer, str]:
        if (row.owner, row.heartbeat_at_ms, row.fence) != (seen.holder, seen.stamp_ms, seen.fence):
            return SweepAnswer.MOVED_ON, "snapshot_changed"
        evidence = gather_evidence(row, self._observer, self._clock)
        if evidence is None:
            return self._doubt(seen)
        if self._dry_run:
            circumstances = Circumstances.of(row.recovery_count, row.cancel_requested_at_ms)
            return _ANSWERS[circumstances.next_status], str(evidence.kind)
        outcome = take_over(
            self._store, self._observer, row, evidence, lock_wait_ms=self._lock_wait_ms
        )
        match outcome:
            case Taken(status):
                return _ANSWERS[status], str(evidence.kind)
            case LockedElsewhere():
                return _LOCKED
            case lost:
                return SweepAnswer.MOVED_ON, lost.code

    def _doubt(self, seen: StaleRow) -> tuple[SweepAnswer, str]:
        doubt = doubt_about(seen.holder, seen.stamp_ms, self._observer, self._clock)
        return SweepAnswer.NOT_PROVABLY_DEAD, str(doubt)
