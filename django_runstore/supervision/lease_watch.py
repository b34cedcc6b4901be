"""
How long an ownership has gone without a confirmed heartbeat. Spec: run-store 1.3, 7.3.

Pure: nothing here reads a clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django_runstore.durations import LeaseDurations


@dataclass(frozen=True, slots=True)
class Moment:
    """One instant as two clocks tell it: the one that stamps leases, and one that only runs."""

    clock_ms: float
    boottime_ms: float

    @property
    def reading_ms(self) -> int:
        """The whole milliseconds that a heartbeat sends."""
        return math.floor(self.clock_ms)

    def since(self, earlier: Moment) -> float:
        """
        Tell how much time passed since ``earlier``, by the clock that saw more of it.

        A clock that was set back must not make an old confirmation look young.
        """
        return max(self.clock_ms - earlier.clock_ms, self.boottime_ms - earlier.boottime_ms)


class LeaseWatch:
    """The last confirmation of one ownership, and what follows from its age."""

    def __init__(self, lease: LeaseDurations, confirmed: Moment) -> None:
        self._tolerance_ms = lease.write_tolerance_ms
        self.last_confirmed = confirmed

    def confirm(self, sent: Moment) -> None:
        """
        Take a beat that was written for confirmed as of ``sent``.

        Not as of its completion: the stamp in the row is the reading that was sent. A later
        confirmation is never replaced by an earlier one.
        """
        if sent.boottime_ms > self.last_confirmed.boottime_ms:
            self.last_confirmed = sent

    def unconfirmed_ms(self, now: Moment) -> int:
        """Tell for how many whole milliseconds nothing has been confirmed."""
        return math.floor(now.since(self.last_confirmed))

    def remaining_ms(self, now: Moment) -> float:
        """Tell how long the owner may still write; zero or less when no longer."""
        return self._tolerance_ms - now.since(self.last_confirmed)

    def is_overdue(self, now: Moment) -> bool:
        """Tell whether the write tolerance is used up; exactly used up is."""
        return self.remaining_ms(now) <= 0
