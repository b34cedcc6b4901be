"""Conformance notes, section D, in fake time."""

import asyncio
import logging
from collections.abc import Callable

import pytest
from django.db import OperationalError

from django_runstore.durations import STALE_AFTER_MS, WRITE_TOLERANCE_MS, LeaseDurations
from django_runstore.errors import RunPersistenceFailed
from django_runstore.outcomes import FenceLost, NotFound, Updated
from django_runstore.owners import OwnerId
from django_runstore.supervision.pulse import Pulse
from django_runstore.testing import FakeClock
from tests.supervision.fake_time import NEVER, FakeCalls, Takes

OWNER = OwnerId("host", 1, "nonce")
LOGGER = "django_runstore.supervision"


def fails() -> Exception:
    return RunPersistenceFailed("heartbeat", "database operation failed")


class FakeStore:
    """Answers as it is told; without a script, heartbeats fail and nothing is reconfirmed."""

    def __init__(self, clock: FakeClock):
        self._clock = clock
        self.heartbeats: list[tuple[str, OwnerId, int | None, int | None]] = []
        self.reconfirmations: list[tuple[str, OwnerId, int | None, int | None]] = []
        self.heartbeat_answers: Callable[[float], object] = lambda _: fails()
        self.reconfirm_answers: Callable[[float], object] = lambda _: NotFound()

    def heartbeat(self, run_id, owner, now_ms=None, *, fence=None):
        self.heartbeats.append((run_id, owner, now_ms, fence))
        return _give(self.heartbeat_answers(self._clock.now_ms()))

    def reconfirm(self, run_id, owner, now_ms=None, *, fence=None):
        self.reconfirmations.append((run_id, owner, now_ms, fence))
        return _give(self.reconfirm_answers(self._clock.now_ms()))


def _give(answer):
    if isinstance(answer, BaseException):
        raise answer
    return answer


class World:
    def __init__(self):
        self.clock = FakeClock(0)
        self.calls = FakeCalls(self.clock)
        self.store = FakeStore(self.clock)
        self.reconfirmed: list[int] = []
        self.lapsed: list[int] = []

    def pulse(self, on_reconfirm=None, fence=None) -> Pulse:
        return Pulse(
            self.store,
            "run",
            OWNER,
            fence,
            self.clock,
            LeaseDurations(),
            on_reconfirm=on_reconfirm or self.reconfirmed.append,
            on_lapse=self.lapsed.append,
            background=self.calls,
        )

    def run(self, until_ms=None, **options) -> tuple[str, float]:
        """Run a pulse to its end, or stop it at a time; says why and when it ended."""
        pulse = self.pulse(**options)
        if until_ms is not None:
            self.calls.at(until_ms, pulse.stop)
        return pulse.run(), self.clock.now_ms()


@pytest.fixture
def world() -> World:
    return World()


def warnings(caplog) -> list[dict[str, object]]:
    names = ("message", "run_id", "code", "unconfirmed_ms")
    return [
        {name: vars(record)[name] for name in names if name in vars(record)}
        for record in caplog.records
        if record.name == LOGGER and record.levelno == logging.WARNING
    ]


@pytest.mark.conformance(50)
def test_failing_heartbeats_leave_the_run_alive_at_5_s(world):
    assert world.run(until_ms=5_000) == ("stopped", 5_000)


@pytest.mark.conformance(50)
def test_failing_heartbeats_end_it_within_30_s_more(world):
    assert world.run(until_ms=35_000)[0] == "lapsed"


@pytest.mark.conformance(51)
def test_failing_heartbeats_leave_the_run_alive_at_18_999_ms(world):
    assert world.run(until_ms=18_999) == ("stopped", 18_999)


@pytest.mark.conformance(51)
def test_it_ends_before_a_peer_may_take_over(world):
    assert world.run()[1] <= STALE_AFTER_MS
    assert WRITE_TOLERANCE_MS < STALE_AFTER_MS


@pytest.mark.conformance(52)
def test_it_ends_at_19_000_ms_and_not_a_pulse_later(world):
    assert world.run() == ("lapsed", 19_000)


