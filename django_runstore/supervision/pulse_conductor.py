"""
Carries out what ``pulse_machine`` decides. Spec: run-store 7.3, 7.4.

One thread conducts, and makes no call that can hang: every call into the database or into
the host is made in the background, so that nothing stops the deadline.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final, Protocol

from django.db import Error as DjangoDatabaseError

from django_runstore.clocks import DatabaseClock, boottime_ms
from django_runstore.errors import RunPersistenceFailed, StoreError
from django_runstore.outcomes import HeartbeatOutcome, Updated
from django_runstore.supervision.lease_watch import Moment
from django_runstore.supervision.pulse_machine import (
    Beat,
    End,
    EndReason,
    PulseMachine,
    Reconfirm,
    ReportLapse,
    ReportReconfirmed,
    Sleep,
    Step,
)

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from django_runstore.clocks import Clock
    from django_runstore.durations import LeaseDurations
    from django_runstore.owners import OwnerId
    from django_runstore.supervision.background import BackgroundCalls, Completion
    from django_runstore.supervision.host_hook import HostHook

logger = logging.getLogger("django_runstore.supervision")

DATABASE_ERRORS: Final = (StoreError, DjangoDatabaseError)
"""What a heartbeat may raise without anything being wrong with the code."""

_BEAT: Final = "heartbeat"
_RECONFIRM: Final = "reconfirm"
_REPORT: Final = "on_reconfirm"
_REPORT_LAPSE: Final = "on_lapse"


class KeepsLease(Protocol):
    """What a pulse needs of a store; ``RunStore`` has it."""

    def heartbeat(
        self, run_id: str, owner: OwnerId, now_ms: int | None = None, *, fence: int | None = None
    ) -> HeartbeatOutcome:
        """Move the heartbeat of a run that is owned."""
        ...

    def reconfirm(
        self, run_id: str, owner: OwnerId, now_ms: int | None = None, *, fence: int | None = None
    ) -> HeartbeatOutcome:
        """Renew an ownership that nobody has begun to take over."""
        ...


def failure_code(error: BaseException | None) -> str:
    """Name an error in a log record; its own words stay out, they can quote rows."""
    if isinstance(error, StoreError):
        return error.code
    if isinstance(error, DjangoDatabaseError):
        return RunPersistenceFailed.code
    return type(error).__name__


class OwnedRun:
    """The one run of a pulse: how it is renewed, and by which clocks."""

    def __init__(
        self,
        store: KeepsLease,
        run_id: str,
        owner: OwnerId,
        fence: int | None,
        clock: Clock | None,
    ) -> None:
        self.run_id = run_id
        self._store = store
        self._owner = owner
        self._fence = fence
        self._clock = clock
        # Reading the database's time may wait for the network, and with it the deadline.
        self._deadline_clock = None if isinstance(clock, DatabaseClock) else clock

    def now(self) -> Moment:
        """Read the clocks the deadline is kept by; never waits."""
        running_ms = boottime_ms()
        if self._deadline_clock is None:
            return Moment(running_ms, running_ms)
        return Moment(self._deadline_clock.now_ms(), running_ms)

    def heartbeat(self, sent: Moment) -> HeartbeatOutcome:
        """Send a beat with the reading taken at ``sent``, or with a later one."""
        reading = self._reading(sent)
        return self._store.heartbeat(self.run_id, self._owner, reading, fence=self._fence)

    def reconfirm(self, sent: Moment) -> HeartbeatOutcome:
        """Ask whether the run is still ours."""
        reading = self._reading(sent)
        return self._store.reconfirm(self.run_id, self._owner, reading, fence=self._fence)

    def _reading(self, sent: Moment) -> int | None:
        if self._deadline_clock is not None:
            return sent.reading_ms
        return None if self._clock is None else math.floor(self._clock.now_ms())


class Conductor:
    """Conducts one pulse, once."""

    def __init__(
        self,
        run: OwnedRun,
        lease: LeaseDurations,
        calls: BackgroundCalls,
        on_reconfirm: HostHook | None,
        on_lapse: HostHook | None,
    ) -> None:
        self._run = run
        self._machine = PulseMachine(lease, run.now())
        self._calls = calls
        self._on_reconfirm = on_reconfirm
        self._on_lapse = on_lapse

    def conduct(self, is_stopping: threading.Event) -> EndReason:
        """
        Beat until there is a reason to stop.

        Args:
            is_stopping: Set by whoever wants the pulse to stop, who wakes ``calls`` as well.

        Raises:
            BaseException: an interruption, or a defect of the store.
        """
        try:
            while True:
                if is_stopping.is_set():
                    self._machine.stop()
                now = self._run.now()
                decision = self._machine.decide(now)
                if isinstance(decision, End):
                    return decision.reason
                self._carry_out(decision, now)
        finally:
            self._calls.close()
            for hook in (self._on_reconfirm, self._on_lapse):
                if hook is not None:
                    hook.cancel()

    def _carry_out(self, step: Step, now: Moment) -> None:
        match step:
            case Sleep(ms):
                ended = self._calls.wait(ms)
                if ended is not None:
                    self._take(ended)
            case Beat():
                self._calls.start(_BEAT, lambda: self._run.heartbeat(now))
            case Reconfirm():
                self._calls.start(_RECONFIRM, lambda: self._run.reconfirm(now))
            case ReportReconfirmed(unconfirmed_ms):
                self._report_reconfirmed(unconfirmed_ms)
            case ReportLapse(unconfirmed_ms):
                self._report_lapse(unconfirmed_ms)

    def _report_reconfirmed(self, unconfirmed_ms: int) -> None:
        hook = self._on_reconfirm
        if hook is None:
            self._machine.reconfirmation_reported(self._run.now())
        else:
            self._calls.start(_REPORT, lambda: hook(unconfirmed_ms))

    def _report_lapse(self, unconfirmed_ms: int) -> None:
        self._calls.abandon(_RECONFIRM)
        self._calls.abandon(_REPORT)
        logger.warning(
            "run lease lapsed; interrupting owned work",
            extra={"run_id": self._run.run_id, "unconfirmed_ms": unconfirmed_ms},
        )
        hook = self._on_lapse
        if hook is None:
            self._machine.lapse_reported()
        else:
            self._calls.start(_REPORT_LAPSE, lambda: hook(unconfirmed_ms))

    def _take(self, ended: Completion) -> None:
        if ended.error is not None and not isinstance(ended.error, Exception):
            # An interruption is passed on as it is, whoever raised it.
            raise ended.error
        take: dict[str, Callable[[object, Exception | None], None]] = {
            _BEAT: self._take_beat,
            _RECONFIRM: self._take_reconfirmation,
            _REPORT: self._take_report,
            _REPORT_LAPSE: self._take_lapse_report,
        }
        take[ended.lane](ended.value, ended.error)

    def _take_beat(self, outcome: object, error: Exception | None) -> None:
        if error is None and isinstance(outcome, Updated):
            self._machine.beat_confirmed(self._run.now())
        elif error is None:
            self._machine.ownership_lost()
        elif not isinstance(error, DATABASE_ERRORS):
            raise error
        elif self._machine.beat_failed(self._run.now()):
            logger.warning(
                "run heartbeat write failed",
                extra={"run_id": self._run.run_id, "code": failure_code(error)},
            )

    def _take_reconfirmation(self, outcome: object, error: Exception | None) -> None:
        if error is None and isinstance(outcome, Updated):
            self._machine.reconfirmed()
        else:
            self._machine.not_reconfirmed()

    def _take_report(self, _: object, error: Exception | None) -> None:
        if error is None:
            self._machine.reconfirmation_reported(self._run.now())
        else:
            self._machine.not_reconfirmed()

    def _take_lapse_report(self, _: object, error: Exception | None) -> None:
        if error is not None:
            logger.error(
                "run lapse hook failed",
                extra={"run_id": self._run.run_id, "code": failure_code(error)},
            )
        self._machine.lapse_reported()
