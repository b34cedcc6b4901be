"""Counters of the set operations: each run counts, a call that breaks counts once."""

import pytest

from django_runstore import InvalidRun, TransitionGuard
from django_runstore.snapshots import OwnedTransition
from tests.conformance.world import A, World


def three_runs(world: World) -> list[str]:
    return [world.pending(f"run-{number}") for number in range(3)]


def test_each_claimed_run_is_counted(db, recorder):
    world = World()
    three_runs(world)
    world.store.claim_many(A, 2)

    assert recorder.claims() == {("claim_many", "activated"): 2}


def test_a_look_that_finds_nothing_counts_nothing(db, recorder):
    World().store.claim_many(A, 2)

    assert recorder.calls == 0


def test_each_beat_is_counted_under_its_own_outcome(world, recorder):
    three_runs(world)
    claimed = world.store.claim_many(A, 3)
    recorder.forget()
    beats = [(one.run.run_id, one.fence) for one in claimed[:2]]
    lost = (claimed[2].run.run_id, claimed[2].fence + 1)
    world.store.heartbeat_many(A, [*beats, lost, ("nobody", 1)])

    assert recorder.heartbeats() == {"updated": 2, "fence_lost": 1, "not_found": 1}
    assert [span.name for span in recorder.spans] == ["RunStore.heartbeat_many"]


def test_each_transition_is_counted_under_its_outcome_and_status(db, recorder):
    world = World()
    three_runs(world)
    fences = {one.run.run_id: one.fence for one in world.store.claim_many(A, 3)}
    recorder.forget()
    world.store.transition_many(
        A,
        [
            OwnedTransition("run-0", fences["run-0"], "completed"),
            OwnedTransition("run-1", fences["run-1"], "completed"),
            OwnedTransition(
                "run-2", fences["run-2"], "cancelled", guard=TransitionGuard("present")
            ),
            OwnedTransition("nobody", 1, "suspended"),
        ],
    )

    assert recorder.transitions() == {
        ("transitioned", "completed"): 2,
        ("guard_failed", "cancelled"): 1,
        ("not_found", "suspended"): 1,
    }


@pytest.mark.parametrize(
    ("operation", "arguments", "series"),
    [
        ("claim_many", {"limit": 0}, ("runstore_run_claims", "claim_many", "failure")),
        ("heartbeat_many", {"runs": [("run", -1)]}, ("runstore_run_heartbeats", "failure")),
        (
            "transition_many",
            {"transitions": [OwnedTransition("run", 1, "done")]},
            ("runstore_run_transitions", "failure", "many"),
        ),
        (
            "transition_many",
            {"transitions": object()},
            ("runstore_run_transitions", "failure", "many"),
        ),
    ],
)
def test_a_call_that_breaks_counts_once(db, recorder, operation, arguments, series):
    with pytest.raises(InvalidRun):
        getattr(World().store, operation)(A, **arguments)

    assert recorder.counts == {series: 1}
    assert recorder.calls == 1