@pytest.mark.conformance(53)
def test_each_success_arms_the_deadline_anew(world):
    world.store.heartbeat_answers = lambda now_ms: (
        Updated() if now_ms == 19_000 - 1_000 else fails()
    )

    # Fails up to 17 s, succeeds at 18 s, and fails for 18 s more.
    assert world.run(until_ms=36_999) == ("stopped", 36_999)


@pytest.mark.conformance(55)
@pytest.mark.parametrize(
    "hanging",
    [
        lambda: Takes(NEVER),
        lambda: Takes(35_000, value=Updated()),
        lambda: Takes(35_000, error=fails()),
    ],
    ids=["for ever", "then succeeding", "then failing"],
)
def test_a_heartbeat_that_hangs_ends_the_run_at_19_000_ms(world, hanging):
    world.store.heartbeat_answers = lambda _: hanging()

    assert world.run() == ("lapsed", 19_000)
    assert world.calls.times_of("heartbeat") == [1_000]


@pytest.mark.conformance(55)
def test_the_pending_write_is_abandoned_when_the_pulse_ends(world):
    world.store.heartbeat_answers = lambda _: Takes(NEVER)

    world.run()

    assert ("heartbeat", 19_000) in world.calls.abandoned


@pytest.mark.conformance(56)
def test_an_outage_is_warned_of_once(world, caplog):
    world.run(until_ms=3_500)

    assert len(world.store.heartbeats) == 3
    assert warnings(caplog) == [
        {
            "message": "run heartbeat write failed",
            "run_id": "run",
            "code": "persistence_failed",
        }
    ]


@pytest.mark.conformance(56)
def test_the_lapse_is_the_second_warning_and_the_last(world, caplog):
    world.run()

    assert warnings(caplog)[1:] == [
        {
            "message": "run lease lapsed; interrupting owned work",
            "run_id": "run",
            "unconfirmed_ms": 19_000,
        }
    ]


@pytest.mark.conformance(56)
def test_a_second_outage_is_warned_of_again(world, caplog):
    world.store.heartbeat_answers = lambda now_ms: Updated() if now_ms == 2_000 else fails()

    world.run(until_ms=3_500)

    assert [warning["message"] for warning in warnings(caplog)] == [
        "run heartbeat write failed"
    ] * 2


@pytest.mark.conformance(57)
def test_the_host_is_told_of_a_lapse_once(world):
    world.run()

    assert world.lapsed == [19_000]


@pytest.mark.conformance(57)
@pytest.mark.parametrize("answer", [NotFound(), FenceLost()])
def test_a_run_that_is_lost_ends_at_the_first_pulse_without_a_lapse(world, answer):
    world.store.heartbeat_answers = lambda _: answer

    assert world.run() == ("lost", 1_000)
    assert world.lapsed == []


@pytest.mark.conformance(58)
def test_after_a_stop_of_18_999_ms_a_heartbeat_is_sent(world):
    world.store.heartbeat_answers = lambda _: Updated()
    world.calls.stop_process(500, until_ms=18_999)

    assert world.run(until_ms=19_500) == ("stopped", 19_500)
    assert world.calls.times_of("heartbeat") == [18_999]


@pytest.mark.conformance(58)
@pytest.mark.parametrize("gap_ms", [19_000, 20_000])
def test_after_a_longer_stop_no_heartbeat_is_sent_and_it_ends(world, gap_ms):
    world.store.heartbeat_answers = lambda _: Updated()
    world.calls.stop_process(500, until_ms=gap_ms)

    assert world.run() == ("lapsed", gap_ms)
    assert world.store.heartbeats == []


@pytest.mark.conformance(59)
def test_the_budget_counts_from_the_reading_sent(world):
    answers = iter([Takes(5_000, value=Updated()), Takes(NEVER)])
    world.store.heartbeat_answers = lambda _: next(answers)

    # Sent at 1 000, completed at 6 000.
    assert world.run() == ("lapsed", 20_000)


@pytest.mark.conformance(59)
def test_it_is_alive_at_19_999_ms(world):
    answers = iter([Takes(5_000, value=Updated()), Takes(NEVER)])
    world.store.heartbeat_answers = lambda _: next(answers)

    assert world.run(until_ms=19_999) == ("stopped", 19_999)


