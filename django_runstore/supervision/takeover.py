"""
Put back the run of a dead owner, in one transaction.

Steal, activation and put-back commit together: a sweeper that is killed in between has
changed nothing, and leaves no lock, no claim and no ownership of its own behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from django_runstore import conf
from django_runstore.db.backends import locks_rows, skips_locked_rows
from django_runstore.db.boundary import is_nested, write
from django_runstore.db.lock_wait import limit_statements
from django_runstore.models import Run
from django_runstore.outcomes import Activated, NotFound, Transitioned
from django_runstore.snapshots import OwnedTransition, RunNote, TransitionGuard
from django_runstore.states import RunStatus
from django_runstore.supervision.endings import RecoveryBudget, error_json

if TYPE_CHECKING:
    from django_runstore.evidence import LivenessEvidence
    from django_runstore.outcomes import ClaimAndOwnOutcome, RecoverOutcome, TransitionOutcome
    from django_runstore.owners import OwnerId
    from django_runstore.services import RunStore
    from django_runstore.snapshots import RunRow

OWNER_LOST: Final = "runstore.owner.lost"


@dataclass(frozen=True, slots=True)
class Taken:
    """The run is out of the dead owner's hands, and has this status now."""

    status: RunStatus


@dataclass(frozen=True, slots=True)
class LockedElsewhere:
    """Another transaction has the row locked."""


Loss: TypeAlias = "ClaimAndOwnOutcome | TransitionOutcome | LockedElsewhere"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What decides where a run goes that has lost its owner."""

    recoveries: RecoveryBudget
    is_cancel_requested: bool

    @classmethod
    def of(cls, recovery_count: int, cancel_requested_at_ms: int | None) -> Circumstances:
        """Take the two from the row, and how many recoveries are allowed from the settings."""
        budget = RecoveryBudget(recovery_count, conf.current().max_recoveries)
        return cls(budget, cancel_requested_at_ms is not None)

    @property
    def next_status(self) -> RunStatus:
        """Where the run goes; nobody executes it, so a request to stop is met already."""
        if self.is_cancel_requested:
            return RunStatus.CANCELLED
        return RunStatus.FAILED if self.recoveries.is_spent else RunStatus.SUSPENDED


class _UndoneError(Exception):
    """Takes the transaction back after its first half."""

    def __init__(self, outcome: TransitionOutcome) -> None:
        super().__init__(outcome.code)
        self.outcome = outcome


def take_over(
    store: RunStore,
    observer: OwnerId,
    row: RunRow,
    evidence: LivenessEvidence,
    *,
    lock_wait_ms: int,
) -> Taken | Loss:
    """
    Take ``row`` from its dead owner and put it back, fail it, or cancel it.

    Args:
        row: What was read before the evidence was gathered; if the run has moved since, it
            is left alone.
        lock_wait_ms: How long a statement may wait for a lock, where databases can say so.

    Returns:
        ``Taken``: done. Anything else: somebody was faster, and nothing was written.
    """

    def body() -> Taken | Loss:
        if not joins:
            limit_statements(store.using, lock_wait_ms)
        circumstances = _lock(store.using, row.run_id)
        if circumstances is None:
            return _passed_over(store.using, row.run_id)
        owned = store.claim_and_own(row.run_id, row, observer, None, evidence)
        if not isinstance(owned, Activated):
            return owned
        transition = _transition(row, owned.fence, evidence, circumstances)
        answer = store.transition_many(observer, [transition])[row.run_id]
        if not isinstance(answer, Transitioned):
            raise _UndoneError(answer)
        return Taken(circumstances.next_status)

    joins = is_nested(store.using)
    try:
        # Not tried again while the database is busy: the next sweep does, with new evidence.
        return write(store.using, body, attempts=1)
    except _UndoneError as undone:
        return undone.outcome


def clear_claim(
    store: RunStore,
    observer: OwnerId,
    row: RunRow,
    evidence: LivenessEvidence,
    *,
    lock_wait_ms: int,
) -> RecoverOutcome | LockedElsewhere:
    """Take the claim on ``row`` from its dead claimant, waiting for no row lock."""

    def body() -> RecoverOutcome | LockedElsewhere:
        if not joins:
            limit_statements(store.using, lock_wait_ms)
        if _lock(store.using, row.run_id) is None:
            return _passed_over(store.using, row.run_id)
        return store.recover_claim(
            row.run_id,
            evidence.expected_owner,
            row.claimed_at_ms or 0,
            observer,
            evidence.checked_at_ms,
            evidence,
            fence=row.fence,
        )

    joins = is_nested(store.using)
    return write(store.using, body, attempts=1)


def _lock(using: str, run_id: str) -> Circumstances | None:
    """Lock the row if nobody else has, and read what may have changed since it was read."""
    runs = Run.objects.using(using).filter(pk=run_id)
    if locks_rows(using):
        runs = runs.select_for_update(no_key=True, skip_locked=skips_locked_rows(using))
    columns = runs.values_list("recovery_count", "cancel_requested_at_ms")
    return next((Circumstances.of(*found) for found in columns), None)


def _passed_over(using: str, run_id: str) -> LockedElsewhere | NotFound:
    """Say why the row could not be locked."""
    exists = Run.objects.using(using).filter(pk=run_id).exists()
    return LockedElsewhere() if exists else NotFound()


def _transition(
    row: RunRow, fence: int, evidence: LivenessEvidence, circumstances: Circumstances
) -> OwnedTransition:
    status, lost = circumstances.next_status, circumstances.recoveries.used + 1
    owner = evidence.expected_owner.describe()
    requested = circumstances.is_cancel_requested
    guard = TransitionGuard("present" if requested else "absent")
    error = None
    if status == RunStatus.FAILED:
        allowed = circumstances.recoveries.allowed
        error = error_json(
            "OwnerLost",
            f"the run lost its worker or host {lost} times without progress in between, most "
            f"recently {owner} ({evidence.kind}); RUNSTORE['MAX_RECOVERIES'] is {allowed}",
        )
    note = RunNote(
        OWNER_LOST,
        {
            "owner": owner,
            "owner_fence": row.owner_fence,
            "evidence": str(evidence.kind),
            "silent_for_ms": evidence.checked_at_ms - (row.heartbeat_at_ms or 0),
            "recoveries": lost,
            "became": str(status),
        },
    )
    return OwnedTransition(
        row.run_id, fence, status, guard=guard, error_json=error, counts_recovery=True, note=note
    )
