"""Counters of the store's operations. Spec: run-store 11.1, notes 193 to 196."""

import pytest

from django_runstore import InvalidRun, RunStatus, TransitionGuard
from django_runstore.metrics.contract import (
    RUN_CLAIMS,
    RUN_HEARTBEATS,
    RUN_TRANSITIONS,
)
from django_runstore.outcomes import FenceLost, LivenessUnconfirmed
from tests.conformance.calls import CALLS, SINGLE
from tests.conformance.world import A, B, C, P, World, fresh_evidence, running

# Spec 11.1, word for word.
LOSSES = {"not_found", "already_claimed", "heartbeat_fresh", "snapshot_changed"}
SPECIFIED_CLAIMS = {
    "claim": {"claimed"} | LOSSES,
    "claim_and_own": {"activated", "evidence_required"} | LOSSES,
    "activate": {"activated", "claim_lost", "snapshot_changed"},
    "abandon_claim": {"abandoned", "claim_lost"},
    "recover_claim": {
        "recovered",
        "not_found",
        "claim_fresh",
        "claim_changed",
        "liveness_unconfirmed",
    },
    "steal": {"claimed", "liveness_unconfirmed"} | LOSSES,
}
SPECIFIED_HEARTBEATS = {"updated", "fence_lost", "not_found"}
SPECIFIED_TRANSITIONS = {"transitioned", "fence_lost", "not_found", "guard_failed"}
STATUSES = {"pending", "running", "suspended", "completed", "failed", "cancelled"}

# This package's own, beside the specification's.
OWN_CLAIM = ("claim_many", "activated")
OWN_HEARTBEAT = ("unconfirmed",)

UNCOUNTED = {
    "create",
    "get",
    "lineage",
    "latest_round",
    "request_cancel",
    "request_cancel_lineage",
    "acknowledge_cancel",
    "save_progress",
    "park",
    "wake",
    "waiting",
    "waiting_runs",
    "changes",
}


@pytest.mark.conformance(193)
def test_the_series_are_the_fifty_four_of_the_specification():
    claims = {(op, outcome) for op, outcomes in SPECIFIED_CLAIMS.items() for outcome in outcomes}
    heartbeats = {(outcome,) for outcome in SPECIFIED_HEARTBEATS}
    transitions = {(outcome, to) for outcome in SPECIFIED_TRANSITIONS for to in STATUSES}

    assert (len(claims), len(heartbeats), len(transitions)) == (27, 3, 24)
    assert set(RUN_CLAIMS.answered) == claims | {OWN_CLAIM}
    assert set(RUN_HEARTBEATS.answered) == heartbeats | {OWN_HEARTBEAT}
    assert set(RUN_TRANSITIONS.answered) == transitions
    for counter in (RUN_CLAIMS, RUN_HEARTBEATS, RUN_TRANSITIONS):
        assert len(counter.answered) == len(set(counter.answered))


@pytest.mark.conformance(194)
@pytest.mark.django_db(transaction=True)
def test_each_call_of_a_life_is_counted_once(recorder):
    world = World()
    world.pending()
    claimed = world.store.claim("run", P, A, 0)
    world.store.claim("run", P, B, 0)
    world.store.activate("run", A, claimed.claimed_at_ms, P)
    world.store.heartbeat("run", A, 0)
    world.store.heartbeat("run", B, 0)
    world.store.transition_owned("run", A, "completed")
    world.store.transition_owned("run", A, "completed")

    assert recorder.claims() == {
        ("claim", "claimed"): 1,
        ("claim", "already_claimed"): 1,
        ("activate", "activated"): 1,
    }
    assert recorder.heartbeats() == {"updated": 1, "fence_lost": 1}
    assert recorder.transitions() == {
        ("transitioned", "completed"): 1,
        ("fence_lost", "completed"): 1,
    }
    assert recorder.throughput() == 1


@pytest.mark.conformance(195)
def test_invalid_input_is_a_failure_under_the_same_labels(db, recorder):
    store = World().store
    with pytest.raises(InvalidRun):
        store.claim("run", P, A, -1)
    with pytest.raises(InvalidRun):
        store.heartbeat("run", A, -1)
    with pytest.raises(InvalidRun):
        store.transition_owned("", A, "completed")

    assert recorder.claims() == {("claim", "failure"): 1}
    assert recorder.heartbeats() == {"failure": 1}
    assert recorder.transitions() == {("failure", "completed"): 1}


