"""Take what a dead process held, on evidence. Spec: run-store 4.3 steal and recover_claim."""

from django_runstore import conf
from django_runstore.arbiters.lease import AskRecover, AskSteal, Refused
from django_runstore.evidence import LivenessEvidence, matches_evidence
from django_runstore.metrics import tallies
from django_runstore.outcomes import (
    ClaimChanged,
    Claimed,
    ClaimFresh,
    LivenessUnconfirmed,
    NotFound,
    Recovered,
    RecoverOutcome,
    SnapshotChanged,
    StealOutcome,
)
from django_runstore.owners import OwnerId
from django_runstore.services import arguments, door
from django_runstore.services.claiming import NO_CLAIM, claim_columns
from django_runstore.services.core import StoreCore, classify_claim_loss
from django_runstore.services.facts import Fact, TakeoverEvidence
from django_runstore.services.twin import twin
from django_runstore.snapshots import RunRow, RunSnapshot
from django_runstore.states import RunStatus


class TakingOver(StoreCore):
    """Both need a stale stamp *and* matching evidence dated at the very same reading."""

    @door.operation(tallies.claims)
    def steal(
        self,
        run_id: str,
        expected: RunSnapshot | RunRow,
        claimant: OwnerId,
        now_ms: int | None,
        evidence: LivenessEvidence,
    ) -> StealOutcome:
        """
        Reserve a running run whose owner is stale and proven dead. Spec: run-store 4.3 steal.

        Only the claim is written: until ``activate()`` the old owner's fence still holds,
        and when it beats in between, it keeps the run.

        Args:
            now_ms: The reading the evidence was made at; by default ``evidence.checked_at_ms``.

        Returns:
            ``Claimed``: follow with ``activate()`` and the same snapshot.
            ``LivenessUnconfirmed``: the evidence does not fit this owner, observer or instant.
            ``HeartbeatFresh``, ``AlreadyClaimed``, ``SnapshotChanged``, ``NotFound``: as ``claim``.
        """
        operation = "steal"
        identifier = arguments.text(operation, run_id)
        snapshot = arguments.snapshot(operation, expected)
        holder = arguments.owner(operation, claimant, "claimant")
        context: dict[str, str | int] = {"run_id": identifier}
        proof, reading = self._dated(operation, now_ms, evidence, context)
        door.note(run_id=identifier, claimant_host_id=holder.host_id)
        if snapshot.owner is None or not matches_evidence(snapshot.owner, holder, reading, proof):
            return LivenessUnconfirmed()

        def body() -> StealOutcome:
            row = self._lock(identifier)
            if row is None or not row.matches(snapshot) or row.claim is not None:
                return classify_claim_loss(row, reading)
            # The row matches a running snapshot: whatever is not fresh is stale.
            if row.status != RunStatus.RUNNING or not isinstance(
                loss := classify_claim_loss(row, reading), SnapshotChanged
            ):
                return loss
            decision = self._decide(row, row.lease, AskSteal(holder, reading, proof))
            if isinstance(decision.answer, Refused):
                return classify_claim_loss(row, reading)
            fence = decision.answer.fence
            takeover = TakeoverEvidence(proof, holder, row.heartbeat_at_ms)
            stolen = Fact("stolen", holder, reading, fence, takeover)
            self._apply(operation, row, claim_columns(holder, reading, fence), (stolen,))
            return Claimed(reading, fence)

        return self._write(operation, body)

    @door.operation(tallies.claims)
    def recover_claim(
        self,
        run_id: str,
        stale_claimant: OwnerId,
        claimed_at_ms: int,
        observer: OwnerId,
        now_ms: int | None,
        evidence: LivenessEvidence,
        *,
        fence: int | None = None,
    ) -> RecoverOutcome:
        """
        Clear the claim of a claimant that died before activating it.

        It does not hand the run over; claim it normally afterwards.
        Spec: run-store 4.3 recover_claim.

        Args:
            claimed_at_ms: The claim's exact time, as the row shows it.
            observer: Who saw that the claimant is gone.
            now_ms: The reading the evidence was made at; by default ``evidence.checked_at_ms``.

        Returns:
            ``Recovered``: the claim is gone.
            ``ClaimFresh``: the claim is not yet stale.
            ``ClaimChanged``: the claim is not the one named.
            ``LivenessUnconfirmed``: the evidence does not fit.
            ``NotFound``: there is no such run.
        """
        operation = "recover_claim"
        identifier = arguments.text(operation, run_id)
        claimant = arguments.owner(operation, stale_claimant, "stale_claimant")
        token = arguments.timestamp(operation, claimed_at_ms, "claimed_at_ms")
        witness = arguments.owner(operation, observer, "observer")
        context: dict[str, str | int] = {"run_id": identifier, "claimed_at_ms": token}
        proof, reading = self._dated(operation, now_ms, evidence, context)
        grant = arguments.fence(operation, fence)
        door.note(run_id=identifier, observer_host_id=witness.host_id)
        if not matches_evidence(claimant, witness, reading, proof):
            return LivenessUnconfirmed()

        def body() -> RecoverOutcome:
            row = self._lock(identifier)
            if row is None:
                return NotFound()
            if not row.matches_claim(claimant, token, grant):
                return ClaimChanged()
            if not conf.current().lease.is_stale(token, reading):
                return ClaimFresh()
            request = AskRecover(claimant, token, witness, reading, proof, grant)
            decision = self._decide(row, row.lease, request)
            if isinstance(decision.answer, Refused):
                return ClaimChanged()
            takeover = TakeoverEvidence(proof, witness, row.heartbeat_at_ms)
            expired = Fact("expired", claimant, token, row.fence, takeover)
            self._apply(operation, row, NO_CLAIM, (expired,))
            return Recovered()

        return self._write(operation, body)

    asteal = twin(steal)
    arecover_claim = twin(recover_claim)
