"""Time that a test turns by hand, and time that is wrong."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django_runstore.clocks import disguised_clocks, takeovers_blocked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django_runstore.clocks import Clock


class FakeClock:
    """
    A clock that stands still until it is told otherwise; safe to share between threads.

    Args:
        now_ms: Where it begins, in milliseconds since the Unix epoch. A database alias in its
            place, as the settings give it to ``RUNSTORE["CLOCK"]``, begins at 0.

    Example:
        >>> clock = FakeClock(0)
        >>> clock.advance(30_001)
        >>> clock.now_ms()
        30001
    """

    def __init__(self, now_ms: float | str = 0) -> None:
        self._lock = threading.Lock()
        self._now_ms = 0 if isinstance(now_ms, str) else now_ms

    def now_ms(self) -> float:
        """Read the time in milliseconds since the Unix epoch."""
        with self._lock:
            return self._now_ms

    def advance(self, ms: float) -> None:
        """Move the time by ``ms`` milliseconds; a negative number sets it back."""
        with self._lock:
            self._now_ms += ms

    def set(self, ms: float) -> None:
        """Set the time to ``ms`` milliseconds since the Unix epoch."""
        with self._lock:
            self._now_ms = ms


class SkewedClock:
    """
    A clock that is off by so many milliseconds; ahead when positive, behind when negative.

    Attributes:
        clock: The clock that is right.
    """

    def __init__(self, clock: Clock, skew_ms: float) -> None:
        self.clock = clock
        self._skew_ms = skew_ms

    def now_ms(self) -> float:
        """Read the wrong time, in milliseconds since the Unix epoch; never before it."""
        return max(0, self.clock.now_ms() + self._skew_ms)

    def takeovers_blocked(self) -> bool:
        """Tell what the clock that is right tells: it does not know that it is read wrongly."""
        return takeovers_blocked(self.clock)


@contextmanager
def use_clock(clock: Clock) -> Iterator[Clock]:
    """
    Inside the block, have every store of this process read ``clock``, on every database.

    Not those that were given a clock of their own: ``RunStore(clock=...)``.

    Example::

        with use_clock(FakeClock(1_767_225_600_000)) as clock:
            handle = reminder.submit(available_at_ms=clock.now_ms() + 60_000)
    """
    with disguised_clocks(lambda _: clock):
        yield clock


@contextmanager
def clock_skew(seconds: float) -> Iterator[None]:
    """
    Inside the block, set the store's clock of this process wrong.

    Args:
        seconds: How far ahead of the right time; behind when negative.

    What the store keeps to in spite of that: a row is taken over only on evidence, a
    reading that is off by more than ``SKEW_ALLOWANCE_MS`` is refused, and a heartbeat never
    goes back. Blocks inside each other add up.
    """
    with disguised_clocks(lambda clock: SkewedClock(clock, seconds * 1_000)):
        yield
