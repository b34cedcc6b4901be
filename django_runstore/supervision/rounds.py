"""What a supervisor asks the database for, over and over, with patience when it is away."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from django.db import Error as DjangoError

from django_runstore import conf
from django_runstore.clocks import boottime_ms
from django_runstore.db.boundary import drop_lost_connection
from django_runstore.display_text import printable
from django_runstore.errors import StoreError
from django_runstore.handlers import registry
from django_runstore.handlers.execution import Interrupted
from django_runstore.supervision.acknowledgements import Acknowledgements
from django_runstore.supervision.claims import claim_due
from django_runstore.supervision.due_rows import others_hold_due
from django_runstore.supervision.endings import UNANSWERED, Ending
from django_runstore.supervision.execution import CANCELLED, KILL_AFTER_MS
from django_runstore.supervision.owned_rows import cancel_requests, strays
from django_runstore.supervision.pauses import Backoff, Poll, Timer
from django_runstore.supervision.settlement import failure_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django_runstore.owners import OwnerId
    from django_runstore.services import RunStore
    from django_runstore.supervision.crew import Place
    from django_runstore.supervision.executions import Executions
    from django_runstore.supervision.lease_keeper import LeaseKeeper
    from django_runstore.supervision.settlement import Settler
    from django_runstore.supervision.sweep_report import SweepReport

logger = logging.getLogger("django_runstore.supervision")

SHORTEST_RETRY_MS: Final = 100
LONGEST_RETRY_MS: Final = 5_000
LONGEST_SWEEP_RETRY_MS: Final = 60_000

REST_MS: Final = 20
"""The shortest pause between two looks, however many notices come."""

SWEEPS_PER_LOOK_FOR_STRAYS: Final = 10
"""Runs nobody remembers come of claims that failed, after which they are looked for at once."""

UNCONFIRMED_PAUSE_MS: Final = 100
"""How often it is asked whether runs at hand are confirmed, so that more may be claimed."""

_DATABASE_ERRORS: Final = (StoreError, DjangoError, OSError)


class Rounds:
    """
    Claiming, noticing requests to cancel, and looking after what dead owners left.

    Each is a no-op until it is due, and none of them lets an error of the database out.

    Args:
        queues: Only these queues; None for all.
        sweep: Looks after the runs of dead owners.

    Attributes:
        has_looked: Whether anything was asked for to be claimed.
        found_nothing: Whether the last look found nothing and nothing was under way.
    """

    def __init__(
        self,
        store: RunStore,
        owner: OwnerId,
        queues: Sequence[str] | None,
        *,
        executions: Executions,
        keeper: LeaseKeeper,
        settler: Settler,
        sweep: Callable[[], SweepReport],
    ) -> None:
        settings = conf.current()
        self._store = store
        self._owner = owner
        self._queues = queues
        self._executions = executions
        self._keeper = keeper
        self._settler = settler
        self._sweep = sweep
        self._acknowledgements = Acknowledgements(store, owner)
        self._stop_grace_ms = settings.stop_grace_ms
        self._patience = Backoff(SHORTEST_RETRY_MS, LONGEST_RETRY_MS)
        self._claim_poll = Poll(settings.poll_interval_ms, settings.idle_poll_interval_ms)
        self._cancel_poll = Poll(settings.poll_interval_ms, settings.poll_interval_ms)
        interval_ms = settings.lease.heartbeat_interval_ms
        self._lock_wait_ms = interval_ms
        self._sweep_timer = Timer(interval_ms, jitter=True)
        self._sweep_timer.restart()
        self._sweep_patience = Backoff(interval_ms, LONGEST_SWEEP_RETRY_MS)
        self._stray_timer = Timer(SWEEPS_PER_LOOK_FOR_STRAYS * interval_ms, jitter=True)
        self._sweep_waits = (self._sweep_timer, self._sweep_patience, self._patience)
        self.has_looked = False
        self.found_nothing = False

    def next_claim_in_ms(self) -> float:
        """Tell when there is to be claimed again."""
        due_in_ms = max(self._claim_poll.remaining_ms(), self._patience.remaining_ms())
        return due_in_ms if self._keeper.all_confirmed() else max(due_in_ms, UNCONFIRMED_PAUSE_MS)

    def next_look_in_ms(self) -> float:
        """Tell when requests are to be looked for again."""
        return max(self._cancel_poll.remaining_ms(), self._patience.remaining_ms())

    def next_sweep_in_ms(self) -> float:
        """Tell when the dead are to be looked for again."""
        return max(wait.remaining_ms() for wait in self._sweep_waits)

    def claim_soon(self) -> None:
        """Claim without waiting for the next poll."""
        self._claim_poll.hasten(REST_MS)

    def look_soon(self) -> None:
        """Look for requests without waiting for the next poll."""
        self._cancel_poll.hasten(REST_MS)

    def others_hold_due(self) -> bool:
        """
        Tell whether what was found to be nothing is only locked by others; look again then.

        True also when the database did not say.
        """
        try:
            held = others_hold_due(
                self._store.using,
                int(self._store.clock.now_ms()),
                self._queues,
                registry.names(),
                lock_wait_ms=self._lock_wait_ms,
            )
        except _DATABASE_ERRORS as error:
            self._failed("looking for locked runs", error)
            held = True
        if held:
            self.found_nothing = False
        return held

    def claim(self, places: Sequence[Place]) -> None:
        """Claim one run for every idle worker, and no more: what waits can be done elsewhere."""
        # After a pause of the whole process it is not known yet whether the runs at hand
        # are still this owner's; until then it takes on nothing new.
        if not places or self.next_claim_in_ms() > 0:
            return
        asked_at_ms = boottime_ms()
        try:
            claimed = claim_due(self._store, self._owner, len(places), self._queues)
        except _DATABASE_ERRORS as error:
            self._failed("claiming", error)
            self._stray_timer.expire()
            return
        self._succeeded()
        self.has_looked = True
        self.found_nothing = not claimed and not len(self._executions)
        if len(claimed) < len(places):
            self._claim_poll.looked(found=bool(claimed))
        for run, place in zip(claimed, places, strict=False):
            self._executions.begin(run, place, asked_at_ms)

    def look_for_requests(self) -> None:
        """Notice requests to cancel what is being executed."""
        if self.next_look_in_ms() > 0:
            return
        self._cancel_poll.looked(found=True)
        asked = {
            execution.run_id: execution
            for execution in self._executions.under_way()
            if not execution.is_given_up
        }
        if not asked and not self._acknowledgements:
            return
        try:
            requested = cancel_requests(self._store.using, asked)
        except _DATABASE_ERRORS as error:
            self._failed("looking for cancel requests", error)
            return
        self._succeeded()
        for run_id in requested:
            execution = asked[run_id]
            self._executions.stop(
                execution,
                CANCELLED,
                grace_ms=self._stop_grace_ms,
                kill_after_ms=KILL_AFTER_MS,
            )
            self._acknowledgements.add(run_id, execution.fence)
        try:
            self._acknowledgements.write(self._executions)
        except _DATABASE_ERRORS as error:
            self._failed("acknowledging a cancel request", error)

    def look_for_the_dead(self) -> None:
        """Look after the runs of dead owners, and after one's own that nobody remembers."""
        if self.next_sweep_in_ms() > 0 or not self._keeper.all_confirmed():
            return
        self._sweep_timer.restart()
        try:
            if self._sweep().taken:
                # Most likely for whoever looks first.
                self.claim_soon()
            self._look_for_strays()
        except _DATABASE_ERRORS as error:
            self._failed("sweeping", error)
        except Exception as error:  # noqa: BLE001 - what breaks here must not end the runs at hand
            self._sweep_patience.failed()
            # The class alone: a traceback shows the values of the project's liveness check.
            logger.error("sweeping broke: %s", type(error).__name__)  # noqa: TRY400
        else:
            self._sweep_patience.succeeded()
            self._succeeded()

    def _look_for_strays(self) -> None:
        if self._stray_timer.remaining_ms() > 0:
            return
        for run_id, fence in strays(self._store.using, self._owner, self._executions):
            logger.warning("run %s: owned without being executed", printable(run_id))
            self._settler.add(Ending(run_id, fence, Interrupted(UNANSWERED)))
        self._stray_timer.restart()

    def _failed(self, doing: str, error: Exception) -> None:
        self._patience.failed()
        if self._patience.failures == 1:
            logger.warning(
                "the database failed while %s (%s); trying again", doing, failure_name(error)
            )
        drop_lost_connection(self._store.using)

    def _succeeded(self) -> None:
        if self._patience.failures:
            logger.info("the database answers again")
        self._patience.succeeded()
