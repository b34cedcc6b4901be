"""Spec 12: what a run waits for, in four columns written together and cleared together."""

import logging
from dataclasses import replace

import pytest
from django.db import transaction

from django_runstore import InvalidRun, RunDecodeFailed, RunNotFound, Waiting
from django_runstore.arbiters import LocalArbiter
from django_runstore.outcomes import FenceLost, NotFound, NotWaiting, Parked, Transitioned, Woken
from django_runstore.snapshots import OwnedTransition, WaitingRun
from tests.conformance.raw import checks_off, update_raw
from tests.conformance.world import SAFE, SUSPENDED, A, B, P, World, fresh_evidence, running, tables

TIMER = Waiting("timer", 5_000)
APPROVAL = Waiting("approval", None, "t-1", '{"kind":"human","prompt":"Ship it?"}')


def parked(
    world: World, run_id: str, waiting: Waiting, *, suspend: bool = True, **options: object
) -> None:
    """Have a run of A's wait, suspended or still running."""
    world.active(A, run_id, **options)
    assert world.store.park(run_id, waiting, A) == Parked()
    if suspend:
        at_ms = waiting.wake_at_ms
        moved = world.store.transition_owned(run_id, A, "suspended", available_at_ms=at_ms)
        assert moved == Transitioned()


def wait_of(world: World, run_id: str = "run") -> tuple[object, ...]:
    row = world.store.get(run_id)
    return (
        row.waiting_reason,
        row.waiting_wake_at_ms,
        row.waiting_token,
        row.waiting_request,
    )


NOTHING = (None, None, None, None)


