"""Ask a run to stop, and acknowledge having seen it. Spec: run-store 4.3 and 12."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import F, Value
from django.db.models.functions import Coalesce

from django_runstore.db.run_notices import announce_cancel_request
from django_runstore.durable import encode_json
from django_runstore.errors import RunDecodeFailed, RunPersistenceFailed
from django_runstore.metrics import tallies
from django_runstore.models import Run
from django_runstore.outcomes import (
    AlreadyRequested,
    CancelOutcome,
    CancelRequested,
    NotFound,
    Terminal,
)
from django_runstore.services import arguments, door
from django_runstore.services.core import StoreCore
from django_runstore.services.facts import identity_json
from django_runstore.services.twin import twin
from django_runstore.states import LIVE_STATUSES, TERMINAL_STATUSES, RunStatus

_JUDGED: Final = ("run_id", "status", "cancel_requested_at_ms")


class Cancelling(StoreCore):
    """
    Cancellation is three separate facts: asked, seen by the owner, and ended.

    A request never interrupts anything by itself and never decides how a run ends; the
    owner polls it, or is told by the guard of its next transition.
    """

    @door.operation(tallies.uncounted)
    def request_cancel(self, run_id: str, now_ms: int | None = None) -> CancelOutcome:
        """
        Record that somebody wants this run to stop. Unfenced: any observer may call.

        Args:
            now_ms: The time of the request, stored as given; it may lie anywhere.

        Returns:
            ``CancelRequested``: recorded now.
            ``AlreadyRequested``: somebody asked before; their time stands.
            ``Terminal``: the run had ended; nothing was recorded.
            ``NotFound``: there is no such run.
        """
        operation = "request_cancel"
        identifier = arguments.text(operation, run_id)
        requested_at_ms = self._literal(operation, now_ms)
        door.note(run_id=identifier)
        run = Run.unguarded.using(self.using).filter(pk=identifier)
        return self._write(operation, lambda: _ask(operation, run, run, requested_at_ms))

    @door.operation(tallies.uncounted)
    def request_cancel_lineage(self, run_id: str, now_ms: int | None = None) -> CancelOutcome:
        """
        Record the request on every unsettled round of the logical run.

        One statement for any number of rounds, and all of them or none.

        Returns:
            ``CancelRequested``: at least one round was asked now; earlier requests keep their time.
            ``AlreadyRequested``: every live round had been asked; the time of the latest one.
            ``Terminal``: every round had ended; the status of the latest one.
            ``NotFound``: there is no such run.
        """
        operation = "request_cancel_lineage"
        identifier = arguments.text(operation, run_id)
        requested_at_ms = self._literal(operation, now_ms)
        door.note(run_id=identifier)
        members = Run.objects.using(self.using).lineage_of(identifier)
        # Locked in the subquery, because an UPDATE locks in no order of its own.
        asked = _unasked(members).select_for_update(no_key=True).order_by("run_id")
        rounds = Run.unguarded.using(self.using).filter(pk__in=asked.values("run_id"))
        return self._write(operation, lambda: _ask(operation, rounds, members, requested_at_ms))

    @door.operation(tallies.uncounted)
    def acknowledge_cancel(
        self,
        run_id: str,
        owner: Any,  # noqa: ANN401 - judged below
        now_ms: int | None = None,
        *,
        fence: int | None = None,
    ) -> bool:
        """
        Record that the owner has seen the request; the first acknowledgement stands.

        Returns:
            True when the run is running under ``owner`` (and ``fence``) and a request is there.
        """
        operation = "acknowledge_cancel"
        identifier = arguments.text(operation, run_id)
        holder = arguments.owner(operation, owner)
        observed_at_ms = self._literal(operation, now_ms)
        grant = arguments.fence(operation, fence)
        door.note(run_id=identifier, owner_host_id=holder.host_id)
        text = encode_json({"observed_at_ms": observed_at_ms, "owner": identity_json(holder)})

        def body() -> bool:
            row = self._lock(identifier)
            if (
                row is None
                or not row.is_owned_by(holder, grant)
                or row.cancel_requested_at_ms is None
            ):
                return False
            first = Coalesce(F("cancel_acknowledgement_json"), Value(text))
            self._apply(operation, row, {"cancel_acknowledgement_json": first})
            return True

        return self._write(operation, body)

    def _literal(self, operation: str, now_ms: object) -> int:
        """Admit a reading that is stored as it is, with no bound against the store's clock."""
        return self._now(operation) if now_ms is None else arguments.timestamp(operation, now_ms)

    arequest_cancel = twin(request_cancel)
    arequest_cancel_lineage = twin(request_cancel_lineage)
    aacknowledge_cancel = twin(acknowledge_cancel)


@dataclass(frozen=True, slots=True)
class _Missed:
    """A live run that nobody has asked, though it was to be asked just now."""

    run_id: str


def _ask(operation: str, runs: Any, members: Any, requested_at_ms: int) -> CancelOutcome:  # noqa: ANN401 - querysets of both managers
    """
    Record the request on ``runs``, or say why none of ``members`` took it.

    A run that was committed between the two statements is found by the second only, live
    and not asked: it is asked then. One that still is not was kept from being written.
    """
    answer = _ask_once(operation, runs, members, requested_at_ms)
    if isinstance(answer, _Missed):
        answer = _ask_once(operation, runs, members, requested_at_ms)
    if isinstance(answer, _Missed):
        raise RunPersistenceFailed(
            operation,
            "guarded cancellation update missed a live unrequested row",
            {"run_id": answer.run_id, "stage": "write-invariant"},
        )
    return answer


def _ask_once(operation: str, runs: Any, members: Any, at_ms: int) -> CancelOutcome | _Missed:  # noqa: ANN401 - as _ask
    if _unasked(runs).update(cancel_requested_at_ms=at_ms):
        announce_cancel_request(runs.db)
        return CancelRequested(at_ms)
    return _judge_miss(operation, members.values(*_JUDGED))


def _unasked(runs: Any) -> Any:  # noqa: ANN401 - a queryset of either manager
    return runs.filter(cancel_requested_at_ms__isnull=True, status__in=LIVE_STATUSES)


def _judge_miss(operation: str, rounds: Iterable[dict[str, Any]]) -> CancelOutcome | _Missed:
    """
    Say why nothing was updated: the status is judged before the column.

    In a lineage a live requested round beats settled ones, and the later of two equals wins.
    """
    answer: CancelOutcome = NotFound()
    for row in rounds:
        run_id, status, requested_at_ms = (row[name] for name in _JUDGED)
        if status not in RunStatus.values:
            raise RunDecodeFailed(
                operation, "could not decode run row", {"run_id": run_id, "stage": "row-schema"}
            )
        if status in TERMINAL_STATUSES:
            if not isinstance(answer, AlreadyRequested):
                answer = Terminal(RunStatus(status))
        elif requested_at_ms is None:
            return _Missed(run_id)
        else:
            answer = AlreadyRequested(requested_at_ms)
    return answer
