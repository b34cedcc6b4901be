"""Conformance notes, sections B and E: steal and recover_claim."""

import pytest

from django_runstore import LivenessEvidence, RunSnapshot
from django_runstore.outcomes import (
    Activated,
    AlreadyClaimed,
    ClaimChanged,
    Claimed,
    ClaimFresh,
    FenceLost,
    HeartbeatFresh,
    LivenessUnconfirmed,
    NotFound,
    Recovered,
    SnapshotChanged,
    Transitioned,
    Updated,
)
from tests.conformance.world import (
    NO_CLAIM,
    NO_OWNER,
    A,
    B,
    C,
    P,
    World,
    fresh_evidence,
    running,
)


@pytest.mark.conformance(25)
def test_a_fresh_claim_is_not_recovered(world: World):
    world.claimed(A)
    evidence = fresh_evidence(A, B, 0)
    assert world.store.recover_claim("run", A, 0, B, 0, evidence) == ClaimFresh()


@pytest.mark.conformance(25)
def test_a_claim_of_exactly_the_stale_age_is_fresh(world: World):
    world.claimed(A)
    world.clock.advance(30_000)
    evidence = fresh_evidence(A, B, 30_000)
    assert world.store.recover_claim("run", A, 0, B, 30_000, evidence) == ClaimFresh()


@pytest.mark.conformance(25)
def test_a_stale_claim_is_recovered_once_and_then_free(world: World):
    world.claimed(A)
    world.clock.advance(31_000)
    assert world.store.claim("run", P, B, 31_000) == AlreadyClaimed()

    wrong, right = fresh_evidence(C, B, 31_000), fresh_evidence(A, B, 31_000)
    recover = world.store.recover_claim
    assert recover("run", A, 0, B, 31_000, wrong) == LivenessUnconfirmed()
    assert recover("run", A, 0, B, 31_000, right) == Recovered()
    assert recover("run", A, 0, B, 31_000, right) == ClaimChanged()
    assert world.store.claim("run", P, B, 31_000) == Claimed(31_000, fence=2)


@pytest.mark.conformance(25)
def test_recovering_the_claim_of_a_missing_run_is_not_found(world: World):
    evidence = fresh_evidence(A, B, 0)
    assert world.store.recover_claim("nobody", A, 0, B, 0, evidence) == NotFound()


def test_evidence_is_judged_before_the_run_is_looked_for(world: World):
    wrong = fresh_evidence(C, B, 0)
    assert world.store.recover_claim("nobody", A, 0, B, 0, wrong) == LivenessUnconfirmed()
    assert world.store.steal("nobody", running(A, 0), B, 0, wrong) == LivenessUnconfirmed()


@pytest.mark.conformance(27)
def test_a_fresh_owner_is_not_stolen_from(world: World):
    seen = world.active(A)
    assert world.steal(C, seen) == HeartbeatFresh()


@pytest.mark.conformance(27)
def test_a_stale_owner_is_stolen_from_on_matching_evidence_only(world: World):
    seen = world.active(A)
    world.clock.advance(31_000)
    assert world.store.claim("run", seen, C, 31_000) == SnapshotChanged()
    wrong = fresh_evidence(B, C, 31_000)
    assert world.store.steal("run", seen, C, 31_000, wrong) == LivenessUnconfirmed()
    assert world.steal(C, seen) == Claimed(31_000, fence=2)


@pytest.mark.conformance(28)
def test_a_heartbeat_since_the_reading_defeats_a_steal(world: World):
    seen = world.active(A)
    world.clock.advance(31_000)
    world.store.heartbeat("run", A, world.now)
    world.clock.advance(31_000)
    assert world.steal(C, seen) == SnapshotChanged()


@pytest.mark.conformance(29)
def test_an_owner_that_beats_before_the_thief_activates_keeps_its_run(world: World):
    seen = world.active(A)
    world.clock.advance(31_000)
    stolen = world.steal(B, seen)
    assert stolen == Claimed(31_000, fence=2)
    assert world.store.heartbeat("run", A, 31_000) == Updated()
    assert world.store.activate("run", B, stolen.claimed_at_ms, seen) == SnapshotChanged()
    row = world.store.get("run")
    assert (row.snapshot, row.claim, row.owner_fence) == (running(A, 31_000), None, 1)


