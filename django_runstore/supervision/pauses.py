"""When something is to be done again: at intervals, or later and later without success."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from django_runstore.clocks import boottime_ms

if TYPE_CHECKING:
    from collections.abc import Callable

POLL_GROWTH: Final = 1.5
"""By how much a pause grows with every look that finds nothing."""


class Backoff:
    """
    How long to leave something alone that failed: doubling, bounded, jittered.

    Args:
        shortest_ms: The pause after the first failure.
        longest_ms: The longest pause.
        read_ms: A clock for intervals; replaced in tests.
    """

    def __init__(
        self,
        shortest_ms: int,
        longest_ms: int,
        read_ms: Callable[[], float] = boottime_ms,
    ) -> None:
        self.failures = 0
        self._shortest_ms = shortest_ms
        self._longest_ms = longest_ms
        self._read_ms = read_ms
        self._due_at_ms = float("-inf")

    def failed(self) -> None:
        """Begin a pause, longer than the one before."""
        self.failures += 1
        # The exponent is bounded too: an outage of days would make it a huge number.
        longest = min(self._shortest_ms * 2 ** min(self.failures - 1, 32), self._longest_ms)
        # Jittered, so that those who failed together do not come back together.
        pause = random.uniform(longest / 2, longest)  # noqa: S311 - jitter, not a secret
        self._due_at_ms = self._read_ms() + pause

    def succeeded(self) -> None:
        """Forget the failures."""
        self.failures = 0
        self._due_at_ms = float("-inf")

    def remaining_ms(self) -> float:
        """Tell how long the pause still lasts; 0 when it is over."""
        return max(0.0, self._due_at_ms - self._read_ms())


class Timer:
    """Says when something is due again."""

    def __init__(self, interval_ms: int, *, jitter: bool = False) -> None:
        self._interval_ms = interval_ms
        self._jitter = jitter
        self._due_at_ms = float("-inf")

    def remaining_ms(self) -> float:
        """Tell how long until it is due."""
        return max(0.0, self._due_at_ms - boottime_ms())

    def restart(self) -> None:
        """Begin the interval anew; jittered, so that supervisors do not ask in step."""
        pause_ms = _jittered(self._interval_ms) if self._jitter else self._interval_ms
        self._due_at_ms = boottime_ms() + pause_ms

    def expire(self) -> None:
        """Make it due now."""
        self._due_at_ms = float("-inf")


class Poll:
    """
    When to look again: soon while there is something to find, later and later while not.

    Args:
        shortest_ms: The pause after a look that found something.
        longest_ms: What the pause grows to, by half each time; jittered like a ``Timer``.
    """

    def __init__(self, shortest_ms: int, longest_ms: int) -> None:
        self._shortest_ms = shortest_ms
        self._longest_ms = max(shortest_ms, longest_ms)
        self._pause_ms: float = shortest_ms
        self._looked_at_ms = self._due_at_ms = float("-inf")

    def remaining_ms(self) -> float:
        """Tell how long until it is due."""
        return max(0.0, self._due_at_ms - boottime_ms())

    def looked(self, *, found: bool) -> None:
        """Begin the next pause, with a longer one to follow unless something was found."""
        if found:
            self._pause_ms = self._shortest_ms
        self._looked_at_ms = boottime_ms()
        self._due_at_ms = self._looked_at_ms + _jittered(self._pause_ms)
        self._pause_ms = min(self._pause_ms * POLL_GROWTH, self._longest_ms)

    def hasten(self, rest_ms: float) -> None:
        """Make it due once ``rest_ms`` have passed since the last look, and the pauses short."""
        self._pause_ms = self._shortest_ms
        self._due_at_ms = min(self._due_at_ms, self._looked_at_ms + rest_ms)


def _jittered(pause_ms: float) -> float:
    """Stretch or shorten a pause by up to a fifth, so that processes do not ask in step."""
    return pause_ms * random.uniform(0.8, 1.2)  # noqa: S311 - jitter, not a secret
