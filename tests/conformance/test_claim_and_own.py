"""Conformance notes, section B: claim_and_own."""

import pytest

from django_runstore import LivenessEvidence
from django_runstore.models import Run
from django_runstore.outcomes import (
    Activated,
    AlreadyClaimed,
    EvidenceRequired,
    FenceLost,
    HeartbeatFresh,
    NotFound,
    SnapshotChanged,
)
from tests.conformance.raw import update_raw
from tests.conformance.world import (
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


@pytest.mark.conformance(14)
def test_a_stale_owner_is_replaced_on_evidence(world: World):
    seen = world.active(A)
    world.clock.advance(31_000)
    evidence = fresh_evidence(A, B, 31_000)
    assert world.store.claim_and_own("run", seen, B, 31_000, evidence) == Activated(fence=2)
    row = world.store.get("run")
    assert (row.snapshot, row.claim, row.claimed_at_ms) == (running(B, 31_000), None, None)
    assert world.store.heartbeat("run", A, 31_000) == FenceLost()


@pytest.mark.conformance(14)
@pytest.mark.parametrize(
    "kind", ["cross-host-unreachable-stale", "lease-expired"], ids=["cross-host", "lease"]
)
def test_another_host_takes_over_on_its_kinds_of_evidence(world: World, kind):
    seen = world.active(A)
    world.clock.advance(31_000)
    evidence = LivenessEvidence(A, 31_000, kind)
    assert world.store.claim_and_own("run", seen, C, 31_000, evidence).code == "activated"


@pytest.mark.conformance(15)
def test_any_identity_can_be_installed(world: World):
    world.pending()
    assert world.store.claim_and_own("run", P, C, 0) == Activated(fence=1)
    assert world.store.get("run").snapshot == running(C, 0)


@pytest.mark.conformance(17)
def test_a_fresh_owner_is_named_before_evidence_is_asked_for(world: World):
    seen = world.active(A)
    before = world.columns()
    assert world.store.claim_and_own("run", seen, B, 0) == HeartbeatFresh()
    assert world.columns() == before


@pytest.mark.conformance(17)
def test_evidence_cannot_displace_a_fresh_heartbeat(world: World):
    seen = world.active(A)
    world.clock.advance(STALE_AFTER)
    evidence = fresh_evidence(A, B, STALE_AFTER)
    assert world.store.claim_and_own("run", seen, B, STALE_AFTER, evidence) == HeartbeatFresh()
    assert world.store.get("run").owner == A


@pytest.mark.conformance(18)
def test_a_stale_owner_without_evidence_is_evidence_required_each_time(world: World):
    seen = world.active(A)
    world.clock.advance(31_000)
    assert world.store.claim_and_own("run", seen, B, 31_000) == EvidenceRequired()
    assert world.store.claim_and_own("run", seen, B, 31_000) == EvidenceRequired()
    row = world.store.get("run")
    assert (row.status, row.owner) == ("running", A)


@pytest.mark.parametrize(
    "evidence",
    [
        pytest.param(fresh_evidence(C, B, 31_000), id="of another owner"),
        pytest.param(fresh_evidence(A, B, 30_999), id="of a moment earlier"),
        pytest.param(LivenessEvidence(A, 31_000, "cross-host-unreachable-stale"), id="of the host"),
    ],
)
def test_evidence_that_does_not_fit_is_no_evidence(world: World, evidence):
    seen = world.active(A)
    world.clock.advance(31_000)
    assert world.store.claim_and_own("run", seen, B, 31_000, evidence) == EvidenceRequired()


@pytest.mark.conformance(19)
def test_a_snapshot_from_before_a_suspension_is_changed(world: World):
    seen = world.active(A)
    world.store.transition_owned("run", A, "suspended")
    world.clock.advance(30_001)
    assert world.store.claim_and_own("run", seen, B, 30_001) == SnapshotChanged()
    assert world.store.claim_and_own("run", SUSPENDED, B, 30_001) == Activated(fence=2)
    assert world.store.get("run").owner == B


@pytest.mark.conformance(20)
def test_a_completed_run_is_not_taken_over(world: World):
    seen = world.active(A)
    world.store.transition_owned("run", A, "completed")
    world.clock.advance(30_001)
    evidence = fresh_evidence(A, B, 30_001)
    assert world.store.claim_and_own("run", seen, B, 30_001) == SnapshotChanged()
    assert world.store.claim_and_own("run", seen, B, 30_001, evidence) == SnapshotChanged()
    row = world.store.get("run")
    assert (row.status, row.owner) == ("completed", None)


@pytest.mark.conformance(21)
def test_the_first_snapshot_does_not_fit_a_suspended_run(world: World):
    world.active(A)
    world.store.transition_owned("run", A, "suspended")
    assert world.store.claim_and_own("run", P, A, 0) == SnapshotChanged()
    row = world.store.get("run")
    assert (row.status, row.owner) == ("suspended", None)


@pytest.mark.conformance(81)
def test_a_deleted_run_is_not_found_rather_than_in_need_of_evidence(database_world: World):
    seen = database_world.active(A)
    Run.unguarded.filter(pk="run").delete()
    assert database_world.store.claim_and_own("run", seen, B, 0) == NotFound()


@pytest.mark.conformance(81)
def test_a_claimed_run_is_already_claimed_rather_than_in_need_of_evidence(database_world: World):
    seen = database_world.active(A)
    update_raw("run", **claim_columns(C, 0))
    assert database_world.store.claim_and_own("run", seen, B, 0) == AlreadyClaimed()


def test_ones_own_fresh_run_is_heartbeat_fresh(world: World):
    seen = world.active(A)
    assert world.store.claim_and_own("run", seen, A, 0) == HeartbeatFresh()


@pytest.mark.conformance("D1")
def test_ones_own_stale_run_is_owned_again_without_evidence(world: World):
    seen = world.active(A)
    world.clock.advance(30_001)
    assert world.store.claim_and_own("run", seen, A, 30_001) == Activated(fence=2)
    row = world.store.get("run")
    assert (row.snapshot, row.owner_fence) == (running(A, 30_001), 2)


def test_the_callers_reading_stamps_start_and_heartbeat(world: World):
    world.pending()
    world.clock.set(5_000)
    world.store.claim_and_own("run", P, A, 4_000)
    row = world.store.get("run")
    assert (row.started_at_ms, row.heartbeat_at_ms) == (4_000, 4_000)


def test_the_first_start_is_kept(world: World):
    world.active(A)
    world.store.transition_owned("run", A, "suspended")
    world.clock.set(9_000)
    world.store.claim_and_own("run", SUSPENDED, B, 9_000)
    row = world.store.get("run")
    assert (row.started_at_ms, row.heartbeat_at_ms) == (0, 9_000)
