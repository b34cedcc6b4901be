import pytest

from django_runstore.durations import LeaseDurations
from django_runstore.outcomes import FenceLost, NotFound, Unconfirmed, Updated
from django_runstore.supervision.held_runs import Grant, HeldRuns, Lapse
from django_runstore.supervision.lease_watch import Moment

A, B = Grant("a", 1), Grant("b", 1)


def at(ms: float) -> Moment:
    return Moment(ms, ms)


@pytest.fixture
def held() -> HeldRuns:
    runs = HeldRuns(LeaseDurations())
    runs.hold(A, 3, at(0))
    return runs


def overdue(held: HeldRuns) -> HeldRuns:
    held.expire(at(19_000))
    return held


def answer(held: HeldRuns, outcome: object, sent_ms: float, now_ms: float, grant: Grant = A):
    return held.beats_answered(at(sent_ms), [grant], {grant.run_id: outcome}, at(now_ms))


@pytest.mark.parametrize(("now_ms", "confirmed"), [(18_999, True), (19_000, False)])
def test_a_run_is_confirmed_for_the_write_tolerance(held, now_ms, confirmed):
    assert held.is_confirmed(A, at(now_ms)) is confirmed
    assert held.are_all_confirmed(at(now_ms)) is confirmed


def test_another_grant_of_the_run_is_not_confirmed(held):
    assert not held.is_confirmed(Grant("a", 2), at(0))


def test_its_deadline_is_the_reading_sent_and_the_tolerance(held):
    answer(held, Updated(), sent_ms=1_000, now_ms=6_000)

    assert held.slot_and_deadline(A) == (3, 20_000)


def test_a_run_without_a_slot_publishes_nothing(held):
    held.hold(B, None, at(0))

    assert held.slot_and_deadline(B) is None


def test_an_answer_about_an_earlier_grant_says_nothing_about_the_present_one(held):
    again = Grant("a", 2)
    held.hold(again, 3, at(0))

    beaten = held.beats_answered(at(0), [A], {"a": FenceLost()}, at(100))

    assert beaten.lost == ()
    assert held.is_confirmed(again, at(100))


def test_dropping_an_earlier_grant_leaves_the_present_one(held):
    held.hold(Grant("a", 2), 3, at(0))

    held.drop("a", 1)

    assert list(held) == [Grant("a", 2)]


def test_dropping_a_run_drops_whatever_grant_it_is_held_under(held):
    held.drop("a")

    assert len(held) == 0


@pytest.mark.parametrize("outcome", [FenceLost(), NotFound()])
def test_a_lost_run_is_forgotten(held, outcome):
    assert answer(held, outcome, 1_000, 1_000).lost == (A,)
    assert len(held) == 0


@pytest.mark.parametrize("outcome", [Unconfirmed(), None])
def test_a_run_passed_over_is_neither_confirmed_nor_lost(held, outcome):
    beaten = held.beats_answered(at(1_000), [A], {"a": outcome} if outcome else {}, at(1_000))

    assert (beaten.confirmed, beaten.lost) == ((), ())
    assert not held.is_confirmed(A, at(19_000))


def test_a_run_passed_over_for_a_third_of_stale_after_is_news_once(held):
    news = [
        answer(held, Unconfirmed(), now_ms, now_ms).long_unconfirmed
        for now_ms in (10_000, 10_001, 11_000)
    ]

    assert news == [(), (Lapse(A, 10_001),), ()]


def test_it_is_news_again_after_a_confirmation(held):
    answer(held, Unconfirmed(), 10_001, 10_001)
    answer(held, Updated(), 11_000, 11_000)

    assert answer(held, Unconfirmed(), 22_000, 22_000).long_unconfirmed == (Lapse(A, 11_000),)


def test_an_overdue_run_is_reconfirmed_and_not_beaten_for(held):
    held.hold(B, None, at(10_000))

    overdue(held)

    assert held.to_beat() == [B]
    assert held.next_to_reconfirm() == A


def test_it_is_asked_for_once(held):
    overdue(held).next_to_reconfirm()

    assert held.next_to_reconfirm() is None


def test_a_reconfirmed_run_is_beaten_for_again(held):
    overdue(held).next_to_reconfirm()

    assert held.reconfirmed(A, at(19_000), at(19_100))
    assert held.to_beat() == [A]
    assert held.slot_and_deadline(A) == (3, 38_000)


def test_a_reconfirmation_that_came_after_another_stop_is_asked_for_anew(held):
    overdue(held).next_to_reconfirm()
    held.reconfirmed(A, at(19_000), at(60_000))
    held.expire(at(60_000))

    assert held.next_to_reconfirm() == A


def test_a_refused_reconfirmation_is_a_lapse(held):
    overdue(held).next_to_reconfirm()

    assert held.not_reconfirmed(A) == Lapse(A, 19_000)
    assert len(held) == 0


@pytest.mark.parametrize(("now_ms", "lapsed"), [(19_999, []), (20_000, [Lapse(A, 19_000)])])
def test_a_reconfirmation_gets_one_interval(held, now_ms, lapsed):
    overdue(held)

    assert held.give_up(at(now_ms)) == lapsed


def test_a_beat_written_meanwhile_confirms_an_overdue_run(held):
    overdue(held).next_to_reconfirm()
    answer(held, Updated(), sent_ms=18_900, now_ms=19_100)

    assert held.not_reconfirmed(A) is None
    assert held.to_beat() == [A]


def test_a_dropped_run_neither_lapses_nor_is_reconfirmed(held):
    overdue(held).next_to_reconfirm()
    held.drop("a")

    assert held.not_reconfirmed(A) is None
    assert not held.reconfirmed(A, at(19_000), at(19_000))
    assert held.give_up(at(30_000)) == []


@pytest.mark.parametrize(("now_ms", "nap_ms"), [(0, 1_000), (18_600, 400), (19_000, 0)])
def test_the_next_decision_is_due_at_the_nearest_deadline(held, now_ms, nap_ms):
    assert held.next_deadline_in_ms(at(now_ms)) == nap_ms


def test_while_it_is_reconfirmed_the_end_of_patience_is_the_deadline(held):
    overdue(held)

    assert held.next_deadline_in_ms(at(19_700)) == 300
