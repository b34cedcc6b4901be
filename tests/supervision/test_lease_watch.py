import pytest

from django_runstore.durations import LeaseDurations
from django_runstore.supervision.lease_watch import LeaseWatch, Moment

LEASE = LeaseDurations()


def at(ms: float) -> Moment:
    return Moment(ms, ms)


@pytest.fixture
def watch() -> LeaseWatch:
    return LeaseWatch(LEASE, at(0))


@pytest.mark.parametrize(("now_ms", "overdue"), [(18_999, False), (19_000, True)])
def test_it_is_overdue_when_the_write_tolerance_is_used_up(watch, now_ms, overdue):
    assert watch.is_overdue(at(now_ms)) is overdue


def test_what_remains_is_the_tolerance_less_what_went_by(watch):
    assert watch.remaining_ms(at(4_000)) == 15_000


def test_a_confirmation_counts_from_the_reading_sent(watch):
    watch.confirm(at(1_000))

    assert watch.unconfirmed_ms(at(6_000)) == 5_000


def test_an_earlier_reading_never_replaces_a_later_one(watch):
    watch.confirm(at(2_000))
    watch.confirm(at(1_000))

    assert watch.unconfirmed_ms(at(2_000)) == 0


def test_unconfirmed_time_is_told_in_whole_milliseconds(watch):
    assert watch.unconfirmed_ms(at(19_000.9)) == 19_000


def test_a_clock_that_was_set_back_does_not_shorten_what_went_by():
    assert Moment(-3_600_000, 19_000).since(at(0)) == 19_000


def test_a_clock_that_was_set_forward_lengthens_what_went_by():
    assert Moment(3_600_000, 500).since(at(0)) == 3_600_000


def test_a_reading_is_cut_to_whole_milliseconds():
    assert Moment(999.9, 0).reading_ms == 999
