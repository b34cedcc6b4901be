"""Throughput counts what was committed and ended. Spec: run-store 11.1, notes 193 to 194."""

import pytest
from django.db import transaction

from django_runstore import InvalidRun
from django_runstore.snapshots import OwnedTransition
from tests.conformance.world import A, World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_settled_run_is_counted(recorder, status):
    world = World()
    world.active(A)
    world.store.transition_owned("run", A, status)

    assert recorder.throughput() == 1


@pytest.mark.parametrize("status", ["running", "suspended"])
def test_a_run_that_goes_on_is_not_counted(recorder, status):
    world = World()
    world.active(A)
    world.store.transition_owned("run", A, status)

    assert recorder.throughput() == 0


def test_a_run_is_counted_at_the_outermost_commit_and_not_before(recorder):
    world = World()
    world.active(A)
    with transaction.atomic():
        with transaction.atomic():
            world.store.transition_owned("run", A, "completed")
        before = recorder.throughput()

    assert (before, recorder.throughput()) == (0, 1)


def test_a_transition_that_was_rolled_back_is_not_counted(recorder):
    world = World()
    world.active(A)
    with transaction.atomic():
        world.store.transition_owned("run", A, "completed")
        transaction.set_rollback(True)

    assert world.store.get("run").status == "running"
    assert recorder.throughput() == 0
    # The attempt itself was made and answered.
    assert recorder.transitions() == {("transitioned", "completed"): 1}


def test_a_savepoint_that_was_rolled_back_is_not_counted(recorder):
    world = World()
    world.active(A)
    with transaction.atomic():
        with transaction.atomic():
            world.store.transition_owned("run", A, "completed")
            transaction.set_rollback(True)
        world.store.heartbeat("run", A, 0)

    assert recorder.throughput() == 0
    assert recorder.heartbeats() == {"updated": 1}


def test_a_batch_counts_each_settled_run(recorder):
    world = World()
    for number in range(3):
        world.pending(f"run-{number}")
    moves = [
        OwnedTransition(one.run.run_id, one.fence, status)
        for one, status in zip(
            world.store.claim_many(A, 3), ("completed", "suspended", "failed"), strict=True
        )
    ]
    world.store.transition_many(A, moves)
    world.store.transition_many(A, moves)

    assert recorder.throughput() == 2


def test_a_refused_or_invalid_transition_is_not_counted(recorder):
    world = World()
    world.active(A)
    world.store.transition_owned("nobody", A, "completed")
    with pytest.raises(InvalidRun):
        world.store.transition_owned("run", A, "done")

    assert recorder.throughput() == 0
