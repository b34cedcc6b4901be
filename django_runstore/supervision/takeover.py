"""Take one run, or one claim, from a holder that is provably gone: all of it or nothing."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from django_runstore.db.boundary import write
from django_runstore.db.lock_wait import limit_lock_wait
from django_runstore.outcomes import Activated, Claimed, Recovered, Transitioned
from django_runstore.snapshots import OwnedTransition, RunNote, TransitionGuard
from django_runstore.states import RunStatus
from django_runstore.supervision.announcements import printable
from django_runstore.supervision.endings import RecoveryBudget, error_json

if TYPE_CHECKING:
    from django_runstore.evidence import LivenessEvidence
    from django_runstore.owners import OwnerId
    from django_runstore.services import RunStore
    from django_runstore.snapshots import RunRow

logger = logging.getLogger("django_runstore.supervision")

OWNER_LOST: Final = "runstore.owner.lost"


class RunMovedError(Exception):
    """The run is no longer what was read; everything done so far is rolled back."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def take_back(
    store: RunStore,
    row: RunRow,
    observer: OwnerId,
    evidence: LivenessEvidence,
    *,
    max_recoveries: int,
    lock_timeout_ms: int,
    dry_run: bool = False,
) -> RunStatus:
    """
    Steal a stale run on evidence, and put it back or settle it, in one transaction.

    A process that dies in the middle leaves the run as it was; so does an owner that beat
    in the meantime.

    Args:
        row: The run as it was read before the evidence was gathered.
        observer: Who takes it over; owns the run for the length of the transaction.
        dry_run: Only tell what would become of it.

    Returns:
        ``suspended``: put back. ``cancelled``: somebody had asked it to stop. ``failed``: it
        has lost its worker or host once too often.

    Raises:
        RunMovedError: the run changed meanwhile; nothing was written.
        RunStoreError: the database failed; nothing was written.
    """
    transition = _after_loss(row, RecoveryBudget(row.recovery_count, max_recoveries), evidence)
    status = RunStatus(transition.to_status)
    if dry_run:
        return status

    def body() -> None:
        limit_lock_wait(store.using, lock_timeout_ms)
        stolen = store.steal(row.run_id, row, observer, evidence.checked_at_ms, evidence)
        if not isinstance(stolen, Claimed):
            raise RunMovedError(stolen.code)
        active = store.activate(row.run_id, observer, stolen.claimed_at_ms, row, fence=stolen.fence)
        if not isinstance(active, Activated):
            raise RunMovedError(active.code)
        settled = store.transition_many(observer, [replace(transition, fence=active.fence)])[
            row.run_id
        ]
        if not isinstance(settled, Transitioned):
            raise RunMovedError(settled.code)

    write(store.using, body)
    logger.warning(
        "run %s: taken from %s (%s, silent for %.1f s); %s",
        printable(row.run_id),
        "nobody" if row.owner is None else printable(row.owner.describe()),
        evidence.kind,
        _silence_ms(row, evidence) / 1000,
        "put back" if status == RunStatus.SUSPENDED else str(status),
        extra={"run_id": row.run_id, "evidence": str(evidence.kind)},
    )
    return status


def clear_claim(
    store: RunStore, row: RunRow, observer: OwnerId, evidence: LivenessEvidence
) -> None:
    """
    Clear the claim of a dead claimant.

    Raises:
        RunMovedError: the claim changed meanwhile.
        RunStoreError: the database failed.
    """
    if row.claim is None or row.claimed_at_ms is None:
        raise RunMovedError("claim_changed")
    outcome = store.recover_claim(
        row.run_id,
        row.claim,
        row.claimed_at_ms,
        observer,
        evidence.checked_at_ms,
        evidence,
        fence=row.fence,
    )
    if not isinstance(outcome, Recovered):
        raise RunMovedError(outcome.code)
    logger.warning(
        "run %s: cleared the claim of %s (%s)",
        printable(row.run_id),
        printable(row.claim.describe()),
        evidence.kind,
        extra={"run_id": row.run_id, "evidence": str(evidence.kind)},
    )


def _after_loss(row: RunRow, budget: RecoveryBudget, evidence: LivenessEvidence) -> OwnedTransition:
    note = RunNote(
        OWNER_LOST,
        {
            "evidence": str(evidence.kind),
            "silent_ms": _silence_ms(row, evidence),
            "recoveries": budget.used + 1,
        },
    )
    if row.cancel_requested_at_ms is not None:
        # Nobody executes it any more, so there is nothing left to stop.
        present = TransitionGuard(cancel_requested="present")
        return OwnedTransition(row.run_id, 0, RunStatus.CANCELLED, guard=present, note=note)
    absent = TransitionGuard(cancel_requested="absent")
    if not budget.is_spent:
        return OwnedTransition(
            row.run_id, 0, RunStatus.SUSPENDED, guard=absent, counts_recovery=True, note=note
        )
    message = (
        f"the run lost its worker or host {budget.used + 1} times without progress in between, "
        f"most recently its supervisor ({evidence.kind}); RUNSTORE['MAX_RECOVERIES'] is "
        f"{budget.allowed}"
    )
    return OwnedTransition(
        row.run_id,
        0,
        RunStatus.FAILED,
        guard=absent,
        error_json=error_json("OwnerLost", message),
        counts_recovery=True,
        note=note,
    )


def _silence_ms(row: RunRow, evidence: LivenessEvidence) -> int:
    return evidence.checked_at_ms - (row.heartbeat_at_ms or 0)
