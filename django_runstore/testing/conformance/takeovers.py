"""What every arbiter that holds leases makes of takeovers. Spec: run-store 6.3 steal, recover."""

from typing import Any

from django_runstore.arbiters.lease import AskActivate, AskClaim, AskSteal, Granted, Lease
from django_runstore.arbiters.protocol import LeaseArbiter
from django_runstore.evidence import LivenessEvidence
from django_runstore.testing.conformance.expectations import covers, expect
from django_runstore.testing.conformance.scenes import (
    STALE_AFTER_MS,
    STALE_MS,
    A,
    B,
    C,
    LeaseScene,
    recover,
    steal,
)


class TakeoverRules:
    """Nobody is displaced without staleness and evidence; part of ``ArbiterConformance``."""

    def make_arbiter(self) -> LeaseArbiter:
        """Return a new arbiter that has granted nothing yet."""
        raise NotImplementedError(f"{type(self).__name__} must say how its arbiter is made")

    def make_scene(self, **options: Any) -> LeaseScene:
        """Return a run that nobody holds, under an arbiter of its own."""
        return LeaseScene(self.make_arbiter(), **options)

    # --- steal ------------------------------------------------------------------------------

    @covers(117)
    def test_a_fresh_owner_is_not_stolen_from(self) -> None:
        scene = self.make_scene()
        scene.owned_by(A)
        for now_ms in (0, STALE_AFTER_MS):
            scene.refused(steal(B, now_ms), "owner_live", "stale is strictly older")

    def test_the_configured_stale_after_is_the_one_that_counts(self) -> None:
        scene = self.make_scene(stale_after_ms=100)
        scene.owned_by(A)
        scene.refused(steal(B, 100), "owner_live", "100 ms is not stale")
        expect(scene.ask(steal(B, 101)), Granted(101, fence=2), "101 ms is")

    @covers(117)
    def test_a_steal_needs_evidence_of_the_owner_it_displaces(self) -> None:
        scene = self.make_scene()
        scene.refused(steal(B, STALE_MS), "evidence_invalid", "a free run has no dead owner")
        scene.owned_by(A)
        scene.refused(steal(B, STALE_MS, victim=C), "evidence_invalid", "C does not own the run")

    @covers(117)
    def test_a_steal_needs_evidence_of_this_very_moment(self) -> None:
        scene = self.make_scene()
        scene.owned_by(A)
        for checked_at_ms in (STALE_MS - 1, STALE_MS + 1):
            old = LivenessEvidence(A, checked_at_ms, "lease-expired")
            ask = AskSteal(B, STALE_MS, old)
            scene.refused(ask, "evidence_invalid", "evidence is dated at the reading it is used at")

    @covers(117)
    def test_a_steal_needs_evidence_that_the_thief_can_have(self) -> None:
        for thief, kind in ((B, "cross-host-unreachable-stale"), (C, "same-host-pid-dead")):
            scene = self.make_scene()
            scene.owned_by(A)
            ask = AskSteal(thief, STALE_MS, LivenessEvidence(A, STALE_MS, kind))
            scene.refused(ask, "evidence_invalid", f"{kind} does not fit the two hosts")

    @covers(69, 117)
    def test_a_stale_owner_is_stolen_from_on_every_kind_of_evidence(self) -> None:
        for thief, kind in (
            (B, "same-host-pid-dead"),
            (C, "cross-host-unreachable-stale"),
            (B, "lease-expired"),
            (C, "lease-expired"),
        ):
            scene = self.make_scene()
            scene.owned_by(A)
            answer = scene.ask(AskSteal(thief, STALE_MS, LivenessEvidence(A, STALE_MS, kind)))
            expect(answer, Granted(STALE_MS, fence=2), f"{kind} is evidence from {thief.host_id}")

    @covers(117)
    def test_a_run_is_stolen_once(self) -> None:
        scene = self.make_scene()
        scene.owned_by(A)
        scene.stolen_by(B, STALE_MS)
        scene.refused(steal(C, STALE_MS), "already_claimed", "a thief is ahead")

    def test_a_steal_leaves_the_owner_in_place_until_it_is_activated(self) -> None:
        scene = self.make_scene()
        scene.owned_by(A)
        scene.stolen_by(B, STALE_MS)
        expect(scene.lease, Lease(A, 0, 1, B, STALE_MS, 2), "a steal writes the claim only")
        scene.granted(AskActivate(B, STALE_MS, STALE_MS + 1))
        expect(scene.lease, Lease(B, STALE_MS + 1, 2, None, None, 2), "an activation displaces")

    # --- recover ----------------------------------------------------------------------------

    @covers(118)
    def test_a_recovery_needs_evidence_of_this_very_moment(self) -> None:
        scene = self.make_scene()
        scene.claimed_by(A)
        ask = recover(STALE_MS, checked_at_ms=STALE_MS - 1)
        scene.refused(ask, "evidence_invalid", "evidence is dated at the reading it is used at")

    @covers(118)
    def test_a_recovery_names_the_claim_it_clears(self) -> None:
        scene = self.make_scene()
        scene.refused(recover(STALE_MS), "claim_changed", "there is no claim")
        scene.claimed_by(A)
        scene.refused(recover(STALE_MS, claimant=C), "claim_changed", "the claim is not C's")
        scene.refused(recover(STALE_MS, granted_at_ms=1), "claim_changed", "the claim is older")

    @covers(118)
    def test_a_fresh_claim_is_not_recovered(self) -> None:
        scene = self.make_scene()
        scene.claimed_by(A)
        scene.refused(recover(STALE_AFTER_MS), "claim_fresh", "stale is strictly older")

    @covers(118)
    def test_a_recovered_run_is_free(self) -> None:
        scene = self.make_scene()
        scene.claimed_by(A)
        scene.granted(recover(STALE_MS))
        expect(scene.ask(AskClaim(B, STALE_MS)), Granted(STALE_MS, fence=2), "the slot is free")

    def test_a_recovered_steal_leaves_the_owner(self) -> None:
        scene = self.make_scene()
        scene.owned_by(A)
        owned = scene.lease
        scene.stolen_by(B, STALE_MS)
        scene.granted(recover(2 * STALE_MS + 1, claimant=B, granted_at_ms=STALE_MS, observer=C))
        expect(scene.lease.claim, None, "the claim is gone")
        expect(scene.lease.owner, owned.owner, "the owner is as it was")