@pytest.mark.conformance(196)
def test_owning_and_stealing_are_counted_under_their_operation(db, recorder):
    world = World()
    world.pending()
    world.store.claim_and_own("run", P, A, 0)
    world.clock.set(30_001)
    misfit = fresh_evidence(C, B, 30_001)
    assert world.store.steal("run", running(A, 0), B, 30_001, misfit) == LivenessUnconfirmed()

    assert recorder.claims() == {
        ("claim_and_own", "activated"): 1,
        ("steal", "liveness_unconfirmed"): 1,
    }


@pytest.mark.conformance(196)
def test_giving_back_and_recovering_are_counted_under_their_operation(db, recorder):
    world = World()
    claimed = world.claimed(A, "one")
    world.claimed(A, "two")
    recorder.forget()
    world.store.abandon_claim("one", A, claimed.claimed_at_ms)
    world.clock.set(30_001)
    world.store.recover_claim("two", A, 0, B, 30_001, fresh_evidence(A, B, 30_001))

    assert recorder.claims() == {
        ("abandon_claim", "abandoned"): 1,
        ("recover_claim", "recovered"): 1,
    }


def test_reconfirm_shares_the_counter_of_heartbeat(db, recorder):
    world = World()
    world.active(A)
    recorder.forget()
    world.store.reconfirm("run", A, 0)

    assert recorder.counts == {("runstore_run_heartbeats", "updated"): 1}


@pytest.mark.parametrize("operation", sorted(SINGLE.keys() - UNCOUNTED))
def test_an_operation_is_counted_exactly_once(db, recorder, operation):
    world = World()
    world.active(A)
    recorder.forget()
    CALLS[operation].on(world.store)

    assert recorder.calls == 1
    assert sum(recorder.counts.values()) == 1


@pytest.mark.parametrize("operation", sorted(UNCOUNTED))
def test_an_operation_outside_the_table_is_not_counted(db, recorder, operation):
    world = World()
    world.active(A)
    recorder.forget()
    CALLS[operation].on(world.store)

    assert recorder.calls == 0
    assert [span.name for span in recorder.spans] == [f"RunStore.{operation}"]


@pytest.mark.parametrize("operation", sorted(CALLS.keys() - UNCOUNTED))
def test_a_failing_operation_is_counted_exactly_once(db, recorder, operation):
    (first, *_) = CALLS[operation].arguments
    with pytest.raises(InvalidRun):
        CALLS[operation].on(World().store, **{first: object()})

    assert recorder.calls == 1
    ((_, *values),) = recorder.counts
    assert "failure" in values


@pytest.mark.parametrize(
    ("requested", "label"),
    [
        ("pending", "pending"),
        ("done", "invalid"),
        ("", "invalid"),
        ("secret " * 1_000, "invalid"),
        (None, "invalid"),
        (object(), "invalid"),
        (["completed"], "invalid"),
    ],
)
def test_a_refused_status_is_a_label_only_when_it_is_one(db, recorder, requested, label):
    with pytest.raises(InvalidRun):
        World().store.transition_owned("run", A, requested)

    assert recorder.transitions() == {("failure", label): 1}


def test_no_code_of_a_requested_status_is_run(db, recorder):
    class Hostile:
        def __eq__(self, other: object) -> bool:
            raise AssertionError("compared")

        def __hash__(self) -> int:
            raise AssertionError("hashed")

    with pytest.raises(InvalidRun):
        World().store.transition_owned("run", A, Hostile())

    assert recorder.transitions() == {("failure", "invalid"): 1}


def test_the_requested_status_is_found_wherever_it_was_passed(db, recorder):
    store = World().store
    store.transition_owned("run", A, "failed")
    store.transition_owned(run_id="run", owner=A, to_status="suspended")
    with pytest.raises(TypeError):
        store.transition_owned("run", A)

    assert recorder.transitions() == {
        ("not_found", "failed"): 1,
        ("not_found", "suspended"): 1,
        ("failure", "invalid"): 1,
    }


@pytest.mark.conformance(193)
def test_every_specified_outcome_of_a_transition_is_counted_under_the_status(db, recorder):
    world = World()
    world.active(A)
    recorder.forget()
    world.store.transition_owned("run", A, "running")
    world.store.transition_owned("run", A, "failed", guard=TransitionGuard("present"))
    assert world.store.transition_owned("run", B, "cancelled") == FenceLost()
    world.store.transition_owned("nobody", A, "suspended")

    assert recorder.transitions() == {
        ("transitioned", "running"): 1,
        ("guard_failed", "failed"): 1,
        ("fence_lost", "cancelled"): 1,
        ("not_found", "suspended"): 1,
    }


def test_a_status_as_an_enumeration_member_is_labelled_by_its_text(db, recorder):
    world = World()
    world.active(A)
    recorder.forget()
    world.store.transition_owned("run", A, RunStatus.RUNNING)

    assert recorder.transitions() == {("transitioned", "running"): 1}