class TestPark:
    def test_the_owner_records_all_four_at_once(self, world: World):
        world.active(A)
        assert world.store.park("run", APPROVAL, A, fence=1) == Parked()
        assert wait_of(world) == ("approval", None, "t-1", APPROVAL.request_json)
        assert world.store.waiting("run") == APPROVAL

    def test_a_later_wait_replaces_all_of_an_earlier_one(self, world: World):
        world.active(A)
        world.store.park("run", Waiting("signal", 9, "t", "[]"), A)
        world.store.park("run", Waiting("timer"), A)
        assert wait_of(world) == ("timer", None, None, None)

    def test_it_does_not_suspend_and_changes_no_hands(self, world: World):
        world.active(A)
        facts = world.fact_names()
        world.store.park("run", TIMER, A)
        assert world.store.get("run").snapshot == running(A, 0)
        assert world.store.heartbeat("run", A, 5).code == "updated"
        assert world.fact_names() == facts

    def test_an_unknown_run_is_not_found_whoever_asks(self, world: World):
        assert world.store.park("nobody", TIMER, A) == NotFound()
        assert world.store.park("nobody", TIMER, B, fence=7) == NotFound()

    @pytest.mark.conformance("D9")
    @pytest.mark.parametrize(
        ("owner", "fence"),
        [(B, None), (replace(A, nonce="an earlier life"), None), (A, 2), (A, 0), (B, 1)],
        ids=["another", "another nonce", "later fence", "older fence", "another with the fence"],
    )
    def test_whoever_does_not_own_it_has_lost_the_fence(self, world: World, owner, fence):
        # The specification's older version answers NotFound, from which an owner could not tell
        # that its run is still there and somebody else's.
        world.active(A)
        before = tables()
        assert world.store.park("run", TIMER, owner, fence=fence) == FenceLost()
        assert tables() == before

    @pytest.mark.parametrize("status", ["pending", "suspended", "completed"])
    def test_a_run_that_is_not_running_has_no_owner_to_park_it(self, world: World, status):
        if status == "pending":
            world.pending()
        else:
            world.active(A)
            world.store.transition_owned("run", A, status)
        assert world.store.park("run", TIMER, A) == FenceLost()
        assert wait_of(world) == NOTHING

    def test_an_old_execution_of_the_same_owner_has_lost_the_fence(self, world: World):
        world.active(A)
        world.store.transition_owned("run", A, "suspended")
        world.reactivated(A)
        assert world.store.park("run", TIMER, A, fence=1) == FenceLost()
        assert world.store.park("run", TIMER, A, fence=2) == Parked()

    def test_an_owner_whom_the_arbiter_does_not_know_has_lost_the_fence(self, db):
        world = World(LocalArbiter())
        world.active(A)
        forgetful = World(LocalArbiter())
        assert forgetful.store.park("run", TIMER, A) == FenceLost()
        assert world.store.park("run", TIMER, A) == Parked()

    def test_a_pending_steal_does_not_keep_the_rightful_owner_from_parking(self, world: World):
        seen = world.active(A)
        world.clock.set(31_000)
        assert world.steal(B, seen).code == "claimed"
        assert world.store.park("run", TIMER, A, fence=1) == Parked()

    def test_a_displaced_owner_has_lost_the_fence(self, world: World):
        seen = world.active(A)
        world.clock.set(31_000)
        evidence = fresh_evidence(A, B, 31_000)
        assert world.store.claim_and_own("run", seen, B, 31_000, evidence).code == "activated"
        before = tables()
        assert world.store.park("run", TIMER, A, fence=1) == FenceLost()
        assert tables() == before

    @pytest.mark.parametrize(
        ("waiting", "field", "detail"),
        [
            (None, "waiting", "must be an inert waiting record"),
            ({"reason": "timer"}, "waiting", "must be an inert waiting record"),
            ("timer", "waiting", "must be an inert waiting record"),
            (
                type("Sub", (Waiting,), {"__slots__": ()})("timer"),
                "waiting",
                "must be an inert waiting record",
            ),
            (object.__new__(Waiting), "waiting", "must be an inert waiting record"),
            (
                Waiting(""),
                "waiting.reason",
                "must be well-formed durable text of at most 512 bytes",
            ),
            (Waiting(None), "waiting.reason", None),
            (Waiting("a\0b"), "waiting.reason", None),
            (Waiting("\ud800"), "waiting.reason", None),
            (Waiting("x" * 513), "waiting.reason", None),
            (Waiting("é" * 257), "waiting.reason", None),
            (
                Waiting("timer", -1),
                "waiting.wake_at_ms",
                "must be a non-negative safe integer",
            ),
            (Waiting("timer", 1.0), "waiting.wake_at_ms", None),
            (Waiting("timer", True), "waiting.wake_at_ms", None),
            (Waiting("timer", "5"), "waiting.wake_at_ms", None),
            (Waiting("timer", SAFE + 1), "waiting.wake_at_ms", None),
            (Waiting("timer", None, ""), "waiting.token", "must be well-formed durable text"),
            (Waiting("timer", None, 5), "waiting.token", None),
            (Waiting("timer", None, "x" * 1_025), "waiting.token", None),
            (
                Waiting("timer", None, None, ""),
                "waiting.request_json",
                "must be non-empty JSON text",
            ),
            (
                Waiting("timer", None, None, "{"),
                "waiting.request_json",
                "must be valid JSON text",
            ),
            (Waiting("timer", None, None, {}), "waiting.request_json", None),
            (Waiting("timer", None, None, "NaN"), "waiting.request_json", None),
        ],
    )
    def test_a_wait_that_cannot_be_stored_is_refused_by_field(
        self, world: World, waiting, field, detail
    ):
        world.active(A)
        before = tables()
        with pytest.raises(InvalidRun) as caught:
            world.store.park("run", waiting, A)
        assert caught.value.operation == "park"
        assert caught.value.detail["field"] == field
        if detail is not None:
            assert caught.value.detail["detail"] == detail
        assert tables() == before

    @pytest.mark.parametrize(
        "waiting",
        [
            Waiting("x" * 512, SAFE, "y" * 1_024, "null"),
            Waiting("\U0001f600" * 128, 0, "\ufffd", ' {"a" : "\\u0000"} '),
        ],
        ids=["the longest", "the strangest"],
    )
    def test_whatever_can_be_stored_comes_back_as_it_was(self, world: World, waiting):
        world.active(A, "z" * 1_024)
        assert world.store.park("z" * 1_024, waiting, A) == Parked()
        assert world.store.waiting("z" * 1_024) == waiting

    def test_a_wait_shows_neither_token_nor_request(self):
        assert repr(APPROVAL) == "Waiting(reason='approval', wake_at_ms=None)"


