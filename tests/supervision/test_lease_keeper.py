"""The group pulse in fake time; what it does over real databases is in its neighbour."""

import logging
import threading
from collections.abc import Callable, Iterator

import pytest
from django.db import OperationalError

from django_runstore.durations import LeaseDurations
from django_runstore.errors import RunPersistenceFailed
from django_runstore.outcomes import FenceLost, NotFound, Unconfirmed, Updated
from django_runstore.owners import OwnerId
from django_runstore.supervision.lease_keeper import LeaseKeeper
from django_runstore.supervision.shared_deadline import PublishedDeadlines, SharedDeadlines
from django_runstore.testing import FakeClock
from tests.supervision.fake_time import NEVER, FakeCalls, Takes

OWNER = OwnerId("host", 1, "nonce")
SOON_S = 10


def fails() -> Exception:
    return RunPersistenceFailed("heartbeat_many", "database operation failed")


class FakeStore:
    """Answers per run; by default every run is ours and nothing is reconfirmed."""

    def __init__(self, clock: FakeClock):
        self._clock = clock
        self.beats: list[tuple[float, list[tuple[str, int]]]] = []
        self.asked: list[tuple[float, str, int]] = []
        self.breaks: Callable[[float], Exception | None] = lambda _: None
        self.answers: Callable[[str, int], object] = lambda *_: Updated()
        self.reconfirm_answers: Callable[[str, int], object] = lambda *_: NotFound()

    def heartbeat_many(self, owner, runs, now_ms=None):
        assert owner == OWNER
        now = self._clock.now_ms()
        self.beats.append((now, list(runs)))
        broken = self.breaks(now)
        answers = {run_id: self.answers(run_id, fence) for run_id, fence in runs}
        if isinstance(broken, Takes):
            broken.value = answers
        if broken is not None:
            raise broken
        return answers

    def reconfirm(self, run_id, owner, now_ms=None, *, fence=None):
        assert owner == OWNER
        self.asked.append((self._clock.now_ms(), run_id, fence))
        answer = self.reconfirm_answers(run_id, fence)
        if isinstance(answer, BaseException):
            raise answer
        return answer


class World:
    def __init__(self, deadlines: SharedDeadlines | None = None):
        self.clock = FakeClock(0)
        self.calls = FakeCalls(self.clock)
        self.store = FakeStore(self.clock)
        self.told: list[tuple[object, ...]] = []
        self.keeper = LeaseKeeper(
            self.store,
            OWNER,
            LeaseDurations(),
            on_lost=lambda *news: self.told.append((self.clock.now_ms(), "lost", *news)),
            on_lapsed=lambda *news: self.told.append((self.clock.now_ms(), "lapsed", *news)),
            deadlines=deadlines,
            background=self.calls,
            read_boottime_ms=self.clock.now_ms,
        )

    def run(self, until_ms: float) -> None:
        self.calls.at(until_ms, self.keeper.stop)
        self.keeper.run()


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def deadlines() -> Iterator[SharedDeadlines]:
    with SharedDeadlines(2) as made:
        yield made


@pytest.fixture
def published(deadlines) -> Iterator[PublishedDeadlines]:
    reader = PublishedDeadlines(deadlines.fileno())
    yield reader
    reader.close()


def messages(caplog, level=logging.WARNING) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == level]


def test_all_held_runs_are_beaten_for_with_one_call_per_interval(world):
    world.keeper.hold("a", 1)
    world.keeper.hold("b", 5)

    world.run(2_500)

    both = [("a", 1), ("b", 5)]
    assert world.store.beats == [(1_000, both), (2_000, both)]


def test_nothing_is_sent_when_nothing_is_held(world):
    world.run(5_500)

    assert world.store.beats == []


def test_a_run_that_is_dropped_is_not_beaten_for_any_more(world):
    world.keeper.hold("a", 1)
    world.keeper.hold("b", 1)
    world.calls.at(1_500, lambda: world.keeper.drop("a"))

    world.run(2_500)

    assert world.store.beats[-1] == (2_000, [("b", 1)])


@pytest.mark.parametrize("outcome", [FenceLost(), NotFound()])
def test_a_lost_run_is_reported_at_once_and_only_that_one(world, outcome):
    world.keeper.hold("a", 1)
    world.keeper.hold("b", 2)
    world.store.answers = lambda run_id, _: outcome if run_id == "b" else Updated()

    world.run(2_500)

    assert world.told == [(1_000, "lost", "b", 2)]
    assert world.keeper.held() == (("a", 1),)


