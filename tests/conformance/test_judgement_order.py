"""Spec 4.1 and 4.3: of several things that are wrong with a run, which one is answered."""

import pytest

from django_runstore import RunSnapshot, TransitionGuard
from django_runstore.outcomes import (
    AlreadyClaimed,
    ClaimChanged,
    ClaimFresh,
    ClaimLost,
    EvidenceRequired,
    FenceLost,
    GuardFailed,
    HeartbeatFresh,
    LivenessUnconfirmed,
    NotFound,
    SnapshotChanged,
    Terminal,
)
from tests.conformance.world import A, B, C, P, World, fresh_evidence, running

WRONG = RunSnapshot("suspended")


def stolen_from(world: World) -> RunSnapshot:
    """A run that is running, stale, and claimed by C."""
    seen = world.active(A)
    world.clock.set(31_000)
    world.steal(C, seen)
    return seen


# --- a lost claim: no row, then a claim, then a fresh heartbeat, then anything else ------


@pytest.mark.parametrize("take", ["claim", "claim_and_own"])
def test_a_missing_run_comes_first(world: World, take):
    assert getattr(world.store, take)("nobody", WRONG, B, 0) == NotFound()


@pytest.mark.parametrize("take", ["claim", "claim_and_own"])
def test_a_claim_comes_before_a_snapshot_that_changed(world: World, take):
    world.claimed(A)
    assert getattr(world.store, take)("run", WRONG, B, 0) == AlreadyClaimed()


@pytest.mark.parametrize("take", ["claim", "claim_and_own"])
def test_a_claim_comes_before_a_fresh_heartbeat(world: World, take):
    seen = stolen_from(world)
    world.store.heartbeat("run", A, 31_000)
    assert getattr(world.store, take)("run", seen, B, 31_000) == AlreadyClaimed()


@pytest.mark.parametrize("take", ["claim", "claim_and_own"])
def test_a_fresh_heartbeat_comes_before_a_snapshot_that_changed(world: World, take):
    world.active(A)
    assert getattr(world.store, take)("run", P, B, 0) == HeartbeatFresh()


def test_a_snapshot_that_changed_comes_before_missing_evidence(world: World):
    world.active(A)
    world.store.heartbeat("run", A, 1)
    world.clock.set(31_002)
    assert world.store.claim_and_own("run", running(A, 0), B, 31_002) == SnapshotChanged()
    assert world.store.claim_and_own("run", running(A, 1), B, 31_002) == EvidenceRequired()


@pytest.mark.parametrize("status", ["suspended", "completed"])
def test_a_claim_expecting_a_status_the_run_has_not_is_changed(world: World, status):
    world.pending()
    assert world.store.claim("run", RunSnapshot(status), A, 0) == SnapshotChanged()


def test_a_terminal_expectation_that_matches_is_changed_all_the_same(world: World):
    world.active(A)
    world.store.transition_owned("run", A, "failed")
    failed = RunSnapshot("failed")
    assert world.store.claim("run", failed, B, 0) == SnapshotChanged()
    assert world.store.claim_and_own("run", failed, B, 0) == SnapshotChanged()


# --- steal ---------------------------------------------------------------------------------


def test_evidence_comes_before_everything_in_a_steal(world: World):
    seen = stolen_from(world)
    wrong = fresh_evidence(B, C, 31_000)
    assert world.store.steal("run", seen, C, 31_000, wrong) == LivenessUnconfirmed()
    assert world.store.steal("nobody", seen, C, 31_000, wrong) == LivenessUnconfirmed()


def test_a_steal_names_a_claim_before_a_fresh_heartbeat(world: World):
    seen = stolen_from(world)
    world.store.heartbeat("run", A, 31_000)
    assert world.steal(B, seen) == AlreadyClaimed()


def test_a_steal_names_a_fresh_heartbeat_before_a_snapshot_that_changed(world: World):
    seen = world.active(A)
    world.clock.set(31_000)
    world.store.heartbeat("run", A, 31_000)
    assert world.steal(B, seen) == HeartbeatFresh()


# --- recover_claim -------------------------------------------------------------------------


def test_recovery_judges_evidence_then_row_then_claim_then_age(world: World):
    recover = world.store.recover_claim
    right, wrong = fresh_evidence(A, B, 0), fresh_evidence(C, B, 0)
    assert recover("run", A, 0, B, 0, wrong) == LivenessUnconfirmed()
    assert recover("run", A, 0, B, 0, right) == NotFound()
    world.claimed(A)
    assert recover("run", A, 1, B, 0, right) == ClaimChanged()
    assert recover("run", A, 0, B, 0, right) == ClaimFresh()


def test_recovery_of_another_claimants_claim_is_changed(world: World):
    world.claimed(C)
    world.clock.set(31_000)
    evidence = fresh_evidence(A, B, 31_000)
    assert world.store.recover_claim("run", A, 0, B, 31_000, evidence) == ClaimChanged()


# --- activate ------------------------------------------------------------------------------


def test_a_lost_claim_comes_before_a_snapshot_that_changed(world: World):
    world.claimed(A)
    before = world.columns()
    assert world.store.activate("run", B, 0, WRONG) == ClaimLost()
    assert world.store.activate("run", A, 1, WRONG) == ClaimLost()
    assert world.columns() == before


# --- transition_owned and cancellation -----------------------------------------------------


def test_a_transition_judges_row_then_fence_then_guard(world: World):
    move, present = world.store.transition_owned, TransitionGuard("present")
    assert move("run", B, "completed", None, present) == NotFound()
    world.active(A)
    assert move("run", B, "completed", None, present) == FenceLost()
    assert move("run", A, "completed", None, present) == GuardFailed()


def test_a_request_judges_the_status_before_the_column(world: World):
    world.active(A)
    world.store.request_cancel("run", 1)
    world.store.transition_owned("run", A, "completed")
    assert world.store.request_cancel("run", 2) == Terminal("completed")