class TestParkAndSuspend:
    """What a sleep and a wait are made of."""

    def test_a_sleeping_run_is_claimed_when_it_wakes_and_not_before(self, world: World):
        parked(world, "run", TIMER)
        world.clock.set(4_999)
        assert world.store.claim_many(B, 1) == ()
        world.clock.set(5_000)
        (claimed,) = world.store.claim_many(B, 1)
        assert claimed.run.waiting_reason is None
        assert wait_of(world) == NOTHING

    def test_a_run_that_waits_without_an_end_is_claimed_by_nobody(self, world: World):
        parked(world, "run", APPROVAL)
        world.clock.set(10**12)
        assert world.store.claim_many(B, 1) == ()
        assert world.store.get("run").available_at_ms is None

    def test_both_are_one_transaction(self, world: World):
        world.active(A)
        before = tables()
        with transaction.atomic():
            assert world.store.park("run", TIMER, A, fence=1) == Parked()
            moved = world.store.transition_owned(
                "run", A, "suspended", fence=1, available_at_ms=5_000
            )
            assert moved == Transitioned()
            assert world.store.waiting("run") == TIMER
            transaction.set_rollback(True)
        assert tables() == before

    def test_a_batch_suspends_as_well(self, world: World):
        world.active(A)
        world.store.park("run", APPROVAL, A, fence=1)
        move = OwnedTransition("run", 1, "suspended", available_at_ms=None)
        assert world.store.transition_many(A, [move]) == {"run": Transitioned()}
        assert world.store.get("run").available_at_ms is None
        assert world.store.waiting("run") == APPROVAL

    @pytest.mark.parametrize(
        ("available", "found"), [(None, 9_000), (10_000, 9_000), (4_000, 4_000)]
    )
    def test_a_run_waits_no_longer_than_until_its_deadline(self, world: World, available, found):
        world.active(A, deadline_at_ms=9_000)
        world.store.park("run", APPROVAL, A)
        world.store.transition_owned("run", A, "suspended", available_at_ms=available)
        assert world.store.get("run").available_at_ms == found

    def test_a_suspension_without_a_time_is_available_now_whatever_it_waits_for(self, world: World):
        # A put-back run must not inherit the sleep of a wait that somebody left behind.
        world.active(A)
        world.store.park("run", APPROVAL, A)
        world.clock.set(70)
        world.store.transition_owned("run", A, "suspended")
        assert world.store.get("run").available_at_ms == 70


class TestOtherOperations:
    @pytest.mark.parametrize("status", ["running", "suspended", "completed", "failed"])
    def test_no_transition_touches_the_wait(self, world: World, status):
        parked(world, "run", APPROVAL, suspend=False)
        world.store.transition_owned("run", A, status)
        assert wait_of(world)[0] == "approval"

    def test_claiming_one_by_one_leaves_the_wait(self, world: World):
        parked(world, "owned", TIMER)
        parked(world, "activated", TIMER)
        assert world.store.claim_and_own("owned", SUSPENDED, B, 0).code == "activated"
        world.reactivated(B, "activated")
        assert world.store.waiting("owned") == world.store.waiting("activated") == TIMER

    def test_claiming_many_clears_it(self, world: World):
        parked(world, "run", TIMER)
        world.clock.set(5_000)
        assert len(world.store.claim_many(B, 5)) == 1
        assert world.store.waiting("run") is None


class TestWake:
    def test_a_suspended_run_can_be_claimed_now(self, world: World):
        parked(world, "run", APPROVAL)
        world.clock.set(40)
        assert world.store.wake("run") == Woken()
        assert wait_of(world) == NOTHING
        assert world.store.get("run").available_at_ms == 40
        assert len(world.store.claim_many(B, 1)) == 1

    def test_a_run_that_is_due_keeps_its_place_in_the_queue(self, world: World):
        parked(world, "run", TIMER)
        world.clock.set(9_000)
        assert world.store.wake("run") == Woken()
        assert world.store.get("run").available_at_ms == 5_000

    def test_whoever_wakes_second_is_told(self, world: World):
        parked(world, "run", TIMER)
        assert world.store.wake("run") == Woken()
        before = tables()
        assert world.store.wake("run") == NotWaiting()
        assert tables() == before

    def test_a_run_that_was_never_parked_is_not_waiting(self, world: World):
        world.pending()
        assert world.store.wake("run") == NotWaiting()

    def test_an_unknown_run_is_not_found(self, world: World):
        assert world.store.wake("nobody") == NotFound()

    def test_it_needs_no_owner_and_disturbs_none(self, world: World):
        parked(world, "run", APPROVAL, suspend=False)
        available = world.store.get("run").available_at_ms
        assert world.store.wake("run") == Woken()
        row = world.store.get("run")
        assert (row.snapshot, row.available_at_ms) == (running(A, 0), available)
        assert world.store.heartbeat("run", A, 1, fence=1).code == "updated"

    def test_a_claim_on_the_run_stays(self, world: World):
        parked(world, "run", APPROVAL)
        claimed = world.reclaimed(B)
        assert world.store.wake("run") == Woken()
        assert world.store.activate("run", B, claimed.claimed_at_ms, SUSPENDED).code == "activated"

    @pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
    def test_a_settled_run_waits_no_more_and_keeps_what_it_waited_for(self, world: World, status):
        parked(world, "run", APPROVAL, suspend=False)
        world.store.transition_owned("run", A, status)
        before = tables()
        assert world.store.wake("run") == NotWaiting()
        assert world.store.waiting("run") is None
        assert world.store.waiting_runs() == ()
        assert tables() == before
        assert wait_of(world)[0] == "approval"

    def test_it_writes_no_fact(self, world: World):
        parked(world, "run", TIMER)
        facts = world.fact_names()
        world.store.wake("run")
        assert world.fact_names() == facts


