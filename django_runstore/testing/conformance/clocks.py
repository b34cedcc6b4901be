"""What the store relies on when it reads a clock. Spec: run-store 1.4."""

import math
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from django_runstore.clocks import Clock, takeovers_blocked
from django_runstore.testing.conformance.expectations import covers, expect, expect_that

GREATEST_SAFE_INTEGER: Final = 2**53 - 1
READINGS: Final = 1_000
DAY_MS: Final = 24 * 3_600_000
PAUSE_S: Final = 0.05


class ClockConformance:
    """
    A clock of your own must pass every test.

    Set ``tells_the_time`` to False for one that does not run by itself or does not tell the
    present, such as a clock that a test turns by hand.
    """

    tells_the_time = True

    def make_clock(self) -> Clock:
        """Return the clock."""
        raise NotImplementedError(f"{type(self).__name__} must say how its clock is made")

    def test_a_reading_is_a_plain_number(self) -> None:
        reading = self.make_clock().now_ms()
        expect_that(type(reading) in (int, float), "a reading is an int or a float", reading)

    def test_a_reading_is_finite(self) -> None:
        reading = self.make_clock().now_ms()
        expect_that(math.isfinite(reading), "a reading is finite", reading)

    @covers(1)
    def test_a_reading_floors_to_whole_milliseconds_that_can_be_stored(self) -> None:
        reading = self.make_clock().now_ms()
        fits = 0 <= math.floor(reading) <= GREATEST_SAFE_INTEGER
        expect_that(fits, "a floored reading is a safe integer from 0 on", reading)

    def test_it_never_goes_back(self) -> None:
        clock = self.make_clock()
        readings = [clock.now_ms() for _ in range(READINGS)]
        falls = [pair for pair in pairwise(readings) if pair[1] < pair[0]]
        expect(falls, [], "no reading is less than the one before")

    def test_every_thread_reads_the_same_time(self) -> None:
        clock = self.make_clock()
        readings = [clock.now_ms(), _elsewhere(clock.now_ms), clock.now_ms()]
        expect_that(
            readings == sorted(readings), "no thread is ahead of or behind another", readings
        )

    def test_it_tells_the_milliseconds_of_the_unix_epoch(self) -> None:
        if self.tells_the_time:
            reading = self.make_clock().now_ms()
            near = abs(reading - time.time() * 1000) < DAY_MS
            expect_that(near, "a reading is within a day of this machine's time", reading)

    def test_it_runs_on_between_two_readings(self) -> None:
        if self.tells_the_time:
            clock = self.make_clock()
            began = time.monotonic()
            first = clock.now_ms()
            asleep = time.monotonic()
            time.sleep(PAUSE_S)
            awake = time.monotonic()
            passed_ms = clock.now_ms() - first
            # Half and double: two clocks may be disciplined apart, but not by that much.
            least_ms = (awake - asleep) * 1000 / 2
            most_ms = (time.monotonic() - began) * 1000 * 2
            rule = f"from {least_ms:.0f} to {most_ms:.0f} ms pass meanwhile"
            expect_that(least_ms <= passed_ms <= most_ms, rule, passed_ms)

    def test_it_can_say_whether_takeovers_are_blocked_before_and_after_a_reading(self) -> None:
        clock = self.make_clock()
        before = takeovers_blocked(clock)
        clock.now_ms()
        for answer in (before, takeovers_blocked(clock)):
            expect_that(answer is True or answer is False, "the answer is True or False", answer)


def _elsewhere(read: Callable[[], float]) -> float:
    """Read in a thread of its own."""
    readings: list[float] = []
    thread = threading.Thread(target=lambda: readings.append(read()))
    thread.start()
    thread.join()
    if not readings:
        raise AssertionError("every thread can read the clock: one could not")
    return readings[0]