@pytest.mark.conformance(61)
def test_without_a_hook_one_reconfirmation_lets_the_loop_go_on(world):
    world.store.reconfirm_answers = lambda _: Updated()
    pulse = Pulse(
        world.store, "run", OWNER, clock=world.clock, lease=LeaseDurations(), background=world.calls
    )
    world.calls.at(37_999, pulse.stop)

    assert pulse.run() == "stopped"
    assert world.calls.times_of("reconfirm") == [19_000]


@pytest.mark.conformance(63)
@pytest.mark.parametrize("interruption", [asyncio.CancelledError, KeyboardInterrupt])
def test_an_interrupted_reconfirmation_is_passed_on_without_a_lapse(world, interruption):
    world.store.reconfirm_answers = lambda _: interruption()

    with pytest.raises(interruption):
        world.run()
    assert world.lapsed == []


@pytest.mark.conformance(63)
@pytest.mark.parametrize("interruption", [asyncio.CancelledError, KeyboardInterrupt])
def test_an_interrupted_receipt_is_passed_on_without_a_lapse(world, interruption):
    world.store.reconfirm_answers = lambda _: Updated()

    def interrupted(_: int) -> None:
        raise interruption

    with pytest.raises(interruption):
        world.run(on_reconfirm=interrupted)
    assert world.lapsed == []


@pytest.mark.conformance(64)
def test_stopping_during_a_reconfirmation_abandons_it_without_a_lapse(world):
    world.store.reconfirm_answers = lambda _: Takes(NEVER)

    assert world.run(until_ms=19_500) == ("stopped", 19_500)
    assert ("reconfirm", 19_500) in world.calls.abandoned
    assert world.lapsed == []


@pytest.mark.conformance(64)
def test_stopping_during_a_receipt_abandons_it_without_a_lapse(world):
    world.store.reconfirm_answers = lambda _: Updated()

    assert world.run(until_ms=19_500, on_reconfirm=hangs) == ("stopped", 19_500)
    assert ("on_reconfirm", 19_500) in world.calls.abandoned
    assert world.lapsed == []


@pytest.mark.conformance(65)
def test_a_receipt_that_never_returns_leaves_the_run_alive_for_999_ms(world):
    world.store.reconfirm_answers = lambda _: Updated()

    assert world.run(until_ms=19_999, on_reconfirm=hangs) == ("stopped", 19_999)


@pytest.mark.conformance(65)
def test_a_receipt_that_never_returns_is_a_lapse_after_one_interval(world):
    world.store.reconfirm_answers = lambda _: Updated()

    assert world.run(on_reconfirm=hangs) == ("lapsed", 20_000)
    assert ("on_reconfirm", 20_000) in world.calls.abandoned
    assert world.lapsed == [19_000]


@pytest.mark.conformance(65)
@pytest.mark.parametrize("error", [fails(), ZeroDivisionError()], ids=["typed", "defect"])
def test_a_receipt_that_fails_is_an_immediate_lapse(world, error):
    world.store.reconfirm_answers = lambda _: Updated()

    def broken(_: int) -> None:
        raise error

    assert world.run(on_reconfirm=broken) == ("lapsed", 19_000)
    assert world.lapsed == [19_000]


@pytest.mark.conformance(65)
def test_reconfirmation_and_receipt_share_one_interval(world):
    world.store.reconfirm_answers = lambda _: Takes(600, value=Updated())

    assert world.run(on_reconfirm=hangs) == ("lapsed", 20_000)


@pytest.mark.conformance(66)
def test_a_reconfirmation_that_never_returns_is_one_call_and_a_lapse(world):
    world.store.reconfirm_answers = lambda _: Takes(NEVER)

    assert world.run() == ("lapsed", 20_000)
    assert world.calls.times_of("reconfirm") == [19_000]
    assert ("reconfirm", 20_000) in world.calls.abandoned
    assert world.reconfirmed == []
    assert world.lapsed == [19_000]