def test_a_run_dropped_while_a_beat_is_under_way_is_not_reported(world):
    world.keeper.hold("a", 1)
    world.store.answers = lambda *_: FenceLost()
    world.store.breaks = lambda _: Takes(400)
    world.calls.at(1_200, lambda: world.keeper.drop("a"))

    world.run(2_500)

    assert world.told == []


def test_a_run_held_under_a_new_fence_is_not_lost_by_an_answer_about_the_old_one(world):
    world.keeper.hold("a", 1)
    world.store.answers = lambda _, fence: FenceLost() if fence == 1 else Updated()
    world.store.breaks = lambda now_ms: Takes(400) if now_ms == 1_000 else None
    world.calls.at(1_200, lambda: world.keeper.hold("a", 2))

    world.run(3_500)

    assert world.told == []
    assert world.keeper.held() == (("a", 2),)


def test_a_run_passed_over_goes_on_and_so_do_the_others(world):
    world.keeper.hold("locked", 1)
    world.keeper.hold("free", 1)
    world.store.answers = lambda run_id, _: Unconfirmed() if run_id == "locked" else Updated()

    world.run(18_999)

    assert world.told == []


def test_a_run_passed_over_lapses_at_its_own_deadline_and_leaves_the_others(world):
    world.keeper.hold("locked", 1)
    world.keeper.hold("free", 1)
    world.store.answers = lambda run_id, _: Unconfirmed() if run_id == "locked" else Updated()

    world.run(30_000)

    assert world.told == [(19_000, "lapsed", "locked", 1, 19_000)]
    assert world.keeper.held() == (("free", 1),)


def test_a_row_that_stays_locked_is_warned_of_once(world, caplog):
    world.keeper.hold("locked", 1)
    world.store.answers = lambda *_: Unconfirmed()

    world.run(18_000)

    assert messages(caplog) == ["run heartbeat is passed over; its row stays locked"]


def test_errors_for_less_than_the_tolerance_change_nothing(world):
    world.keeper.hold("a", 1)
    world.store.breaks = lambda now_ms: fails() if now_ms < 17_500 else None

    world.run(40_000)

    assert world.told == []


@pytest.mark.parametrize("error", [fails(), OperationalError("gone"), ZeroDivisionError()])
def test_errors_for_the_tolerance_are_a_lapse_at_19_000_ms(world, error):
    world.keeper.hold("a", 1)
    world.keeper.hold("b", 2)
    world.store.breaks = lambda _: error
    world.store.reconfirm_answers = lambda *_: fails()

    world.run(30_000)

    assert world.told == [
        (19_000, "lapsed", "a", 1, 19_000),
        (19_000, "lapsed", "b", 2, 19_000),
    ]


def test_each_run_has_its_own_deadline(world):
    world.keeper.hold("early", 1)
    world.calls.at(5_500, lambda: world.keeper.hold("late", 1))
    world.store.breaks = lambda _: fails()

    world.run(30_000)

    assert [(at_ms, run_id) for at_ms, _, run_id, *_ in world.told] == [
        (19_000, "early"),
        (24_500, "late"),
    ]


def test_a_run_is_confirmed_from_the_reading_before_its_claim(world):
    world.clock.set(5_000)
    world.keeper.hold("a", 1, confirmed_at_ms=1_000)
    world.store.breaks = lambda _: fails()

    world.run(30_000)

    assert world.told == [(20_000, "lapsed", "a", 1, 19_000)]


def test_a_confirmation_counts_from_the_reading_sent_and_not_from_completion(world):
    world.keeper.hold("a", 1)
    world.store.breaks = lambda now_ms: Takes(5_000) if now_ms == 1_000 else Takes(NEVER)

    world.run(30_000)

    assert world.told == [(20_000, "lapsed", "a", 1, 19_000)]


