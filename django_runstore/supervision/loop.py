"""The main loop of a supervisor: who is listened to, in which order, and when it is over."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from django_runstore import conf
from django_runstore.clocks import boottime_ms
from django_runstore.supervision.announcements import counted
from django_runstore.supervision.crew import Ended
from django_runstore.supervision.execution import KILL_AFTER_MS
from django_runstore.supervision.ownership_news import Lost
from django_runstore.supervision.pauses import Timer

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_runstore.liveness import OwnerLock
    from django_runstore.supervision.crew import Crew, Place
    from django_runstore.supervision.executions import Executions
    from django_runstore.supervision.lease_keeper import LeaseKeeper
    from django_runstore.supervision.ownership_news import OwnershipNews
    from django_runstore.supervision.rounds import Rounds
    from django_runstore.supervision.settlement import Settler
    from django_runstore.supervision.signals import StopSignals
    from django_runstore.supervision.stalls import Stalls
    from django_runstore.supervision.wake_ups import WakeUps

logger = logging.getLogger("django_runstore.supervision")

MOST_FAILED_STARTS: Final = 3
"""How often workers may fail to start before ``--drain`` and ``--once`` give up."""

LAST_ATTEMPTS_MS: Final = 5_000
"""How long settling goes on after a second stop signal."""

SHORTEST_NAP_MS: Final = 20

LONGEST_NAP_MS: Final = 1_500
"""How long the end of the pulse may go unnoticed, and how old a probe file may become."""

TOUCH_LOCK_MS: Final = 60 * 60 * 1000
"""How often the lock file is marked as in use."""


class ExitStatus(IntEnum):
    """How a supervisor ended; the exit status of ``runstore_supervise``."""

    DONE = 0
    """It was stopped or had nothing left to do, and gave back what it owned."""

    NO_WORKERS = 3
    """With ``--drain`` or ``--once``: the workers could not start."""

    UNSETTLED = 4
    """The database did not take what was to be settled; the runs will be taken over."""

    PULSE_DIED = 70
    """A defect: the thread that keeps the leases ended. The runs were stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndOptions:
    """When the loop ends: ``grace_ms`` after a signal, or by itself."""

    grace_ms: int
    drain: bool = False
    once: bool = False


