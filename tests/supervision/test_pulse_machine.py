"""Decisions only; what they add up to is shown in ``test_pulse_conductor.py``."""

import pytest

from django_runstore.durations import LeaseDurations
from django_runstore.supervision.lease_watch import Moment
from django_runstore.supervision.pulse_machine import (
    Beat,
    End,
    PulseMachine,
    Reconfirm,
    ReportLapse,
    ReportReconfirmed,
    Sleep,
)


def at(ms: float) -> Moment:
    return Moment(ms, ms)


@pytest.fixture
def machine() -> PulseMachine:
    return PulseMachine(LeaseDurations(), at(0))


def overdue(machine: PulseMachine) -> PulseMachine:
    assert machine.decide(at(19_000)) == Reconfirm()
    return machine


def test_it_begins_with_the_rest_of_an_interval(machine):
    assert machine.decide(at(400)) == Sleep(600)


def test_it_beats_when_the_interval_is_over(machine):
    assert machine.decide(at(1_000)) == Beat()


def test_a_beat_under_way_is_not_sent_again(machine):
    machine.decide(at(1_000))

    assert machine.decide(at(5_000)) == Sleep(1_000)


def test_the_interval_begins_anew_when_a_beat_was_answered(machine):
    machine.decide(at(1_000))
    machine.beat_confirmed(at(1_700))

    assert machine.decide(at(1_700)) == Sleep(1_000)


def test_it_sleeps_no_longer_than_the_deadline_allows(machine):
    machine.decide(at(18_000))

    assert machine.decide(at(18_900)) == Sleep(100)


def test_only_the_first_failure_of_an_outage_is_news(machine):
    assert [machine.beat_failed(at(ms)) for ms in (1_000, 2_000)] == [True, False]


def test_a_success_ends_an_outage(machine):
    machine.beat_failed(at(1_000))
    machine.beat_confirmed(at(2_000))

    assert machine.beat_failed(at(3_000))


def test_overdue_it_reconfirms_rather_than_beats(machine):
    assert machine.decide(at(25_000)) == Reconfirm()


def test_it_waits_one_interval_for_the_reconfirmation(machine):
    overdue(machine)

    assert machine.decide(at(19_300)) == Sleep(700)
    assert machine.decide(at(20_000)) == ReportLapse(19_000)


def test_a_reconfirmation_is_reported_before_the_loop_goes_on(machine):
    overdue(machine).reconfirmed()

    assert machine.decide(at(19_100)) == ReportReconfirmed(19_000)
    assert machine.decide(at(19_100)) == Sleep(900)


def test_a_report_in_time_arms_the_deadline_anew(machine):
    overdue(machine).reconfirmed()
    machine.decide(at(19_100))
    machine.reconfirmation_reported(at(19_200))

    assert machine.decide(at(20_199)) == Sleep(1)
    assert machine.decide(at(20_200)) == Beat()


def test_a_beat_that_hangs_stays_the_only_one_after_a_reconfirmation(machine):
    machine.decide(at(1_000))
    overdue(machine).reconfirmed()
    machine.decide(at(19_000))
    machine.reconfirmation_reported(at(19_000))

    assert machine.decide(at(37_000)) == Sleep(1_000)


def test_a_lapse_is_announced_once_and_then_the_end(machine):
    overdue(machine).not_reconfirmed()

    assert machine.decide(at(19_000)) == ReportLapse(19_000)
    assert machine.decide(at(19_000)) == Sleep(1_000)
    machine.lapse_reported()
    assert machine.decide(at(19_001)) == End("lapsed")


def test_the_end_does_not_wait_for_a_lapse_that_is_not_taken_note_of(machine):
    overdue(machine).not_reconfirmed()
    machine.decide(at(19_000))

    assert machine.decide(at(20_000)) == End("lapsed")


def test_a_lost_run_ends_it(machine):
    machine.ownership_lost()

    assert machine.decide(at(1)) == End("lost")


def test_the_first_reason_stays(machine):
    machine.ownership_lost()
    machine.stop()

    assert machine.decide(at(1)) == End("lost")
