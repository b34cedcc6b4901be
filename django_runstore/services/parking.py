"""Say what a run waits for, and wake it. Spec: run-store 12, departure D9."""

import logging
from typing import Any, Final

from django.db.models import F, Value
from django.db.models.functions import Coalesce, Least

from django_runstore.arbiters.lease import AskGuard, Refused
from django_runstore.db.run_notices import announce_claimable
from django_runstore.errors import RunDecodeFailed, RunNotFound
from django_runstore.metrics import tallies
from django_runstore.models import Run
from django_runstore.outcomes import (
    FenceLost,
    NotFound,
    NotWaiting,
    Parked,
    ParkOutcome,
    WakeOutcome,
    Woken,
)
from django_runstore.owners import OwnerId
from django_runstore.querysets import RunQuerySet
from django_runstore.rows import decode_waiting
from django_runstore.services import arguments, door
from django_runstore.services.core import StoreCore
from django_runstore.services.twin import twin
from django_runstore.services.waits import NOT_WAITING, waiting_columns
from django_runstore.snapshots import Waiting, WaitingRun
from django_runstore.states import RunStatus, is_terminal_run_status

_log = logging.getLogger("django_runstore.services")

LARGEST_LIST: Final = 1_000

_WAITING_COLUMNS: Final = tuple(NOT_WAITING)


