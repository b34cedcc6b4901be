"""Whether a run whose handler raised is executed again, and when."""

import logging
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from django_runstore.durable.integers import exact_integer

logger = logging.getLogger("django_runstore.handlers")

MOST_ATTEMPTS: Final = 1_000_000
LONGEST_DELAY_MS: Final = 366 * 24 * 60 * 60 * 1_000
"""A year; a longer delay is cut to it, so that no mistake in a formula parks a run for ever."""

_LARGEST_EXPONENT: Final = 62

Backoff: TypeAlias = int | Sequence[int] | Callable[[int], float]


class NonRetryableError(Exception):
    """
    Raise it, or a subclass, from a handler whose run would fail the same way each time.

    The run fails at once, however many attempts ``max_attempts`` would leave it.
    """


@dataclass(frozen=True, slots=True)
class ExponentialBackoff:
    """
    Delays that grow with each failure, up to a bound.

    Attributes:
        first_ms: The delay after the first failure, in milliseconds.
        factor: By how much each delay is longer than the one before.
        longest_ms: No delay is longer.
        jitter: The part of each delay, 0 to 1, that is left to chance, so that runs that
            failed together do not come back together.
    """

    first_ms: int = 1_000
    factor: float = 2.0
    longest_ms: int = 15 * 60 * 1_000
    jitter: float = 0.5

    def __call__(self, failures: int) -> float:
        """Give the delay after this many failures, in milliseconds."""
        # The exponent is bounded: a run may fail a million times.
        growth = self.factor ** min(failures - 1, _LARGEST_EXPONENT)
        delay_ms = min(self.first_ms * growth, self.longest_ms)
        return delay_ms * random.uniform(1 - self.jitter, 1)  # noqa: S311 - no secret


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """
    How often the runs of a handler may fail, and how long each waits in between.

    Attributes:
        max_attempts: Executions that may end with an exception; the last one settles the run.
            What is not the handler's doing (a drain, a lost worker or host) does not count.
        backoff: Milliseconds; the same each time, one per failure (the last one goes on), or
            a function of the number of failures.
    """

    max_attempts: int = 1
    backoff: Backoff = ExponentialBackoff()

    def delay_ms(self, failures: int) -> int:
        """
        Say how long a run waits after its ``failures``-th failure, in whole milliseconds.

        A function of the project that raises, or gives no number, costs the default delay and
        not the run.
        """
        try:
            delay_ms = float(self._chosen(failures))
        except Exception as error:  # noqa: BLE001 - whatever a project's function raises
            # The class alone: the function may have been handed anything.
            logger.error(  # noqa: TRY400
                "the backoff of a handler failed (%s); the default is used", type(error).__name__
            )
            delay_ms = ExponentialBackoff()(failures)
        if math.isnan(delay_ms):
            delay_ms = ExponentialBackoff()(failures)
        return math.ceil(min(max(delay_ms, 0.0), LONGEST_DELAY_MS))

    def _chosen(self, failures: int) -> float:
        if isinstance(self.backoff, Sequence):
            return self.backoff[min(failures, len(self.backoff)) - 1]
        return self.backoff(failures) if callable(self.backoff) else self.backoff


def is_backoff(value: object) -> bool:
    """Tell whether a value can serve as ``RetryPolicy.backoff``."""
    if callable(value):
        return True
    delays = value if isinstance(value, list | tuple) else [value]
    return bool(delays) and all(_is_delay(delay) for delay in delays)


def _is_delay(value: object) -> bool:
    delay_ms = exact_integer(value)
    return delay_ms is not None and 0 <= delay_ms <= LONGEST_DELAY_MS
