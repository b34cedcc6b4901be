"""Conformance notes, section I: one suite over every arbiter that holds leases."""

from typing import Any

import pytest

from django_runstore import LivenessEvidence, OwnerId
from django_runstore.arbiters import DatabaseArbiter, Lease, LocalArbiter
from django_runstore.arbiters.lease import (
    AskActivate,
    AskClaim,
    AskGuard,
    AskRecover,
    AskRelease,
    AskRenew,
    AskSteal,
    Granted,
    Refused,
    Request,
)

A = OwnerId("host-a", 101, "owner-a")
B = OwnerId("host-a", 102, "owner-b")
C = OwnerId("host-b", 103, "owner-c")
STALE_AFTER = 30_000


class Scene:
    """One run under one arbiter; the row follows what the arbiter decides."""

    def __init__(self, arbiter: Any, run_id: str = "run") -> None:
        self.arbiter = arbiter
        self.run_id = run_id
        self.lease = Lease()

    def ask(self, request: Request) -> Granted | Refused:
        decision = self.arbiter.decide(self.run_id, self.lease, request, stale_after_ms=STALE_AFTER)
        if isinstance(decision.answer, Refused):
            assert decision.lease == self.lease, "a refusal changes nothing"
        self.lease = decision.lease
        return decision.answer

    def owned_by(self, owner: OwnerId, at: int = 0) -> None:
        assert isinstance(self.ask(AskClaim(owner, at)), Granted)
        assert isinstance(self.ask(AskActivate(owner, at, at)), Granted)

    def steal(self, thief: OwnerId, now: int, victim: OwnerId = A) -> Granted | Refused:
        return self.ask(AskSteal(thief, now, LivenessEvidence(victim, now, "lease-expired")))

    def renew(self, owner: OwnerId, now: int, **more: Any) -> int | None:
        """The renewed stamp, or nothing when the lease is lost."""
        answer = self.ask(AskRenew(owner, now, **more))
        return answer.at_ms if isinstance(answer, Granted) else None


@pytest.fixture(params=[DatabaseArbiter, LocalArbiter])
def scene(request: pytest.FixtureRequest) -> Scene:
    return Scene(request.param())


def reason(answer: Granted | Refused) -> str:
    assert isinstance(answer, Refused), answer
    return answer.reason


@pytest.mark.conformance(110)
def test_a_claim_keeps_the_next_one_out(scene: Scene):
    assert scene.ask(AskClaim(A, 0)) == Granted(0, fence=1)
    assert reason(scene.ask(AskClaim(B, 0))) == "already_claimed"
    assert reason(scene.ask(AskClaim(A, 0))) == "already_claimed"


@pytest.mark.conformance(111)
@pytest.mark.parametrize("later", [0, 1_000_000])
def test_an_owner_keeps_claims_out_however_stale(scene: Scene, later):
    scene.owned_by(A)
    assert reason(scene.ask(AskClaim(B, later))) == "owner_held"


@pytest.mark.conformance(112)
def test_only_the_exact_grant_activates_and_only_once(scene: Scene):
    assert isinstance(scene.ask(AskActivate(A, 5, 5)), Refused)
    scene.ask(AskClaim(A, 5))
    assert isinstance(scene.ask(AskActivate(A, 6, 6)), Refused)
    assert isinstance(scene.ask(AskActivate(B, 5, 5)), Refused)
    assert scene.ask(AskActivate(A, 5, 9)) == Granted(9, fence=1)
    assert isinstance(scene.ask(AskActivate(A, 5, 9)), Refused)
    assert scene.lease == Lease(A, 9, 1, None, None, 1)


@pytest.mark.conformance(113)
def test_a_heartbeat_moves_forward_only(scene: Scene):
    scene.owned_by(A)
    assert [scene.renew(A, now) for now in (250, 150)] == [250, 250]


