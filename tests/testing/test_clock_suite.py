"""The public clock suite catches every clock that the store could not rely on."""

import math
import threading
import time

import pytest

from django_runstore.clocks import SystemClock
from django_runstore.testing.conformance import ClockConformance
from tests.testing.suites import assert_caught_by, failures_of, names_of, run_under_unittest


class Reads:
    """A clock that reads whatever the function gives."""

    def __init__(self, read):
        self.now_ms = read


def system_ms():
    return time.time_ns() / 1_000_000


class Sways:
    """Ahead one time, behind the next."""

    def __init__(self):
        self._sign = 1

    def now_ms(self):
        self._sign = -self._sign
        return system_ms() + 50 * self._sign


class RunsApart:
    """Each thread is a minute behind the one that started it."""

    def __init__(self):
        self._thread = threading.current_thread()

    def now_ms(self):
        return system_ms() - 60_000 * (threading.current_thread() is not self._thread)


class Unsure(Reads):
    def takeovers_blocked(self):
        return "perhaps"


STANDING = system_ms()

WRONG = {
    "a reading of another type": ("test_a_reading_is_a_plain_number", lambda: Reads(lambda: "0")),
    "a boolean": ("test_a_reading_is_a_plain_number", lambda: Reads(lambda: True)),
    "NaN": ("test_a_reading_is_finite", lambda: Reads(lambda: math.nan)),
    "infinity": ("test_a_reading_is_finite", lambda: Reads(lambda: math.inf)),
    "a time before 1970": (
        "test_a_reading_floors_to_whole_milliseconds_that_can_be_stored",
        lambda: Reads(lambda: -0.5),
    ),
    "nanoseconds": (
        "test_a_reading_floors_to_whole_milliseconds_that_can_be_stored",
        lambda: Reads(time.time_ns),
    ),
    "a clock that goes back": ("test_it_never_goes_back", Sways),
    "a clock per thread": ("test_every_thread_reads_the_same_time", RunsApart),
    "seconds": (
        "test_it_tells_the_milliseconds_of_the_unix_epoch",
        lambda: Reads(time.time),
    ),
    "a clock that stands still": (
        "test_it_runs_on_between_two_readings",
        lambda: Reads(lambda: STANDING),
    ),
    "a clock that runs too fast": (
        "test_it_runs_on_between_two_readings",
        lambda: Reads(lambda: STANDING + 3 * (system_ms() - STANDING)),
    ),
    "an answer that is none": (
        "test_it_can_say_whether_takeovers_are_blocked_before_and_after_a_reading",
        lambda: Unsure(system_ms),
    ),
}


@pytest.mark.parametrize(("name", "make"), WRONG.values(), ids=WRONG)
def test_a_clock_that_breaks_a_rule_is_caught(name, make):
    assert_caught_by(name, ClockConformance, make_clock=lambda _: make())


def test_every_test_of_the_suite_is_seen_to_fail():
    assert sorted({name for name, _ in WRONG.values()}) == names_of(ClockConformance)


def test_a_clock_that_tells_no_time_is_spared_what_is_about_time():
    standing = {"make_clock": lambda _: Reads(lambda: 10.5)}
    assert failures_of(ClockConformance, tells_the_time=False, **standing) == {}
    assert len(failures_of(ClockConformance, **standing)) == 2


def test_the_suite_runs_under_unittest_too():
    result = run_under_unittest(ClockConformance, make_clock=lambda _: SystemClock())
    assert result.testsRun == len(names_of(ClockConformance))
    assert result.wasSuccessful(), result.failures