class Parking(StoreCore):
    """
    A wait is four columns, written together and cleared together.

    To park is not to suspend: an owner parks its run and suspends it in one transaction, and
    until then the run is its own. ``claim_many`` clears the wait of what it claims;
    ``claim_and_own`` and ``activate`` leave it, and so does every transition. A settled run
    keeps what it was waiting for as a record and waits no more.
    """

    @door.operation(tallies.uncounted)
    def park(
        self,
        run_id: str,
        waiting: Waiting,
        owner: OwnerId,
        *,
        fence: int | None = None,
    ) -> ParkOutcome:
        """
        Record what a run that ``owner`` runs is waiting for; an earlier wait is replaced.

        Does not suspend. Suspend in the same transaction::

            with transaction.atomic():
                match store.park(run_id, Waiting("timer", wake_at_ms), owner, fence=fence):
                    case Parked():
                        store.transition_owned(
                            run_id, owner, "suspended", fence=fence, available_at_ms=wake_at_ms
                        )

        Args:
            waiting: The reason, and what else is known of the wait.
            fence: The grant this ownership began with; checked too when given.

        Returns:
            ``Parked``: recorded.
            ``FenceLost``: not running under this owner (and grant); stop.
            ``NotFound``: there is no such run.
        """
        operation = "park"
        identifier = arguments.text(operation, run_id)
        columns = waiting_columns(operation, waiting)
        holder = arguments.owner(operation, owner)
        grant = arguments.fence(operation, fence)
        door.note(run_id=identifier, owner_host_id=holder.host_id)

        def body() -> ParkOutcome:
            row = self._lock(identifier)
            if row is None:
                return NotFound()
            decision = self._decide(row, row.lease, AskGuard(holder, grant))
            if isinstance(decision.answer, Refused) or not row.is_owned_by(holder, grant):
                return FenceLost()
            self._apply(operation, row, columns)
            return Parked()

        return self._write(operation, body)

    @door.operation(tallies.uncounted)
    def wake(self, run_id: str) -> WakeOutcome:
        """
        Clear what a run waits for; a suspended one can be claimed now. Unfenced: anyone may.

        Returns:
            ``Woken``: it waits no more. Who wakes a run twice is told so the second time.
            ``NotWaiting``: it was not waiting, or had ended; nothing changed.
            ``NotFound``: there is no such run.
        """
        operation = "wake"
        identifier = arguments.text(operation, run_id)
        door.note(run_id=identifier)

        def body() -> WakeOutcome:
            row = self._lock(identifier)
            if row is None:
                return NotFound()
            if row.waiting_reason is None or is_terminal_run_status(row.status):
                return NotWaiting()
            columns = dict(NOT_WAITING)
            if row.status == RunStatus.SUSPENDED:
                now_ms = Value(self._now(operation))
                # An earlier time is its place in the queue; it keeps that.
                columns["available_at_ms"] = Least(Coalesce(F("available_at_ms"), now_ms), now_ms)
            self._apply(operation, row, columns)
            if row.status == RunStatus.SUSPENDED:
                announce_claimable(self.using, [row.queue])
            return Woken()

        return self._write(operation, body)

    @door.operation(tallies.uncounted)
    def waiting(self, run_id: str) -> Waiting | None:
        """
        Return what a run waits for; ``None`` when it does not, or has ended.

        Raises:
            RunNotFound: there is no such run, which is not the same as one that is awake.
            RunDecodeFailed: the stored wait breaks the invariants.
        """
        operation = "waiting"
        identifier = arguments.text(operation, run_id)
        door.note(run_id=identifier)
        columns = self._typed(
            operation,
            lambda: (
                self._all_runs().filter(pk=identifier).values("status", *_WAITING_COLUMNS).first()
            ),
        )
        if columns is None:
            raise RunNotFound(operation, f"run {identifier} was not found", {"run_id": identifier})
        if columns["waiting_reason"] is None or is_terminal_run_status(columns["status"]):
            return None
        return decode_waiting(operation, identifier, columns)

    @door.operation(tallies.uncounted)
    def waiting_runs(
        self,
        reason: str | None = None,
        *,
        due_before_ms: int | None = None,
        cancel_requested: bool | None = None,
        limit: int = 100,
    ) -> tuple[WaitingRun, ...]:
        """
        List unsettled runs that wait, the next to wake first, then by run id.

        Those that do not wake by themselves come last. A row that cannot be read is left
        out, with a warning in the log.

        Args:
            reason: Only waits of this reason.
            due_before_ms: Only those that wake by this time, itself included.
            cancel_requested: Only runs that were (or were not) asked to stop.
            limit: 1 to 1,000.
        """
        operation = "waiting_runs"
        wanted: dict[str, Any] = {}
        if reason is not None:
            wanted["waiting_reason"] = arguments.indexed_text(operation, reason, "reason")
        due_ms = arguments.optional_timestamp(operation, due_before_ms, "due_before_ms")
        if due_ms is not None:
            wanted["waiting_wake_at_ms__lte"] = due_ms
        if cancel_requested is not None:
            asked = arguments.flag(operation, cancel_requested, "cancel_requested")
            wanted["cancel_requested_at_ms__isnull"] = not asked
        most = arguments.limit(operation, limit, LARGEST_LIST)
        rows = (
            self._all_runs()
            .waiting()
            .filter(**wanted)
            .values("run_id", "cancel_requested_at_ms", *_WAITING_COLUMNS)
        )
        return self._typed(operation, lambda: _readable(operation, rows, most))

    def _all_runs(self) -> RunQuerySet:
        return Run.objects.using(self.using)

    apark = twin(park)
    awake = twin(wake)
    awaiting = twin(waiting)
    awaiting_runs = twin(waiting_runs)


def _readable(operation: str, rows: Any, most: int) -> tuple[WaitingRun, ...]:  # noqa: ANN401 - a queryset of mappings
    """Read on past rows that cannot be read, so that they do not hide those behind them."""
    found: dict[str, WaitingRun] = {}
    unreadable: list[str] = []
    while (wanted := most - len(found)) > 0:
        page = list(rows.exclude(pk__in=[*found, *unreadable])[:wanted])
        for columns in page:
            run_id = columns["run_id"]
            try:
                wait = decode_waiting(operation, run_id, columns)
            except RunDecodeFailed:
                _log.warning("run row cannot be decoded; left alone", extra={"run_id": run_id})
                unreadable.append(run_id)
            else:
                found[run_id] = WaitingRun(run_id, wait, columns["cancel_requested_at_ms"])
        if len(page) < wanted:
            break
    return tuple(found.values())