@pytest.mark.conformance(113)
@pytest.mark.parametrize("unclaimed", [False, True])
def test_nobody_but_the_owner_renews(scene: Scene, unclaimed):
    assert scene.renew(A, 0, unclaimed=unclaimed) is None
    scene.ask(AskClaim(A, 0))
    assert scene.renew(A, 0, unclaimed=unclaimed) is None
    scene.ask(AskActivate(A, 0, 0))
    assert scene.renew(B, 0, unclaimed=unclaimed) is None


@pytest.mark.conformance(114)
def test_a_reconfirmation_renews_a_stale_lease_that_nobody_claimed(scene: Scene):
    scene.owned_by(A)
    assert scene.renew(A, 100_000, unclaimed=True) == 100_000
    assert scene.renew(A, 50, unclaimed=True) == 100_000


@pytest.mark.conformance(114)
def test_a_reconfirmation_is_lost_to_a_thief_before_and_after_it_activates(scene: Scene):
    scene.owned_by(A)
    scene.steal(B, 31_000)
    assert scene.renew(A, 31_000, unclaimed=True) is None
    scene.ask(AskActivate(B, 31_000, 31_000))
    assert scene.renew(A, 31_000, unclaimed=True) is None
    assert scene.renew(B, 31_500, unclaimed=True) == 31_500
    scene.ask(AskRelease(B))
    assert scene.renew(B, 31_600, unclaimed=True) is None


def test_a_heartbeat_ignores_a_pending_claim(scene: Scene):
    scene.owned_by(A)
    scene.steal(B, 31_000)
    assert scene.renew(A, 31_000) == 31_000


@pytest.mark.conformance(116)
def test_a_strangers_release_changes_nothing(scene: Scene):
    scene.ask(AskRelease(C))
    assert scene.lease == Lease()
    scene.owned_by(A)
    scene.steal(B, 31_000)
    before = scene.lease
    scene.ask(AskRelease(C))
    assert scene.lease == before


@pytest.mark.conformance(116)
def test_an_owners_release_frees_the_run_and_loses_its_heartbeat(scene: Scene):
    scene.owned_by(A)
    scene.ask(AskRelease(A))
    assert scene.renew(A, 0) is None
    assert scene.ask(AskClaim(B, 0)) == Granted(0, fence=2)


@pytest.mark.conformance(116)
def test_a_claimants_release_frees_its_claim_and_leaves_the_owner(scene: Scene):
    scene.owned_by(A)
    scene.steal(B, 31_000)
    scene.ask(AskRelease(B))
    assert (scene.lease.owner, scene.lease.claim) == (A, None)
    assert scene.renew(A, 31_000, unclaimed=True) == 31_000


@pytest.mark.conformance(117)
def test_a_fresh_owner_is_not_stolen_from(scene: Scene):
    scene.owned_by(A)
    assert reason(scene.steal(B, 0)) == "owner_live"
    assert reason(scene.steal(B, STALE_AFTER)) == "owner_live"


@pytest.mark.conformance(117)
@pytest.mark.parametrize(
    "evidence",
    [
        pytest.param(LivenessEvidence(C, 31_000, "lease-expired"), id="another owner"),
        pytest.param(LivenessEvidence(A, 30_999, "same-host-pid-dead"), id="a moment earlier"),
        pytest.param(
            LivenessEvidence(A, 31_000, "cross-host-unreachable-stale"), id="not that host"
        ),
    ],
)
def test_a_steal_needs_evidence_that_fits(scene: Scene, evidence):
    scene.owned_by(A)
    assert reason(scene.ask(AskSteal(B, 31_000, evidence))) == "evidence_invalid"


@pytest.mark.conformance(117)
def test_a_run_without_an_owner_cannot_be_stolen(scene: Scene):
    assert reason(scene.steal(B, 31_000)) == "evidence_invalid"


