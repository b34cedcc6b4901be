"""Reserve a run and become its owner. Spec: run-store 4.3 claim to abandon_claim."""

from functools import partial

from django_runstore.arbiters.lease import (
    AskActivate,
    AskClaim,
    AskRelease,
    AskSteal,
    Lease,
    Refused,
)
from django_runstore.evidence import LivenessEvidence, matches_evidence
from django_runstore.metrics import tallies
from django_runstore.outcomes import (
    Abandoned,
    AbandonOutcome,
    Activated,
    ActivateOutcome,
    ClaimAndOwnOutcome,
    Claimed,
    ClaimLost,
    ClaimOutcome,
    EvidenceRequired,
    SnapshotChanged,
)
from django_runstore.owners import OwnerId
from django_runstore.services import arguments, door
from django_runstore.services.core import StoreCore, classify_claim_loss, lease_columns
from django_runstore.services.facts import Fact, TakeoverEvidence
from django_runstore.services.locked_run import LockedRun
from django_runstore.services.twin import twin
from django_runstore.snapshots import RunRow, RunSnapshot
from django_runstore.states import CLAIMABLE_STATUSES, RunStatus


class Claiming(StoreCore):
    """Claims are compared against what the caller saw, so two readers cannot both win."""

    @door.operation(tallies.claims)
    def claim(
        self,
        run_id: str,
        expected: RunSnapshot | RunRow,
        claimant: OwnerId,
        now_ms: int | None = None,
    ) -> ClaimOutcome:
        """
        Reserve a pending or suspended run for ``claimant``. Spec: run-store 4.3 claim.

        The run is taken only while it still matches ``expected``. A running run is never
        claimable here, however stale it is; see ``steal``.

        Args:
            run_id: 1 to 1,024 UTF-16 units, no NUL, no lone surrogate.
            expected: The row or snapshot the caller read.
            claimant: Who the claim is for; not necessarily this process.
            now_ms: Milliseconds since the Unix epoch. May lag the store's clock; may lead it
                by at most the skew allowance.

        Returns:
            ``Claimed``: yours; pass ``claimed_at_ms`` to ``activate()``.
            ``AlreadyClaimed``: another claimant is ahead; back off.
            ``HeartbeatFresh``: the run is running and its owner is beating.
            ``SnapshotChanged``: read the run again before deciding.
            ``NotFound``: there is no such run.

        Raises:
            InvalidRun: an argument breaks the contract; nothing was read.
            RunPersistenceFailed: the database failed.
        """
        operation = "claim"
        identifier = arguments.text(operation, run_id)
        snapshot = arguments.snapshot(operation, expected)
        holder = arguments.owner(operation, claimant, "claimant")
        reading = self._reading(operation, now_ms, {"run_id": identifier})
        door.note(run_id=identifier, claimant_host_id=holder.host_id)

        def body() -> ClaimOutcome:
            row = self._lock(identifier)
            at_ms = reading()
            if (
                row is None
                or row.status not in CLAIMABLE_STATUSES
                or not row.matches(snapshot)
                or row.claim is not None
            ):
                return classify_claim_loss(row, at_ms)
            decision = self._decide(row, row.lease, AskClaim(holder, at_ms))
            if isinstance(decision.answer, Refused):
                return classify_claim_loss(row, at_ms)
            fence = decision.answer.fence
            fact = Fact("claimed", holder, at_ms, fence)
            self._apply(operation, row, claim_columns(holder, at_ms, fence), (fact,))
            return Claimed(at_ms, fence)

        return self._write(operation, body)

    @door.operation(tallies.claims)
    def claim_and_own(
        self,
        run_id: str,
        expected: RunSnapshot | RunRow,
        owner: OwnerId,
        now_ms: int | None = None,
        evidence: LivenessEvidence | None = None,
    ) -> ClaimAndOwnOutcome:
        """
        Claim and activate in one write. Spec: run-store 4.3 claim_and_own.

        A stale running run of another owner is taken over only with evidence; one's own
        stale run is re-owned without. The installed owner may be any identity.

        Args:
            now_ms: Stamps ``started_at_ms`` (if unset) and the first heartbeat; by default the
                evidence's reading, or the store clock's.
            evidence: Required when ``expected`` names another, stale owner.

        Returns:
            ``Activated``: owned and running; ``fence`` is the token of this ownership.
            ``EvidenceRequired``: the other owner is stale; bring evidence, retrying cannot help.
            ``HeartbeatFresh``, ``AlreadyClaimed``, ``SnapshotChanged``, ``NotFound``: as ``claim``.
        """
        operation = "claim_and_own"
        identifier = arguments.text(operation, run_id)
        snapshot = arguments.snapshot(operation, expected)
        holder = arguments.owner(operation, owner)
        context: dict[str, str | int] = {"run_id": identifier}
        proof: LivenessEvidence | None = None
        proven = False
        if evidence is None:
            reading = self._reading(operation, now_ms, context)
        else:
            proof, dated_ms = self._dated(operation, now_ms, evidence, context)
            reading = partial(int, dated_ms)
            proven = matches_evidence(snapshot.owner or holder, holder, dated_ms, proof)
        door.note(run_id=identifier, owner_host_id=holder.host_id)
        if snapshot.owner not in (None, holder) and not proven:
            return self._typed(operation, lambda: self._unproven(identifier, snapshot, reading()))

        def body() -> ClaimAndOwnOutcome:
            row = self._lock(identifier)
            at_ms = reading()
            if row is None or not self._may_be_owned(row, snapshot, at_ms):
                return classify_claim_loss(row, at_ms)
            return self._own(operation, row, holder, at_ms, proof)

        return self._write(operation, body)

    def _unproven(self, run_id: str, snapshot: RunSnapshot, now_ms: int) -> ClaimAndOwnOutcome:
        """Name why another owner's run is not to be had; reads without locking its row."""
        row = self._peek(run_id)
        loss = classify_claim_loss(row, now_ms)
        if isinstance(loss, SnapshotChanged) and row is not None and row.matches(snapshot):
            return EvidenceRequired()
        return loss

    @staticmethod
    def _may_be_owned(row: LockedRun, snapshot: RunSnapshot, now_ms: int) -> bool:
        if not row.matches(snapshot) or row.claim is not None:
            return False
        if row.status in CLAIMABLE_STATUSES:
            return True
        # Of the other statuses only a running run that went stale can be taken.
        return isinstance(classify_claim_loss(row, now_ms), SnapshotChanged) and (
            row.status == RunStatus.RUNNING
        )

    def _own(
        self,
        operation: str,
        row: LockedRun,
        holder: OwnerId,
        now_ms: int,
        proof: LivenessEvidence | None,
    ) -> ClaimAndOwnOutcome:
        """Walk the lease through release, claim or steal, and activation; write the row once."""
        lease: Lease = row.lease
        facts: list[Fact] = []
        takeover = None
        if row.owner == holder:
            lease = self._decide(row, lease, AskRelease(holder)).lease
            facts.append(Fact("released", holder, None, row.owner_fence))
            decision = self._decide(row, lease, AskClaim(holder, now_ms))
        elif row.owner is not None and proof is not None:
            takeover = TakeoverEvidence(proof, holder, row.heartbeat_at_ms)
            decision = self._decide(row, lease, AskSteal(holder, now_ms, proof))
        else:
            decision = self._decide(row, lease, AskClaim(holder, now_ms))
        if isinstance(decision.answer, Refused):
            return classify_claim_loss(row, now_ms)
        fence = decision.answer.fence
        decision = self._decide(row, decision.lease, AskActivate(holder, now_ms, now_ms))
        if isinstance(decision.answer, Refused):
            self._decide(row, decision.lease, AskRelease(holder))
            return classify_claim_loss(row, now_ms)
        facts += [
            Fact("claimed" if takeover is None else "stolen", holder, now_ms, fence, takeover),
            Fact("activated", holder, now_ms, fence),
        ]
        self._apply(operation, row, ownership_columns(row, holder, now_ms, fence), facts)
        return Activated(fence)

    @door.operation(tallies.claims)
    def activate(
        self,
        run_id: str,
        claimant: OwnerId,
        claimed_at_ms: int,
        expected: RunSnapshot | RunRow,
        *,
        fence: int | None = None,
    ) -> ActivateOutcome:
        """
        Turn a claim into ownership. Spec: run-store 4.3 activate.

        For a stolen claim ``expected`` is the stale running snapshot: when the old owner beat
        in between, it keeps the run.

        Args:
            claimed_at_ms: The exact time that ``Claimed`` carried; a grant is spent once.
            fence: The grant that ``Claimed`` carried, checked too when given.

        Returns:
            ``Activated``: owned and running.
            ``ClaimLost``: the claim is not (or no longer) this one; nothing changed.
            ``SnapshotChanged``: the run changed meanwhile; the claim was given back.
        """
        operation = "activate"
        identifier = arguments.text(operation, run_id)
        holder = arguments.owner(operation, claimant, "claimant")
        token = arguments.timestamp(operation, claimed_at_ms, "claimed_at_ms")
        snapshot = arguments.snapshot(operation, expected)
        grant = arguments.fence(operation, fence)
        door.note(run_id=identifier, claimant_host_id=holder.host_id)

        def body() -> ActivateOutcome:
            row = self._lock(identifier)
            if row is None or not row.matches_claim(holder, token, grant):
                return ClaimLost()
            if not row.matches(snapshot):
                self._decide(row, row.lease, AskRelease(holder, claim_only=True))
                released = Fact("released", holder, token, row.fence)
                self._apply(operation, row, NO_CLAIM, (released,))
                return SnapshotChanged()
            now_ms = self._now(operation)
            decision = self._decide(row, row.lease, AskActivate(holder, token, now_ms, grant))
            if isinstance(decision.answer, Refused):
                self._apply(operation, row, NO_CLAIM)
                return ClaimLost()
            activated = Fact("activated", holder, token, decision.answer.fence)
            columns = ownership_columns(row, holder, now_ms, decision.answer.fence)
            self._apply(operation, row, columns, (activated,))
            return Activated(decision.answer.fence)

        return self._write(operation, body)

    @door.operation(tallies.claims)
    def abandon_claim(
        self, run_id: str, claimant: OwnerId, claimed_at_ms: int, *, fence: int | None = None
    ) -> AbandonOutcome:
        """
        Give a claim back without activating it. Spec: run-store 4.3 abandon_claim.

        Returns:
            ``Abandoned``: the claim is gone; status and owner are as they were.
            ``ClaimLost``: the claim is not (or no longer) this one; nothing changed.
        """
        operation = "abandon_claim"
        identifier = arguments.text(operation, run_id)
        holder = arguments.owner(operation, claimant, "claimant")
        token = arguments.timestamp(operation, claimed_at_ms, "claimed_at_ms")
        grant = arguments.fence(operation, fence)
        door.note(run_id=identifier, claimant_host_id=holder.host_id)

        def body() -> AbandonOutcome:
            row = self._lock(identifier)
            if row is None or not row.matches_claim(holder, token, grant):
                return ClaimLost()
            self._decide(row, row.lease, AskRelease(holder, claim_only=True))
            released = Fact("released", holder, token, row.fence)
            self._apply(operation, row, NO_CLAIM, (released,))
            return Abandoned()

        return self._write(operation, body)

    aclaim = twin(claim)
    aclaim_and_own = twin(claim_and_own)
    aactivate = twin(activate)
    aabandon_claim = twin(abandon_claim)


NO_CLAIM = {"claim_host_id": None, "claim_pid": None, "claim_nonce": None, "claimed_at_ms": None}


def claim_columns(claimant: OwnerId, claimed_at_ms: int, fence: int) -> dict[str, object]:
    """Spell a granted claim as columns; the owner's, if any, are left alone."""
    return {
        "claim_host_id": claimant.host_id,
        "claim_pid": claimant.pid,
        "claim_nonce": claimant.nonce,
        "claimed_at_ms": claimed_at_ms,
        "fence": fence,
    }


def ownership_columns(row: LockedRun, owner: OwnerId, now_ms: int, fence: int) -> dict[str, object]:
    """Spell a fresh ownership as columns."""
    return {
        **lease_columns(Lease(owner, now_ms, fence, None, None, fence)),
        "status": RunStatus.RUNNING,
        "started_at_ms": now_ms if row.started_at_ms is None else row.started_at_ms,
        "finished_at_ms": None,
    }
