"""Keep a run: heartbeats and progress under the fence. Spec: run-store 4.3 heartbeat."""

from collections.abc import Callable

from django_runstore.arbiters.lease import AskGuard, AskRenew, Refused
from django_runstore.metrics import tallies
from django_runstore.outcomes import FenceLost, HeartbeatOutcome, NotFound, Updated
from django_runstore.owners import OwnerId
from django_runstore.services import arguments, door
from django_runstore.services.core import StoreCore
from django_runstore.services.twin import twin


class Leasing(StoreCore):
    """A beat says that the owner lives; progress says that its work moves. Two facts."""

    @door.operation(tallies.heartbeats)
    def heartbeat(
        self,
        run_id: str,
        owner: OwnerId,
        now_ms: int | None = None,
        *,
        fence: int | None = None,
    ) -> HeartbeatOutcome:
        """
        Move the owner's heartbeat to ``now_ms``; never back. Spec: run-store 4.3 heartbeat.

        A pending claim by a stealer does not stop it: the beat is how a live owner keeps
        its run.

        Args:
            now_ms: May lag the store's clock; may lead it by at most the skew allowance.
            fence: The grant this ownership began with; checked too when given.

        Returns:
            ``Updated``: still yours. A late reading leaves the stamp where it is.
            ``FenceLost``: not running under this owner (and grant); stop.
            ``NotFound``: there is no such run.
        """
        return self._renew("heartbeat", run_id, owner, now_ms, fence, unclaimed=False)

    @door.operation(tallies.heartbeats)
    def reconfirm(
        self,
        run_id: str,
        owner: OwnerId,
        now_ms: int | None = None,
        *,
        fence: int | None = None,
    ) -> HeartbeatOutcome:
        """
        Renew after a pause, provided that nobody has begun to take the run over.

        As ``heartbeat``, but ``FenceLost`` while any claim is pending. Succeeds on a stale
        heartbeat as long as nobody has claimed. Spec: run-store 7.5.
        """
        return self._renew("reconfirm", run_id, owner, now_ms, fence, unclaimed=True)

    def _renew(
        self,
        operation: str,
        run_id: object,
        owner: object,
        now_ms: object,
        fence: object,
        *,
        unclaimed: bool,
    ) -> HeartbeatOutcome:
        identifier = arguments.text(operation, run_id)
        holder = arguments.owner(operation, owner)
        reading = self._reading(operation, now_ms, {"run_id": identifier})
        grant = arguments.fence(operation, fence)
        door.note(run_id=identifier, owner_host_id=holder.host_id)
        return self._beat(operation, identifier, holder, reading, grant, unclaimed=unclaimed)

    def _beat(
        self,
        operation: str,
        run_id: str,
        owner: OwnerId,
        reading: Callable[[], int],
        fence: int | None,
        *,
        unclaimed: bool,
    ) -> HeartbeatOutcome:
        """Renew one lease with arguments that were admitted."""

        def body() -> HeartbeatOutcome:
            row = self._lock(run_id)
            if row is None:
                return NotFound()
            request = AskRenew(owner, reading(), fence, unclaimed)
            decision = self._decide(row, row.lease, request)
            # A lease that renews over a row that records somebody else is no success.
            if isinstance(decision.answer, Refused) or not row.is_owned_by(owner, fence):
                return FenceLost()
            stamp = max(row.heartbeat_at_ms or 0, decision.answer.at_ms or 0)
            self._apply(operation, row, {"heartbeat_at_ms": stamp})
            return Updated()

        return self._write(operation, body)

    @door.operation(tallies.uncounted)
    def save_progress(
        self,
        run_id: str,
        owner: OwnerId,
        *,
        fence: int | None,
        progress_json: str | None = None,
        state_json: str | None = None,
        state_version: int | None = None,
        now_ms: int | None = None,
    ) -> HeartbeatOutcome:
        """
        Record that the work advanced, with its state when given, under the fence.

        Sets ``progressed_at_ms`` and starts the count of recoveries anew: a run that gets
        somewhere is not one that takes its host down each time. Not a heartbeat.

        Args:
            progress_json: JSON text for people; ``None`` keeps what is there.
            state_json: JSON text that replaces the state; ``None`` keeps it.
            state_version: Which shape the state has from now on; ``None`` keeps it.

        Returns:
            ``Updated``, ``FenceLost`` or ``NotFound``, as ``heartbeat``.
        """
        operation = "save_progress"
        identifier = arguments.text(operation, run_id)
        holder = arguments.owner(operation, owner)
        grant = arguments.fence(operation, fence)
        reading = self._reading(operation, now_ms, {"run_id": identifier})
        changes: dict[str, object] = {}
        if progress_json is not None:
            changes["progress_json"] = arguments.optional_json(
                operation, progress_json, "progress_json"
            )
        if state_json is not None:
            changes["state_json"] = arguments.state(operation, state_json, {"run_id": identifier})
        if state_version is not None:
            changes["state_version"] = arguments.timestamp(
                operation, state_version, "state_version"
            )
        door.note(run_id=identifier, owner_host_id=holder.host_id)

        def body() -> HeartbeatOutcome:
            row = self._lock(identifier)
            if row is None:
                return NotFound()
            decision = self._decide(row, row.lease, AskGuard(holder, grant))
            if isinstance(decision.answer, Refused) or not row.is_owned_by(holder, grant):
                return FenceLost()
            if row.recovery_count:
                # Only then: progress is no change of a run that followers would want to see,
                # and this column is one.
                changes["recovery_count"] = 0
            self._apply(operation, row, {**changes, "progressed_at_ms": reading()})
            return Updated()

        return self._write(operation, body)

    aheartbeat = twin(heartbeat)
    areconfirm = twin(reconfirm)
    asave_progress = twin(save_progress)