@pytest.mark.conformance(117)
@pytest.mark.parametrize(
    ("thief", "kind"),
    [
        (B, "same-host-pid-dead"),
        (C, "cross-host-unreachable-stale"),
        (B, "lease-expired"),
        (C, "lease-expired"),
    ],
)
def test_a_stale_owner_is_stolen_from_once(scene: Scene, thief, kind):
    scene.owned_by(A)
    evidence = LivenessEvidence(A, 30_001, kind)
    assert scene.ask(AskSteal(thief, 30_001, evidence)) == Granted(30_001, fence=2)
    assert reason(scene.ask(AskSteal(thief, 30_001, evidence))) == "already_claimed"
    assert (scene.lease.owner, scene.lease.owner_fence) == (A, 1)


def recover(scene: Scene, now: int, *, claimant=A, token=0, checked=None) -> Granted | Refused:
    evidence = LivenessEvidence(claimant, now if checked is None else checked, "lease-expired")
    return scene.ask(AskRecover(claimant, token, B, now, evidence))


@pytest.mark.conformance(118)
def test_a_recovery_needs_evidence_of_this_very_moment(scene: Scene):
    scene.ask(AskClaim(A, 0))
    assert reason(recover(scene, 30_001, checked=30_000)) == "evidence_invalid"


@pytest.mark.conformance(118)
def test_a_recovery_names_the_claim_it_clears(scene: Scene):
    assert reason(recover(scene, 30_001)) == "claim_changed"
    scene.ask(AskClaim(A, 0))
    assert reason(recover(scene, 30_001, claimant=C)) == "claim_changed"
    assert reason(recover(scene, 30_001, token=1)) == "claim_changed"


@pytest.mark.conformance(118)
def test_a_claim_is_recovered_once_it_is_stale_and_the_slot_is_free(scene: Scene):
    scene.ask(AskClaim(A, 0))
    assert reason(recover(scene, 30_000)) == "claim_fresh"
    assert isinstance(recover(scene, 30_001), Granted)
    assert scene.ask(AskClaim(B, 30_001)) == Granted(30_001, fence=2)


def test_a_recovered_steal_leaves_the_owner(scene: Scene):
    scene.owned_by(A)
    scene.steal(B, 31_000)
    evidence = LivenessEvidence(B, 70_000, "lease-expired")
    scene.ask(AskRecover(B, 31_000, C, 70_000, evidence))
    assert (scene.lease.owner, scene.lease.claim) == (A, None)


def test_the_guard_asks_for_the_owner_and_for_nothing_else(scene: Scene):
    assert isinstance(scene.ask(AskGuard(A)), Refused)
    scene.owned_by(A)
    scene.steal(B, 31_000)
    assert isinstance(scene.ask(AskGuard(A)), Granted)
    assert isinstance(scene.ask(AskGuard(B)), Refused)


@pytest.mark.conformance("D9")
def test_a_given_fence_must_be_the_owners(scene: Scene):
    scene.owned_by(A)
    scene.ask(AskRelease(A))
    scene.owned_by(A, 5)
    for request in (AskGuard(A, 1), AskRenew(A, 9, 1)):
        assert isinstance(scene.ask(request), Refused)
    for request in (AskGuard(A, 2), AskRenew(A, 9, 2)):
        assert isinstance(scene.ask(request), Granted)


@pytest.mark.conformance("D9")
def test_a_given_fence_must_be_the_claims(scene: Scene):
    scene.ask(AskClaim(A, 0))
    scene.ask(AskRelease(A))
    scene.ask(AskClaim(A, 0))
    evidence = LivenessEvidence(A, 31_000, "lease-expired")
    assert isinstance(scene.ask(AskActivate(A, 0, 0, fence=1)), Refused)
    assert isinstance(scene.ask(AskRecover(A, 0, B, 31_000, evidence, fence=1)), Refused)
    assert isinstance(scene.ask(AskActivate(A, 0, 0, fence=2)), Granted)


def test_fences_rise_by_one_with_every_grant_and_are_never_reused(scene: Scene):
    fences = []
    for now in range(4):
        answer = scene.ask(AskClaim(A, now))
        assert isinstance(answer, Granted)
        fences.append(answer.fence)
        scene.ask(AskRelease(A))
    assert fences == [1, 2, 3, 4]
