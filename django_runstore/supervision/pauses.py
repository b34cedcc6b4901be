"""When something is to be done again: at intervals, or later and later while it fails."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from django_runstore.clocks import boottime_ms

if TYPE_CHECKING:
    from collections.abc import Callable


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
        factor = random.uniform(0.8, 1.2) if self._jitter else 1.0  # noqa: S311 - no secret
        self._due_at_ms = boottime_ms() + self._interval_ms * factor

    def expire(self) -> None:
        """Make it due now."""
        self._due_at_ms = float("-inf")