class TestWaiting:
    def test_a_run_that_does_not_wait_has_nothing_to_show(self, world: World):
        world.pending()
        assert world.store.waiting("run") is None

    def test_an_unknown_run_is_not_one_that_does_not_wait(self, world: World):
        with pytest.raises(RunNotFound) as caught:
            world.store.waiting("nobody")
        assert caught.value.operation == "waiting"

    @pytest.mark.parametrize(
        "columns",
        [
            {"waiting_request": "no json"},
            {"waiting_reason": "\x01" * 2_000},
            {"waiting_token": "t" * 3_000},
        ],
        ids=["request", "reason", "token"],
    )
    def test_a_wait_that_no_service_wrote_fails_to_decode(
        self, database_world: World, columns, caplog
    ):
        parked(database_world, "run", TIMER)
        parked(database_world, "sound", TIMER)
        update_raw("run", **columns)
        with pytest.raises(RunDecodeFailed) as caught:
            database_world.store.waiting("run")
        assert caught.value.detail == {"run_id": "run", "stage": "row-schema"}
        with caplog.at_level(logging.WARNING):
            listed = database_world.store.waiting_runs(limit=1)
        # It does not hide those behind it.
        assert [each.run_id for each in listed] == ["sound"]
        assert [record.message for record in caplog.records] == [
            "run row cannot be decoded; left alone"
        ]

    def test_a_time_out_of_range_fails_to_decode(self, database_world: World):
        with checks_off():
            parked(database_world, "run", TIMER)
            update_raw("run", waiting_wake_at_ms=-1)
            with pytest.raises(RunDecodeFailed):
                database_world.store.waiting("run")


class TestWaitingRuns:
    @pytest.fixture
    def crowd(self, world: World) -> World:
        """Seven waits and a settled run that had one."""
        for run_id, waiting in {
            "c": Waiting("timer", 10),
            "a": Waiting("timer", 30),
            "b": Waiting("timer", 10),
            "z": Waiting("approval"),
            "y": Waiting("approval", 20),
            "x": Waiting("timer"),
        }.items():
            parked(world, run_id, waiting)
        parked(world, "running", Waiting("approval", 15), suspend=False)
        parked(world, "settled", Waiting("timer", 1), suspend=False)
        world.store.transition_owned("settled", A, "completed")
        world.pending("idle")
        world.store.request_cancel("y", 3)
        return world

    @pytest.mark.parametrize(
        ("filters", "expected"),
        [
            ({}, "b c running y a x z"),
            ({"reason": "timer"}, "b c a x"),
            ({"reason": "approval"}, "running y z"),
            ({"reason": "nothing"}, ""),
            ({"due_before_ms": 15}, "b c running"),
            ({"due_before_ms": 14}, "b c"),
            ({"due_before_ms": 9}, ""),
            ({"reason": "approval", "due_before_ms": SAFE}, "running y"),
            ({"cancel_requested": True}, "y"),
            ({"cancel_requested": False}, "b c running a x z"),
            ({"cancel_requested": True, "reason": "timer"}, ""),
            ({"limit": 2}, "b c"),
            ({"limit": 1_000}, "b c running y a x z"),
        ],
        ids=str,
    )
    def test_they_are_listed_in_the_order_in_which_they_wake(self, crowd: World, filters, expected):
        listed = crowd.store.waiting_runs(**filters)
        assert [each.run_id for each in listed] == expected.split()

    def test_each_is_given_with_its_wait_and_the_request(self, crowd: World):
        (listed,) = crowd.store.waiting_runs(cancel_requested=True)
        assert listed == WaitingRun("y", Waiting("approval", 20), 3)

    @pytest.mark.parametrize(
        ("argument", "value", "field"),
        [
            ("reason", "", "reason"),
            ("reason", "x" * 513, "reason"),
            ("due_before_ms", -1, "due_before_ms"),
            ("due_before_ms", True, "due_before_ms"),
            ("cancel_requested", 1, "cancel_requested"),
            ("cancel_requested", "yes", "cancel_requested"),
            ("limit", 0, "limit"),
            ("limit", 1_001, "limit"),
        ],
    )
    def test_a_filter_that_makes_no_sense_is_refused(self, world: World, argument, value, field):
        with pytest.raises(InvalidRun) as caught:
            world.store.waiting_runs(**{argument: value})
        assert caught.value.detail["field"] == field


def test_a_pending_run_that_another_program_parked_is_woken_where_it_stands(world: World):
    world.pending()
    update_raw("run", waiting_reason="timer", waiting_wake_at_ms=5, available_at_ms=9)
    world.clock.set(7)
    assert world.store.wake("run") == Woken()
    row = world.store.get("run")
    assert (row.snapshot, row.available_at_ms) == (P, 9)
