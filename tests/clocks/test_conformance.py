"""Every clock of this package through the public suite."""

import pytest

from django_runstore import clocks
from django_runstore.clocks import DatabaseClock, SystemClock, clock_for
from django_runstore.testing import FakeClock
from django_runstore.testing.conformance import ClockConformance


class TestSystemClock(ClockConformance):
    make_clock = SystemClock


@pytest.mark.django_db
class TestDatabaseClock(ClockConformance):
    make_clock = DatabaseClock


@pytest.mark.django_db
class TestConfiguredClock(ClockConformance):
    def make_clock(self):
        return clock_for("default")


class TestFakeClock(ClockConformance):
    tells_the_time = False

    def make_clock(self):
        return FakeClock(10.5)


def test_no_clock_of_the_package_is_left_out():
    shipped = {
        found
        for name, found in vars(clocks).items()
        if isinstance(found, type) and name.endswith("Clock") and "now_ms" in vars(found)
    }
    assert shipped - {clocks.Clock} == {TestSystemClock.make_clock, TestDatabaseClock.make_clock}
