"""Conformance notes, section B: claim, activate, abandon_claim."""

import pytest

from django_runstore.outcomes import (
    Abandoned,
    Activated,
    AlreadyClaimed,
    Claimed,
    ClaimLost,
    HeartbeatFresh,
    NotFound,
    SnapshotChanged,
)
from tests.conformance.world import (
    NO_CLAIM,
    STALE_AFTER,
    SUSPENDED,
    A,
    B,
    C,
    P,
    World,
    claim_columns,
    fresh_evidence,
    running,
)


def test_a_pending_run_is_claimed_and_activated(world: World):
    world.pending()
    assert world.store.claim("run", P, A, 0) == Claimed(0, fence=1)
    assert world.store.activate("run", A, 0, P) == Activated(fence=1)
    row = world.store.get("run")
    assert (row.status, row.owner, row.claim) == ("running", A, None)


@pytest.mark.conformance(22)
def test_claim_of_a_run_with_a_fresh_owner_is_heartbeat_fresh(world: World):
    seen = world.active(A)
    assert world.store.claim("run", seen, B, 0) == HeartbeatFresh()


@pytest.mark.conformance(22)
def test_a_heartbeat_of_exactly_the_stale_age_is_fresh(world: World):
    seen = world.active(A)
    world.clock.advance(STALE_AFTER)
    assert world.store.claim("run", seen, B, world.now) == HeartbeatFresh()


@pytest.mark.conformance(23)
def test_claim_never_takes_a_running_run_however_stale(world: World):
    seen = world.active(A)
    world.clock.advance(31_000)
    before = world.columns()
    assert world.store.claim("run", seen, B, world.now) == SnapshotChanged()
    assert world.columns() == before
    assert world.store.get("run").owner == A


@pytest.mark.conformance(24)
def test_claim_of_a_missing_run_is_not_found(store):
    assert store.claim("nobody", P, A, 0) == NotFound()


@pytest.mark.conformance(24)
def test_claim_of_a_claimed_run_is_already_claimed(world: World):
    world.claimed(A)
    assert world.store.claim("run", P, B, 0) == AlreadyClaimed()


@pytest.mark.conformance(24)
def test_claiming_twice_is_already_claimed_for_the_claimant_too(world: World):
    world.claimed(A)
    assert world.store.claim("run", P, A, 0) == AlreadyClaimed()


@pytest.mark.conformance(26)
def test_a_token_of_an_earlier_grant_is_spent(world: World):
    world.claimed(A)
    world.clock.advance(31_000)
    evidence = _own_evidence(world)
    assert world.store.recover_claim("run", A, 0, B, world.now, evidence).code == "recovered"
    assert world.store.claim("run", P, A, world.now) == Claimed(31_000, fence=2)

    assert world.store.activate("run", A, 0, P) == ClaimLost()
    assert world.store.abandon_claim("run", A, 0) == ClaimLost()
    row = world.store.get("run")
    assert (row.claim, row.claimed_at_ms) == (A, 31_000)
    assert world.store.activate("run", A, 31_000, P) == Activated(fence=2)


def _own_evidence(world: World):
    return fresh_evidence(A, B, world.now)


@pytest.mark.conformance(30)
def test_an_abandoned_steal_leaves_the_owner_as_it_was(world: World):
    seen = world.active(A)
    world.clock.advance(31_000)
    stolen = world.steal(B, seen)
    assert world.store.abandon_claim("run", B, stolen.claimed_at_ms) == Abandoned()
    row = world.store.get("run")
    assert (row.owner, row.heartbeat_at_ms, row.claim) == (A, 0, None)


@pytest.mark.conformance(31)
def test_activate_and_abandon_of_a_missing_run_are_claim_lost(store):
    assert store.activate("nobody", A, 0, P) == ClaimLost()
    assert store.abandon_claim("nobody", A, 0) == ClaimLost()


@pytest.mark.conformance(31)
def test_activate_and_abandon_by_another_than_the_claimant_are_claim_lost(world: World):
    world.claimed(A)
    before = world.columns()
    assert world.store.activate("run", B, 0, P) == ClaimLost()
    assert world.store.abandon_claim("run", B, 0) == ClaimLost()
    assert world.columns() == before


def test_an_unclaimed_run_cannot_be_activated(world: World):
    world.pending()
    assert world.store.activate("run", A, 0, P) == ClaimLost()


def test_a_grant_is_spent_once(world: World):
    world.claimed(A)
    assert world.store.activate("run", A, 0, P) == Activated(fence=1)
    assert world.store.activate("run", A, 0, P) == ClaimLost()


def test_activate_with_another_snapshot_gives_the_claim_back(world: World):
    world.claimed(A)
    assert world.store.activate("run", A, 0, SUSPENDED) == SnapshotChanged()
    assert {name: world.columns()[name] for name in NO_CLAIM} == NO_CLAIM
    assert world.store.claim("run", P, B, 0).code == "claimed"


@pytest.mark.conformance(38)
def test_a_completed_run_cannot_be_claimed(world: World):
    world.active(A)
    world.store.transition_owned("run", A, "completed")
    assert world.store.claim("run", P, B, 0) == SnapshotChanged()


@pytest.mark.conformance(41)
def test_a_third_partys_claim_is_left_alone(world: World):
    world.claimed(A)
    assert world.store.abandon_claim("run", A, 0) == Abandoned()
    world.clock.set(1)
    assert world.store.claim("run", P, B, 1) == Claimed(1, fence=2)

    assert world.store.activate("run", A, 0, P) == ClaimLost()
    row = world.store.get("run")
    assert row.status == "pending"
    assert {name: world.columns()[name] for name in NO_CLAIM} == claim_columns(B, 1)


@pytest.mark.conformance(43)
def test_a_whole_row_is_accepted_as_the_expectation(world: World):
    store = world.store
    world.pending("owned")
    assert store.claim_and_own("owned", store.get("owned"), A, 0).code == "activated"

    world.pending("claimed")
    world.clock.set(1)
    assert store.claim("claimed", store.get("claimed"), A, 1) == Claimed(1, fence=1)
    assert store.activate("claimed", A, 1, store.get("claimed")).code == "activated"

    world.clock.set(31_001)
    row = store.get("owned")
    assert store.steal("owned", row, B, 31_001, _own_evidence(world)).code == "claimed"


@pytest.mark.conformance(40)
@pytest.mark.parametrize("status", ["pending", "suspended", "completed", "failed", "cancelled"])
def test_only_a_running_run_has_owner_and_heartbeat(world: World, status):
    if status == "pending":
        world.pending()
    else:
        world.active(A)
        world.store.transition_owned("run", A, status)
    row = world.store.get("run")
    assert (row.status, row.owner, row.heartbeat_at_ms, row.owner_fence) == (
        status,
        None,
        None,
        None,
    )


def test_a_suspended_run_is_claimable_by_any_host(world: World):
    world.active(A)
    world.store.transition_owned("run", A, "suspended")
    assert world.store.claim("run", SUSPENDED, C, 0) == Claimed(0, fence=2)
    assert world.store.activate("run", C, 0, SUSPENDED) == Activated(fence=2)
    assert world.store.get("run").snapshot == running(C, 0)
