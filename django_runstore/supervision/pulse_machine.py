"""
The decisions of the heartbeat loop, and nothing else: no clock, no thread, no database.

A driver asks ``decide(now)`` what to do, does it, and tells how it went. The two activities
of the specification, beating and watching the deadline, are one sequence of decisions here,
because the driver never blocks: while a beat hangs it goes on asking. Spec: run-store 7.3, 7.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Literal, TypeAlias

from django_runstore.supervision.lease_watch import LeaseWatch, Moment

if TYPE_CHECKING:
    from django_runstore.durations import LeaseDurations

EndReason: TypeAlias = Literal["lost", "lapsed", "stopped"]


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait for an answer, but not longer than this."""

    ms: float


@dataclass(frozen=True, slots=True)
class Beat:
    """Send a heartbeat."""


@dataclass(frozen=True, slots=True)
class Reconfirm:
    """Ask once whether the run is still ours."""


@dataclass(frozen=True, slots=True)
class ReportReconfirmed:
    """Tell the host that the run was ours all the time; it has to take note of it in time."""

    unconfirmed_ms: int


@dataclass(frozen=True, slots=True)
class ReportLapse:
    """Warn and tell the host that the ownership lapsed; the end follows."""

    unconfirmed_ms: int


@dataclass(frozen=True, slots=True)
class End:
    """Stop, and stop the owned work."""

    reason: EndReason


Step: TypeAlias = Sleep | Beat | Reconfirm | ReportReconfirmed | ReportLapse
Decision: TypeAlias = Step | End


class _Phase(Enum):
    KEEPING = auto()
    RECONFIRMING = auto()
    RECONFIRMED = auto()
    REPORTING = auto()
    LAPSED = auto()
    REPORTING_LAPSE = auto()
    ENDED = auto()


class PulseMachine:
    """
    One ownership, from its start to its end.

    Args:
        lease: The durations in force.
        now: When the loop starts; the ownership counts as confirmed by then.
    """

    def __init__(self, lease: LeaseDurations, now: Moment) -> None:
        self._interval_ms = lease.heartbeat_interval_ms
        self._watch = LeaseWatch(lease, now)
        self._is_failing = False
        self._rests_since = now
        self._beat_sent: Moment | None = None
        self._phase = _Phase.KEEPING
        # Of the reconfirmation or the report in progress.
        self._began = now
        self._unconfirmed_ms = 0
        self._reason: EndReason = "stopped"

    def decide(self, now: Moment) -> Decision:
        """Tell what to do now. Anything but ``Sleep`` is said once and then under way."""
        match self._phase:
            case _Phase.KEEPING:
                return self._keep(now)
            case _Phase.RECONFIRMING | _Phase.REPORTING:
                left_ms = self._interval_ms - now.since(self._began)
                if left_ms > 0:
                    return Sleep(left_ms)
                return self._lapse(now)
            case _Phase.RECONFIRMED:
                self._phase = _Phase.REPORTING
                return ReportReconfirmed(self._unconfirmed_ms)
            case _Phase.LAPSED:
                return self._lapse(now)
            case _Phase.REPORTING_LAPSE:
                left_ms = self._interval_ms - now.since(self._began)
                if left_ms > 0:
                    return Sleep(left_ms)
                self._phase = _Phase.ENDED
        return End(self._reason)

    def beat_confirmed(self, now: Moment) -> None:
        """Take note that the beat under way was written."""
        if self._beat_sent is not None:
            self._watch.confirm(self._beat_sent)
        self._is_failing = False
        self._rest(now)

    def beat_failed(self, now: Moment) -> bool:
        """Take note that the beat under way failed; True when that begins an outage."""
        begins_outage = not self._is_failing
        self._is_failing = True
        self._rest(now)
        return begins_outage

    def ownership_lost(self) -> None:
        """Take note that the run is somebody else's, or gone."""
        self._end("lost")

    def stop(self) -> None:
        """Take note that the host wants no more."""
        self._end("stopped")

    def reconfirmed(self) -> None:
        """Take note that the reconfirmation was granted."""
        self._phase = _Phase.RECONFIRMED

    def not_reconfirmed(self) -> None:
        """Take note that the reconfirmation, or its report, came to nothing."""
        self._phase = _Phase.LAPSED

    def reconfirmation_reported(self, now: Moment) -> None:
        """Take note that the host knows of the reconfirmation; the loop goes on."""
        # As of the reading that was sent, as for a beat.
        self._watch.confirm(self._began)
        self._is_failing = False
        self._phase = _Phase.KEEPING
        if self._beat_sent is None:
            self._rest(now)

    def lapse_reported(self) -> None:
        """Take note that the host knows of the lapse."""
        self._phase = _Phase.ENDED

    def _keep(self, now: Moment) -> Decision:
        remaining_ms = self._watch.remaining_ms(now)
        if remaining_ms <= 0:
            self._began = now
            self._unconfirmed_ms = self._watch.unconfirmed_ms(now)
            self._phase = _Phase.RECONFIRMING
            return Reconfirm()
        # The clock is read again after an interval at the latest: it may have been stopped,
        # or set, in the meantime.
        nap_ms = min(remaining_ms, self._interval_ms)
        if self._beat_sent is not None:
            return Sleep(nap_ms)
        due_in_ms = self._interval_ms - now.since(self._rests_since)
        if due_in_ms <= 0:
            self._beat_sent = now
            return Beat()
        return Sleep(min(nap_ms, due_in_ms))

    def _lapse(self, now: Moment) -> ReportLapse:
        self._reason = "lapsed"
        self._began = now
        self._phase = _Phase.REPORTING_LAPSE
        return ReportLapse(self._unconfirmed_ms)

    def _rest(self, now: Moment) -> None:
        self._beat_sent = None
        self._rests_since = now

    def _end(self, reason: EndReason) -> None:
        # A lapse that has been announced stays one.
        if self._phase not in {_Phase.REPORTING_LAPSE, _Phase.ENDED}:
            self._reason = reason
        self._phase = _Phase.ENDED