@pytest.mark.conformance(32)
def test_an_activated_thief_fences_the_old_owner(world: World):
    seen = world.active(A)
    world.clock.advance(31_000)
    stolen = world.steal(B, seen)
    assert world.store.activate("run", B, stolen.claimed_at_ms, seen) == Activated(fence=2)
    assert world.store.heartbeat("run", A, 31_000) == FenceLost()
    assert world.store.transition_owned("run", A, "completed") == FenceLost()


@pytest.mark.conformance(36)
def test_an_owner_that_gives_up_takes_a_thiefs_claim_along(world: World):
    seen = world.active(A)
    world.clock.advance(31_000)
    stolen = world.steal(B, seen)
    outcome = world.store.transition_owned("run", A, "suspended", '{"n":1}')
    assert outcome == Transitioned()
    columns = world.columns()
    assert {name: columns[name] for name in NO_OWNER} == NO_OWNER
    assert {name: columns[name] for name in NO_CLAIM} == NO_CLAIM
    assert columns["state_json"] == '{"n":1}'
    assert world.store.activate("run", B, stolen.claimed_at_ms, seen).code == "claim_lost"


@pytest.mark.conformance("D1")
def test_no_claim_is_stranded_by_an_owner_that_gives_up(world: World):
    seen = world.active(A)
    world.clock.advance(31_000)
    world.steal(B, seen)
    world.store.transition_owned("run", A, "suspended")
    assert world.store.claim("run", world.store.get("run"), C, 31_000) == Claimed(31_000, fence=3)


@pytest.mark.conformance(39)
def test_a_run_that_completed_meanwhile_is_not_stolen(world: World):
    seen = world.active(A)
    world.store.transition_owned("run", A, "completed")
    before = world.columns()
    world.clock.advance(31_000)
    assert world.steal(B, seen) == SnapshotChanged()
    assert world.columns() == before


@pytest.mark.parametrize("status", ["pending", "suspended", "completed"])
def test_only_a_running_snapshot_can_be_stolen(world: World, status):
    world.pending()
    evidence = fresh_evidence(A, B, 0)
    outcome = world.store.steal("run", RunSnapshot(status), B, 0, evidence)
    assert outcome == LivenessUnconfirmed()


def test_a_pending_claim_is_named_before_the_heartbeat(world: World):
    seen = world.active(A)
    world.clock.advance(31_000)
    world.steal(B, seen)
    assert world.steal(C, seen) == AlreadyClaimed()


def test_stealing_a_missing_run_is_not_found(world: World):
    assert world.steal(B, running(A, 0), "nobody") == NotFound()


@pytest.mark.conformance(69)
def test_an_expired_lease_is_evidence_from_any_host(world: World):
    seen = world.active(A)
    world.clock.advance(30_001)
    evidence = LivenessEvidence(A, 30_001, "lease-expired")
    assert world.store.steal("run", seen, C, 30_001, evidence) == Claimed(30_001, fence=2)


@pytest.mark.conformance(69)
def test_an_expired_lease_is_no_evidence_while_it_has_not_expired(world: World):
    seen = world.active(A)
    world.clock.advance(29_999)
    evidence = LivenessEvidence(A, 29_999, "lease-expired")
    assert world.store.steal("run", seen, C, 29_999, evidence) == HeartbeatFresh()


@pytest.mark.conformance(69)
def test_an_expired_lease_of_somebody_else_is_no_evidence(world: World):
    seen = world.active(A)
    world.clock.advance(30_001)
    evidence = LivenessEvidence(B, 30_001, "lease-expired")
    assert world.store.steal("run", seen, C, 30_001, evidence) == LivenessUnconfirmed()


@pytest.mark.conformance("D12")
def test_an_omitted_reading_is_the_evidences_own(world: World):
    seen = world.active(A)
    world.clock.set(40_000)
    evidence = fresh_evidence(A, B, 31_000)
    assert world.store.steal("run", seen, B, None, evidence) == Claimed(31_000, fence=2)
    world.clock.set(90_000)
    again = fresh_evidence(B, C, 70_000)
    assert world.store.recover_claim("run", B, 31_000, C, None, again) == Recovered()
    final = fresh_evidence(A, C, 80_000)
    assert world.store.claim_and_own("run", seen, C, None, final).code == "activated"
    assert world.store.get("run").heartbeat_at_ms == 80_000


@pytest.mark.conformance("D11")
def test_what_was_observed_is_no_part_of_matching(world: World):
    seen = world.active(A)
    world.clock.advance(31_000)
    evidence = LivenessEvidence(A, 31_000, "same-host-pid-dead", observed={"pid_exists": False})
    assert world.store.steal("run", seen, B, 31_000, evidence) == Claimed(31_000, fence=2)
