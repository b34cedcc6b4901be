"""Departure D9: a fence tells two executions of one run by the same owner apart."""

from typing import Any

import pytest

from django_runstore import TransitionGuard
from django_runstore.outcomes import (
    Abandoned,
    Activated,
    ClaimChanged,
    ClaimLost,
    FenceLost,
    Recovered,
    Transitioned,
    Updated,
)
from django_runstore.snapshots import OwnedTransition
from tests.conformance.world import SUSPENDED, A, B, P, World, fresh_evidence, tables

pytestmark = pytest.mark.conformance("D9")

OWNED = {
    "heartbeat": lambda store, fence: store.heartbeat("run", A, 0, fence=fence),
    "reconfirm": lambda store, fence: store.reconfirm("run", A, 0, fence=fence),
    "transition_owned": lambda store, fence: store.transition_owned(
        "run", A, "completed", '"old"', fence=fence
    ),
    "a save": lambda store, fence: store.transition_owned(
        "run", A, "running", '"old"', fence=fence
    ),
    "save_progress": lambda store, fence: store.save_progress(
        "run", A, fence=fence, progress_json="1", state_json='"old"'
    ),
    "heartbeat_many": lambda store, fence: store.heartbeat_many(A, [("run", fence)], 0)["run"],
    "transition_many": lambda store, fence: store.transition_many(
        A, [OwnedTransition("run", fence, "completed", '"old"')]
    )["run"],
}


def put_back_and_claimed_again(world: World) -> tuple[int, int]:
    """Let the same owner hold the run twice; give the fences of both executions."""
    world.pending()
    first = world.store.claim_and_own("run", P, A, 0)
    world.store.transition_owned("run", A, "suspended", fence=first.fence)
    second = world.store.claim_and_own("run", SUSPENDED, A, 0)
    return first.fence, second.fence


@pytest.mark.parametrize("operation", OWNED.values(), ids=OWNED)
def test_an_old_execution_of_the_same_owner_is_refused(world: World, operation: Any):
    old, _ = put_back_and_claimed_again(world)
    before = tables()
    assert operation(world.store, old) == FenceLost()
    assert tables() == before


@pytest.mark.parametrize("operation", OWNED.values(), ids=OWNED)
def test_the_present_execution_is_admitted(world: World, operation: Any):
    _, present = put_back_and_claimed_again(world)
    assert operation(world.store, present) in (Updated(), Transitioned())


@pytest.mark.parametrize("operation", OWNED.values(), ids=OWNED)
def test_a_fence_that_was_never_handed_out_is_refused(world: World, operation: Any):
    _, present = put_back_and_claimed_again(world)
    assert operation(world.store, present + 1) == FenceLost()


@pytest.mark.parametrize(
    "name", ["heartbeat", "reconfirm", "transition_owned", "a save", "save_progress"]
)
def test_without_a_fence_the_identity_alone_is_checked(world: World, name):
    put_back_and_claimed_again(world)
    assert OWNED[name](world.store, None) in (Updated(), Transitioned())


def test_an_old_execution_has_no_request_to_acknowledge(world: World):
    old, present = put_back_and_claimed_again(world)
    world.store.request_cancel("run", 1)
    assert world.store.acknowledge_cancel("run", A, 2, fence=old) is False
    assert world.store.acknowledge_cancel("run", A, 3, fence=present) is True
    assert world.store.get("run").cancel_acknowledgement.observed_at_ms == 3


def claimed_twice(world: World) -> tuple[int, int]:
    """Let the same claimant claim the run twice at one instant; give both fences."""
    world.pending()
    first = world.store.claim("run", P, A, 0)
    world.store.abandon_claim("run", A, 0)
    second = world.store.claim("run", P, A, 0)
    return first.fence, second.fence


def test_an_old_claim_of_the_same_instant_cannot_be_activated(world: World):
    old, present = claimed_twice(world)
    assert world.store.activate("run", A, 0, P, fence=old) == ClaimLost()
    assert world.store.activate("run", A, 0, P, fence=present) == Activated(present)


def test_an_old_claim_of_the_same_instant_cannot_be_abandoned(world: World):
    old, present = claimed_twice(world)
    assert world.store.abandon_claim("run", A, 0, fence=old) == ClaimLost()
    assert world.store.abandon_claim("run", A, 0, fence=present) == Abandoned()


def test_an_old_claim_of_the_same_instant_cannot_be_recovered(world: World):
    old, present = claimed_twice(world)
    world.clock.set(31_000)
    evidence = fresh_evidence(A, B, 31_000)
    recover = world.store.recover_claim
    assert recover("run", A, 0, B, 31_000, evidence, fence=old) == ClaimChanged()
    assert recover("run", A, 0, B, 31_000, evidence, fence=present) == Recovered()


def test_a_pending_steal_leaves_the_rightful_owners_fence_valid(world: World):
    seen = world.active(A)
    world.clock.set(31_000)
    stolen = world.steal(B, seen)
    row = world.store.get("run")
    assert (row.fence, row.owner_fence) == (2, 1)
    assert world.store.transition_owned("run", A, "running", "1", fence=1) == Transitioned()
    assert world.store.heartbeat("run", A, 31_000, fence=stolen.fence) == FenceLost()


def test_the_fence_is_lost_whatever_the_guard_says(world: World):
    old, _ = put_back_and_claimed_again(world)
    outcome = world.store.transition_owned(
        "run", A, "completed", None, TransitionGuard("present"), fence=old
    )
    assert outcome == FenceLost()