class Loop:
    """
    One turn after the other, until there is a reason to end.

    Args:
        news: What the keeper's thread finds out about the ownerships.
        wake_ups: What the database says by itself.
        lock: The owner's, held by whoever calls.
        on_stopping: Called when nothing more will be claimed; must not wait.
        on_turn: Called in every turn; must neither wait nor fail.
    """

    def __init__(
        self,
        options: EndOptions,
        *,
        crew: Crew,
        executions: Executions,
        keeper: LeaseKeeper,
        settler: Settler,
        rounds: Rounds,
        stalls: Stalls,
        signals: StopSignals,
        news: OwnershipNews,
        wake_ups: WakeUps,
        lock: OwnerLock,
        on_stopping: Callable[[], object],
        on_turn: Callable[[], object] = lambda: None,
    ) -> None:
        self._options = options
        self._on_stopping = on_stopping
        self._on_turn = on_turn
        self._crew = crew
        self._executions = executions
        self._keeper = keeper
        self._settler = settler
        self._rounds = rounds
        self._stalls = stalls
        self._signals = signals
        self._news = news
        self._wake_ups = wake_ups
        self._lock = lock
        self._lock_timer = Timer(TOUCH_LOCK_MS, jitter=True)
        self._lock_timer.restart()
        self._lease = conf.current().lease
        self._signals_taken = 0
        self._leave_at_ms: float | None = None
        self._pulse_died = False

    def run(self) -> ExitStatus:
        """Turn until it is over."""
        while (status := self._status()) is None:
            self._turn()
        return status

    def _turn(self) -> None:
        owned = len(self._executions)
        events = self._crew.listen(self._nap_ms())
        # Before what was heard: a signal to the whole process group makes workers leave too,
        # and they do that because of the signal.
        self._take_signals()
        for event in events:
            if isinstance(event, Ended):
                self._executions.worker_ended(event)
            else:
                self._executions.hear(event)
        self._take_news()
        self._on_turn()
        self._watch_pulse()
        self._executions.enforce_stops()
        self._executions.settled(self._settler.attempt(may_settle=self._executions.may_settle))
        self._rounds.look_for_requests()
        self._stalls.look()
        self._touch_lock()
        if self._is_stopping:
            for place in self._executions.idle_places():
                self._crew.dismiss(place)
            return
        if len(self._executions) < owned and self._options.drain:
            # What has just ended may have left something to do.
            self._rounds.claim_soon()
        self._rounds.look_for_the_dead()
        if self._signals.count == self._signals_taken:
            # Otherwise a signal came during this turn, and the next one begins to drain.
            self._rounds.claim(self._places_to_fill())
        self._crew.refill()

    def _take_news(self) -> None:
        """Act on what other threads have found out."""
        for news in self._news.take():
            if isinstance(news, Lost):
                self._executions.ownership_lost(
                    news.run_id, news.fence, kill_after_ms=self._lease.heartbeat_interval_ms
                )
            else:
                self._executions.ownership_lapsed(news.run_id, news.fence)
        if self._wake_ups.take_cancel_requested():
            self._rounds.look_soon()
        if self._wake_ups.take_claimable():
            self._rounds.claim_soon()

    def _places_to_fill(self) -> list[Place]:
        places = self._executions.idle_places()
        if not self._options.once:
            return places
        # One look, and that with all workers there.
        is_complete = len(places) == len(self._crew.places)
        return places if is_complete and not self._rounds.has_looked else []

    def _touch_lock(self) -> None:
        """Keep cleaners of temporary folders away from the lock file."""
        if self._lock_timer.remaining_ms() > 0:
            return
        self._lock_timer.restart()
        try:
            self._lock.touch()
        except OSError as error:
            logger.warning("the lock file could not be touched: %s", error.strerror)

    # --- when ---------------------------------------------------------------------

    @property
    def _is_stopping(self) -> bool:
        return self._leave_at_ms is not None

    def _status(self) -> ExitStatus | None:
        """Tell how it ended; None while it goes on."""
        is_busy = len(self._executions) > 0 or len(self._settler) > 0
        if self._leave_at_ms is not None:
            if is_busy:
                return ExitStatus.UNSETTLED if boottime_ms() > self._leave_at_ms else None
            return ExitStatus.PULSE_DIED if self._pulse_died else ExitStatus.DONE
        if is_busy or not (self._options.drain or self._options.once):
            return None
        if self._options.once and self._rounds.has_looked:
            return ExitStatus.DONE
        if (
            self._options.drain
            and self._rounds.found_nothing
            and not self._rounds.others_hold_due()
        ):
            return ExitStatus.DONE
        if self._crew.failed_starts >= MOST_FAILED_STARTS:
            logger.error("no worker can be started; giving up")
            return ExitStatus.NO_WORKERS
        return None

    def _nap_ms(self) -> float:
        """Tell how long nothing is to be done unless something happens."""
        naps = [
            self._executions.next_deadline_in_ms(),
            self._crew.next_start_in_ms(),
            self._stalls.next_look_in_ms(),
        ]
        if self._leave_at_ms is None:
            naps.append(self._rounds.next_sweep_in_ms())
        else:
            naps.append(self._leave_at_ms - boottime_ms())
        if len(self._settler):
            # Held back until a confirmation comes, or until the database answers.
            naps.append(max(SHORTEST_NAP_MS, self._settler.backoff.remaining_ms()))
        if self._executions.under_way():
            naps.append(self._rounds.next_look_in_ms())
        if not self._is_stopping and self._places_to_fill():
            naps.append(max(SHORTEST_NAP_MS, self._rounds.next_claim_in_ms()))
        return max(0.0, min(LONGEST_NAP_MS, *naps))

    # --- being stopped ------------------------------------------------------------

    def _watch_pulse(self) -> None:
        if self._keeper.is_alive() or self._pulse_died:
            return
        logger.critical("the pulse has ended by itself; everything is stopped")
        self._pulse_died = True
        self._stop_at_once()

    def _take_signals(self) -> None:
        count = self._signals.count
        if count == self._signals_taken:
            return
        first = self._signals_taken == 0
        self._signals_taken = count
        if first and count == 1 and not self._is_stopping:
            self._drain()
        else:
            self._stop_at_once()

    def _drain(self) -> None:
        self._on_stopping()
        busy = self._executions.under_way()
        logger.info(
            "stopping: nothing more is claimed; %s may take %.1f s to come to a safe point; "
            "signal again to stop at once",
            counted(len(busy), "run"),
            self._options.grace_ms / 1000,
        )
        # Past the lease nothing is left to be given back: others take it over.
        self._leave_at_ms = boottime_ms() + self._options.grace_ms + self._lease.stale_after_ms
        for execution in busy:
            self._executions.stop(
                execution,
                "draining",
                grace_ms=self._options.grace_ms,
                kill_after_ms=KILL_AFTER_MS,
            )

    def _stop_at_once(self) -> None:
        self._on_stopping()
        busy = self._executions.under_way()
        logger.warning("stopping at once: %s interrupted", counted(len(busy), "run"))
        leave_at_ms = boottime_ms() + LAST_ATTEMPTS_MS
        self._leave_at_ms = min(leave_at_ms, self._leave_at_ms or leave_at_ms)
        for execution in busy:
            self._executions.stop(execution, "stopping", grace_ms=0, kill_after_ms=0)