def test_an_outage_is_warned_of_once_and_its_end_is_told(world, caplog):
    caplog.set_level(logging.INFO)
    world.keeper.hold("a", 1)
    world.keeper.hold("b", 1)
    world.store.breaks = lambda now_ms: fails() if now_ms < 5_000 else None

    world.run(6_500)

    assert messages(caplog) == ["run heartbeat write failed"]
    assert messages(caplog, logging.INFO) == ["run heartbeat write recovered"]
    (failed,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert (failed.runs, failed.code) == (2, "persistence_failed")


def test_a_statement_that_hangs_does_not_stall_the_deadline(world):
    world.keeper.hold("a", 1)
    world.store.breaks = lambda _: Takes(NEVER)

    world.run(30_000)

    assert world.told == [(19_000, "lapsed", "a", 1, 19_000)]


def test_a_reconfirmed_run_goes_on_over_another_connection_when_the_statement_hangs(world):
    world.keeper.hold("a", 1)
    world.store.breaks = lambda now_ms: Takes(NEVER) if now_ms == 1_000 else None
    world.store.reconfirm_answers = lambda *_: Updated()

    world.run(60_000)

    assert world.told == []
    assert world.store.asked == [(19_000, "a", 1)]
    assert ("heartbeat_many", 20_000) in world.calls.abandoned
    assert world.store.beats[1][0] == 20_000


def test_a_reconfirmation_that_hangs_is_a_lapse_after_one_interval(world):
    world.keeper.hold("a", 1)
    world.keeper.hold("b", 1)
    world.store.breaks = lambda _: fails()
    world.store.reconfirm_answers = lambda *_: Takes(NEVER)

    world.run(30_000)

    assert world.told == [
        (20_000, "lapsed", "a", 1, 19_000),
        (20_000, "lapsed", "b", 1, 19_000),
    ]
    assert ("reconfirm", 20_000) in world.calls.abandoned


def test_a_hanging_reconfirmation_of_a_dropped_run_does_not_block_the_next(world):
    world.keeper.hold("dropped", 1)
    world.calls.at(3_000, lambda: world.keeper.hold("next", 1))
    world.calls.at(19_100, lambda: world.keeper.drop("dropped"))
    world.store.breaks = lambda _: fails()
    world.store.reconfirm_answers = lambda run_id, _: (
        Takes(NEVER) if run_id == "dropped" else Updated()
    )

    world.run(25_000)

    assert world.told == []
    assert world.store.asked == [(19_000, "dropped", 1), (22_000, "next", 1)]


def test_after_a_long_stop_nothing_is_confirmed_until_it_was_reconfirmed(world):
    world.keeper.hold("a", 1)
    seen = []
    world.calls.stop_process(1_500, until_ms=61_500)
    world.store.reconfirm_answers = lambda *_: (
        seen.append((world.keeper.confirmed("a", 1), world.keeper.all_confirmed())) or Updated()
    )

    world.run(61_600)

    assert seen == [(False, False)]
    assert world.keeper.confirmed("a", 1)
    assert world.keeper.all_confirmed()


def test_after_a_long_stop_no_beat_is_sent_before_the_reconfirmation(world):
    world.keeper.hold("a", 1)
    world.calls.stop_process(1_500, until_ms=61_500)
    world.store.reconfirm_answers = lambda *_: Updated()

    world.run(62_600)

    assert [at_ms for at_ms, _ in world.store.beats] == [1_000, 62_500]
    assert world.store.asked == [(61_500, "a", 1)]


def test_after_a_long_stop_a_run_that_others_have_taken_over_lapses(world):
    world.keeper.hold("ours", 1)
    world.keeper.hold("theirs", 1)
    world.calls.stop_process(1_500, until_ms=61_500)
    world.store.reconfirm_answers = lambda run_id, _: Updated() if run_id == "ours" else FenceLost()

    world.run(62_000)

    assert world.told == [(61_500, "lapsed", "theirs", 1, 60_500)]
    assert world.keeper.held() == (("ours", 1),)


def test_a_pulse_late_by_more_than_an_interval_is_warned_of_once(world, caplog):
    world.keeper.hold("a", 1)
    world.calls.stop_process(1_500, until_ms=4_500)

    world.run(8_000)

    assert messages(caplog) == ["run pulse was late"]
    (late,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert (late.runs, late.late_ms) == (1, 2_500)


def test_a_pulse_late_by_an_interval_is_not(world, caplog):
    world.keeper.hold("a", 1)
    world.calls.stop_process(1_500, until_ms=3_000)

    world.run(6_000)

    assert messages(caplog) == []


@pytest.mark.parametrize(
    ("run_id", "fence", "confirmed"), [("a", 7, True), ("a", 6, False), ("b", 7, False)]
)
def test_only_the_held_grant_is_confirmed(world, run_id, fence, confirmed):
    world.keeper.hold("a", 7)

    assert world.keeper.confirmed(run_id, fence) is confirmed


def test_a_callback_that_fails_does_not_stop_the_pulse_of_the_others(world, caplog):
    world.keeper.hold("a", 1)
    world.keeper.hold("b", 1)
    world.store.answers = lambda run_id, _: FenceLost() if run_id == "a" else Updated()

    def broken(*_: object) -> None:
        raise RuntimeError("secret")

    world.keeper._on_lost = broken
    world.run(3_500)

    assert len(world.store.beats) == 3
    assert messages(caplog, logging.ERROR) == ["run lease callback failed"]
    assert "secret" not in caplog.text


def test_holding_a_run_publishes_its_deadline(deadlines, published):
    World(deadlines).keeper.hold("a", 7, 1, confirmed_at_ms=500)

    assert published.confirmed_until_ms(1, "a", 7) == 19_500


def test_each_confirmed_beat_moves_the_published_deadline(deadlines, published):
    world = World(deadlines)
    world.keeper.hold("a", 7, 1)
    world.store.breaks = lambda now_ms: fails() if now_ms > 3_000 else None

    world.run(6_500)

    assert published.confirmed_until_ms(1, "a", 7) == 22_000


def test_a_reconfirmation_moves_the_published_deadline(deadlines, published):
    world = World(deadlines)
    world.keeper.hold("a", 7, 1)
    world.store.breaks = lambda _: fails()
    world.store.reconfirm_answers = lambda *_: Updated()

    world.run(19_500)

    assert published.confirmed_until_ms(1, "a", 7) == 38_000


def test_a_late_answer_about_a_dropped_run_does_not_touch_a_slot_given_to_another(
    deadlines, published
):
    world = World(deadlines)
    world.keeper.hold("a", 1, 0)
    world.store.breaks = lambda now_ms: Takes(400) if now_ms == 1_000 else fails()

    def hand_over() -> None:
        world.keeper.drop("a")
        world.keeper.hold("b", 1, 0)

    world.calls.at(1_200, hand_over)
    world.run(3_000)

    assert published.confirmed_until_ms(0, "a", 1) is None
    assert published.confirmed_until_ms(0, "b", 1) == 20_200


class RealTime:
    """A keeper in its own thread, with short durations; the write tolerance is 100 ms."""

    def __init__(self):
        self.store = FakeStore(FakeClock(0))
        self.told = threading.Event()
        self.keeper = LeaseKeeper(
            self.store,
            OWNER,
            LeaseDurations(heartbeat_interval_ms=20, stale_after_ms=150, skew_allowance_ms=30),
            on_lost=lambda *_: self.told.set(),
            on_lapsed=lambda *_: self.told.set(),
        )


@pytest.fixture
def real() -> Iterator[RealTime]:
    made = RealTime()
    yield made
    made.keeper.stop()


def test_it_beats_in_a_thread_of_its_own(real):
    real.store.answers = lambda *_: FenceLost()
    real.keeper.hold("a", 1)

    real.keeper.start()

    assert real.told.wait(SOON_S)


def test_a_statement_that_hangs_in_its_thread_does_not_stall_the_deadline(real):
    gate = threading.Event()
    real.store.breaks = lambda _: gate.wait() and None
    real.keeper.hold("a", 1)
    real.keeper.start()

    lapsed = real.told.wait(SOON_S)
    gate.set()

    assert lapsed


def test_stopping_ends_the_thread(real):
    real.keeper.start()
    assert real.keeper.is_alive()

    real.keeper.stop()

    assert not real.keeper.is_alive()


def test_stopping_what_was_never_started_is_nothing(real):
    real.keeper.stop()

    assert not real.keeper.is_alive()


def test_a_callback_may_stop_the_keeper(real):
    real.keeper._on_lost = lambda *_: (real.keeper.stop(), real.told.set())
    real.store.answers = lambda *_: FenceLost()
    real.keeper.hold("a", 1)
    real.keeper.start()

    assert real.told.wait(SOON_S)
    real.keeper._thread.join(SOON_S)
    assert not real.keeper.is_alive()