@pytest.mark.conformance(66)
@pytest.mark.parametrize("error", [fails(), ZeroDivisionError()], ids=["typed", "defect"])
def test_a_reconfirmation_that_fails_is_an_immediate_lapse(world, error):
    world.store.reconfirm_answers = lambda _: error

    assert world.run() == ("lapsed", 19_000)
    assert world.reconfirmed == []


def test_a_reconfirmed_run_goes_on_and_the_host_is_told_for_how_long_it_was_unconfirmed(world):
    world.store.reconfirm_answers = lambda _: Updated()

    assert world.run(until_ms=40_000)[0] == "stopped"
    assert world.reconfirmed == [19_000, 19_000]
    assert world.lapsed == []


def test_a_reconfirmation_counts_from_its_reading_and_not_from_its_receipt(world):
    answers = iter([Takes(400, value=Updated()), NotFound()])
    world.store.reconfirm_answers = lambda _: next(answers)

    assert world.run() == ("lapsed", 38_000)


def test_beats_carry_the_whole_milliseconds_of_the_reading_and_the_fence(world):
    world.store.heartbeat_answers = lambda _: Updated()
    world.clock.set(0.75)

    world.run(until_ms=1_500, fence=7)

    assert world.store.heartbeats == [("run", OWNER, 1_000, 7)]


def test_a_reconfirmation_carries_the_reading_and_the_fence(world):
    world.run(fence=7)

    assert world.store.reconfirmations == [("run", OWNER, 19_000, 7)]


def test_an_error_of_the_database_itself_is_tolerated_like_a_typed_one(world, caplog):
    world.store.heartbeat_answers = lambda _: OperationalError("password=hunter2")

    assert world.run(until_ms=5_000)[0] == "stopped"
    assert warnings(caplog)[0]["code"] == "persistence_failed"
    assert "hunter2" not in caplog.text


def test_a_defect_of_the_store_ends_the_loop_as_it_is(world):
    world.store.heartbeat_answers = lambda _: ZeroDivisionError()

    with pytest.raises(ZeroDivisionError):
        world.run()
    assert world.lapsed == []
    assert world.calls.is_closed


def test_a_run_lost_while_it_is_reconfirmed_is_lost_at_once(world):
    world.store.heartbeat_answers = lambda _: Takes(18_500, value=FenceLost())
    world.store.reconfirm_answers = lambda _: Takes(NEVER)

    assert world.run() == ("lost", 19_500)
    assert world.lapsed == []


def test_a_lapse_hook_that_never_returns_gets_one_interval(world):
    world.lapsed = _Hanging()

    assert world.run() == ("lapsed", 20_000)


def test_a_lapse_hook_that_fails_is_reported_and_changes_nothing(world, caplog):
    world.lapsed = _Broken()

    assert world.run() == ("lapsed", 19_000)
    assert "run lapse hook failed" in caplog.text
    assert "secret" not in caplog.text


def test_a_stop_during_the_lapse_hook_leaves_it_a_lapse(world):
    world.lapsed = _Hanging()

    assert world.run(until_ms=19_500) == ("lapsed", 19_500)


def test_a_pulse_stopped_before_it_runs_sends_nothing(world):
    pulse = world.pulse()
    pulse.stop()

    assert pulse.run() == "stopped"
    assert world.calls.started == []


def test_a_clock_set_back_does_not_make_a_confirmation_look_young(world, monkeypatch):
    running = FakeClock(0)
    monkeypatch.setattr("django_runstore.supervision.pulse_conductor.boottime_ms", running.now_ms)
    wait = world.calls.wait

    def waits(ms: float):
        running.advance(ms)
        return wait(ms)

    world.calls.wait = waits
    world.clock.set(1_000_000)
    world.calls.at(1_000_500, lambda: world.clock.set(0))

    reason, ended_at_ms = world.run()

    assert reason == "lapsed"
    assert ended_at_ms < 100_000


def hangs(_: int) -> None:
    raise Takes(NEVER)


class _Hanging:
    def append(self, _: int) -> None:
        raise Takes(NEVER)


class _Broken:
    def append(self, _: int) -> None:
        raise RuntimeError("secret")
