"""Clocks that a test turns, and clocks that are wrong."""

import time

import pytest
from django.test import override_settings

from django_runstore import InvalidRun, OwnerId, RunStore
from django_runstore.clocks import clock_for, takeovers_blocked
from django_runstore.outcomes import Activated, HeartbeatFresh, Updated
from django_runstore.testing import FakeClock, clock_skew, use_clock
from tests.testing.start import START

OWNER = OwnerId("host", 1, "nonce")
OTHER = OwnerId("host", 2, "nonce")


def test_every_store_reads_the_clock_that_is_used(either_case, clock):
    RunStore().create("run", "{}")
    clock.advance(5)
    RunStore().create("later", "{}")

    assert RunStore().get("run").created_at_ms == START
    assert RunStore().get("later").created_at_ms == START + 5


def test_a_store_with_a_clock_of_its_own_keeps_it(db, clock):
    RunStore(clock=FakeClock(7)).create("run", "{}")

    assert RunStore().get("run").created_at_ms == 7


def test_the_clock_of_before_is_back_afterwards(settings):
    before = clock_for("default")
    with use_clock(FakeClock(1)) as outer, use_clock(FakeClock(2)) as inner:
        assert clock_for("default") is inner
        assert clock_for("default") is not outer
    assert clock_for("default") is before


def test_a_clock_in_use_survives_an_override_of_the_settings(clock):
    with override_settings(RUNSTORE={"POLL_INTERVAL_MS": 5}):
        assert clock_for("default") is clock


@override_settings(RUNSTORE={"CLOCK": "django_runstore.testing.FakeClock"})
def test_the_settings_can_name_it_by_its_dotted_path(db):
    clock = clock_for("default")
    clock.advance(START)
    RunStore().create("run", "{}")

    assert isinstance(clock, FakeClock)
    assert RunStore().get("run").created_at_ms == START


@pytest.mark.parametrize("seconds", [90, -90, 0.5])
def test_a_skewed_clock_is_off_by_the_seconds_inside_the_block_only(either_case, clock, seconds):
    with clock_skew(seconds):
        RunStore().create("skewed", "{}")
    RunStore().create("right", "{}")

    assert RunStore().get("skewed").created_at_ms == START + seconds * 1_000
    assert RunStore().get("right").created_at_ms == START


def test_skews_add_up(clock):
    with clock_skew(60), clock_skew(-20):
        assert clock_for("default").now_ms() == START + 40_000


def test_a_skewed_clock_runs_on_with_the_right_one(clock):
    with clock_skew(60):
        clock.advance(1)
        assert clock_for("default").now_ms() == START + 60_001


def test_no_skew_reaches_behind_the_epoch():
    with use_clock(FakeClock(1_000)), clock_skew(-2):
        assert clock_for("default").now_ms() == 0


@pytest.mark.django_db
def test_the_configured_clock_is_skewed_without_a_fake_one():
    with clock_skew(-3_600):
        behind_ms = time.time() * 1_000 - clock_for("default").now_ms()

    assert abs(behind_ms - 3_600_000) < 600_000


def test_a_skewed_clock_does_not_know_that_it_is_wrong():
    class JumpedClock(FakeClock):
        def takeovers_blocked(self):
            return True

    with use_clock(JumpedClock()), clock_skew(1):
        assert takeovers_blocked(clock_for("default"))
    with use_clock(FakeClock()), clock_skew(1):
        assert not takeovers_blocked(clock_for("default"))


def test_a_process_that_is_ahead_takes_nothing_without_evidence(either_case, clock):
    store = RunStore()
    store.create("run", "{}")
    owned = store.claim_and_own("run", store.get("run"), OWNER)
    assert owned == Activated(1)
    with clock_skew(3_600):
        answer = store.claim_and_own("run", store.get("run"), OTHER)

    assert answer.code == "evidence_required"
    assert store.get("run").owner == OWNER


def test_a_beat_of_a_process_that_is_behind_does_not_make_its_owner_older(either_case, clock):
    store = RunStore()
    store.create("run", "{}")
    store.claim_and_own("run", store.get("run"), OWNER)
    with clock_skew(-5):
        assert store.heartbeat("run", OWNER, fence=1) == Updated()

    assert store.get("run").heartbeat_at_ms == START
    assert store.claim_and_own("run", store.get("run"), OTHER) == HeartbeatFresh()


def test_a_reading_beyond_the_allowance_is_refused_under_skew(either_case, clock):
    store = RunStore()
    store.create("run", "{}")
    with clock_skew(-60), pytest.raises(InvalidRun):
        store.claim("run", store.get("run"), OWNER, now_ms=START)
