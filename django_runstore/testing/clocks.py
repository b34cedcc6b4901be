"""A clock that a test turns by hand."""

from __future__ import annotations

import threading


class FakeClock:
    """
    A clock that stands still until it is told otherwise; safe to share between threads.

    Example:
        >>> clock = FakeClock(0)
        >>> clock.advance(30_001)
        >>> clock.now_ms()
        30001
    """

    def __init__(self, now_ms: float = 0) -> None:
        self._lock = threading.Lock()
        self._now_ms = now_ms

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
