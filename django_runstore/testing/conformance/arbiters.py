"""What every arbiter that holds leases decides. Spec: run-store 6.1 to 6.3."""

from contextlib import ExitStack
from dataclasses import replace
from typing import NoReturn

from django.db import connections

from django_runstore.arbiters.lease import (
    AskActivate,
    AskClaim,
    AskGuard,
    AskRelease,
    AskRenew,
    Granted,
    Lease,
)
from django_runstore.testing.conformance.expectations import covers, expect
from django_runstore.testing.conformance.scenes import (
    STALE_MS,
    A,
    B,
    C,
    LeaseScene,
    recover,
)
from django_runstore.testing.conformance.takeovers import TakeoverRules


class ArbiterConformance(TakeoverRules):
    """
    The lease rules; an arbiter of your own must pass every test.

    Each test asks for a new arbiter and needs no database. An arbiter that may be handed
    the row's lease and one that remembers its own are judged alike: the scene writes what
    was decided into the row, as the store does.
    """

    # --- claim ------------------------------------------------------------------------------

    @covers(110)
    def test_a_free_run_is_claimed_at_the_callers_reading(self) -> None:
        scene = self.make_scene()
        expect(scene.ask(AskClaim(A, 5)), Granted(5, fence=1), "a free run is granted")
        expect(scene.lease, Lease(None, None, None, A, 5, 1), "a claim is recorded, and no owner")

    @covers(110)
    def test_a_claim_keeps_every_other_one_out(self) -> None:
        scene = self.make_scene()
        scene.claimed_by(A)
        for claimant in (B, A):
            scene.refused(AskClaim(claimant, 0), "already_claimed", "a run is claimed once")

    @covers(111)
    def test_an_owner_keeps_claims_out_however_stale(self) -> None:
        scene = self.make_scene()
        scene.owned_by(A)
        for now_ms in (0, 1_000_000):
            scene.refused(AskClaim(B, now_ms), "owner_held", "an owned run is not claimed")

    # --- activate ---------------------------------------------------------------------------

    @covers(112)
    def test_a_claim_becomes_ownership(self) -> None:
        scene = self.make_scene()
        scene.claimed_by(A, 5)
        answer = scene.ask(AskActivate(A, 5, 9))
        expect(answer, Granted(9, fence=1), "an activation carries the fence of its grant")
        expect(scene.lease, Lease(A, 9, 1, None, None, 1), "an activation spends the claim")

    @covers(112)
    def test_only_the_claimant_activates(self) -> None:
        scene = self.make_scene()
        scene.lost(AskActivate(A, 5, 5), "there is nothing to activate")
        scene.claimed_by(A, 5)
        scene.lost(AskActivate(B, 5, 5), "the claim is somebody else's")

    @covers(112)
    def test_only_the_exact_grant_time_activates(self) -> None:
        scene = self.make_scene()
        scene.claimed_by(A, 5)
        for token in (4, 6):
            scene.lost(AskActivate(A, token, 6), "the grant time is the token")

    @covers(112)
    def test_a_grant_is_spent_once(self) -> None:
        scene = self.make_scene()
        scene.owned_by(A, 5)
        scene.lost(AskActivate(A, 5, 9), "a grant is spent once")

    # --- heartbeat and reconfirm ------------------------------------------------------------

    @covers(113)
    def test_a_heartbeat_moves_forward_only(self) -> None:
        scene = self.make_scene()
        scene.owned_by(A)
        stamps = [scene.renewed(A, now_ms) for now_ms in (250, 150)]
        expect(stamps, [250, 250], "a late reading leaves the stamp where it is")
        expect(scene.lease.heartbeat_at_ms, 250, "the lease holds the later stamp")

    @covers(113, 114)
    def test_nobody_but_the_owner_renews(self) -> None:
        for unclaimed in (False, True):
            scene = self.make_scene()
            scene.lost(AskRenew(A, 0, unclaimed=unclaimed), "nobody owns the run")
            scene.claimed_by(A)
            scene.lost(AskRenew(A, 0, unclaimed=unclaimed), "a claim is not ownership")
            scene.granted(AskActivate(A, 0, 0))
            scene.lost(AskRenew(B, 0, unclaimed=unclaimed), "the run is somebody else's")

    @covers(113)
    def test_a_heartbeat_ignores_a_thiefs_claim(self) -> None:
        scene = self.make_scene()
        scene.owned_by(A)
        scene.stolen_by(B, STALE_MS)
        expect(scene.renewed(A, STALE_MS), STALE_MS, "a live owner may keep its run")

    @covers(114)
    def test_a_reconfirmation_renews_a_stale_lease_that_nobody_claimed(self) -> None:
        scene = self.make_scene()
        scene.owned_by(A)
        stamps = [scene.renewed(A, now_ms, unclaimed=True) for now_ms in (100_000, 50)]
        expect(stamps, [100_000, 100_000], "staleness alone loses nothing")

    @covers(114)
    def test_a_reconfirmation_is_lost_to_a_thief(self) -> None:
        scene = self.make_scene()
        scene.owned_by(A)
        scene.stolen_by(B, STALE_MS)
        ask = AskRenew(A, STALE_MS, unclaimed=True)
        scene.refused(ask, "already_claimed", "a pending claim defeats a reconfirmation")
        scene.granted(AskActivate(B, STALE_MS, STALE_MS))
        scene.lost(ask, "the run has a new owner")
        expect(scene.renewed(B, STALE_MS + 9, unclaimed=True), STALE_MS + 9, "which may renew")

    # --- release ----------------------------------------------------------------------------

    @covers(116)
    def test_a_strangers_release_changes_nothing(self) -> None:
        scene = self.make_scene()
        scene.granted(AskRelease(C))
        expect(scene.lease, Lease(), "there was nothing to release")
        scene.owned_by(A)
        scene.stolen_by(B, STALE_MS)
        before = scene.lease
        scene.granted(AskRelease(C))
        expect(scene.lease, before, "a stranger has nothing to release")

    @covers(114, 116)
    def test_an_owners_release_frees_the_run(self) -> None:
        scene = self.make_scene()
        scene.owned_by(A)
        scene.granted(AskRelease(A))
        expect(scene.lease, Lease(fence=1), "only the last fence is left of an empty lease")
        for unclaimed in (False, True):
            scene.lost(AskRenew(A, 0, unclaimed=unclaimed), "a released run is not renewed")
        expect(scene.ask(AskClaim(B, 0)), Granted(0, fence=2), "a released run is free")

    @covers(116)
    def test_a_claimants_release_leaves_the_owner(self) -> None:
        scene = self.make_scene()
        scene.owned_by(A)
        owned = scene.lease
        scene.stolen_by(B, STALE_MS)
        scene.granted(AskRelease(B))
        expect(scene.lease.claim, None, "the claim is given up")
        expect(scene.lease.owner, owned.owner, "the owner is as it was")
        expect(scene.lease.owner_fence, owned.owner_fence, "and so is its grant")
        expect(scene.renewed(A, STALE_MS, unclaimed=True), STALE_MS, "which it may renew")

    def test_who_releases_its_claim_alone_keeps_what_it_owns(self) -> None:
        scene = self.make_scene()
        scene.owned_by(A)
        owned = scene.lease
        scene.stolen_by(A, STALE_MS)
        scene.granted(AskRelease(A, claim_only=True))
        expect(scene.lease, replace(owned, fence=2), "the claim is given up and nothing else")
        scene.granted(AskGuard(A))
        scene.granted(AskRelease(A))
        expect(scene.lease, Lease(fence=2), "both go where both are given up")

    # --- guard and fences -------------------------------------------------------------------

    def test_the_guard_asks_for_the_owner_and_for_nothing_else(self) -> None:
        scene = self.make_scene()
        scene.lost(AskGuard(A), "nobody owns the run")
        scene.claimed_by(A)
        scene.lost(AskGuard(A), "a claim is not ownership")
        scene.granted(AskActivate(A, 0, 0))
        scene.stolen_by(B, STALE_MS)
        scene.granted(AskGuard(A))
        scene.lost(AskGuard(B), "a thief that has not activated owns nothing")

    @covers("D9")
    def test_a_given_fence_must_be_the_owners(self) -> None:
        scene = self.make_scene()
        scene.owned_by(A)
        scene.granted(AskRelease(A))
        scene.owned_by(A, 5)
        for fence in (1, 3):
            scene.lost(AskGuard(A, fence), "an execution is known by its grant")
            scene.lost(AskRenew(A, 9, fence), "an execution is known by its grant")
        scene.stolen_by(B, 5 + STALE_MS)
        for ask in (AskGuard(A, 2), AskRenew(A, 9, 2)):
            scene.granted(ask)

    @covers("D9")
    def test_a_given_fence_must_be_the_claims(self) -> None:
        scene = self.make_scene()
        scene.claimed_by(A)
        scene.granted(AskRelease(A))
        scene.claimed_by(A)
        scene.lost(AskActivate(A, 0, 0, fence=1), "an old grant of the same instant is spent")
        scene.lost(recover(STALE_MS, fence=1), "an old grant of the same instant is gone")
        scene.granted(AskActivate(A, 0, 0, fence=2))

    @covers("D9")
    def test_fences_rise_with_every_grant_and_are_never_handed_out_again(self) -> None:
        scene = self.make_scene()
        fences = []
        for now_ms in (0, 1, 1):
            fences.append(scene.claimed_by(A, now_ms).fence)
            scene.granted(AskRelease(A))
        scene.owned_by(A, 2)
        fences += [scene.lease.fence, scene.stolen_by(B, 2 + STALE_MS).fence]
        expect(fences, [1, 2, 3, 4, 5], "every grant has the next number")

    @covers("D9")
    def test_a_fence_that_only_the_row_remembers_is_not_handed_out_again(self) -> None:
        scene = self.make_scene()
        scene.lease = Lease(fence=41)
        expect(scene.ask(AskClaim(A, 0)), Granted(0, fence=42), "the row has seen 41")

    # --- what it may use --------------------------------------------------------------------

    def test_each_run_has_a_lease_of_its_own(self) -> None:
        arbiter = self.make_arbiter()
        one, other = LeaseScene(arbiter, "one"), LeaseScene(arbiter, "other")
        one.owned_by(A)
        other.owned_by(B)
        one.granted(AskRelease(A))
        other.granted(AskGuard(B))

    def test_it_decides_without_a_database(self) -> None:
        def refuse(*_: object) -> NoReturn:
            raise AssertionError("an arbiter never touches the database: got a statement")

        scene = self.make_scene()
        with ExitStack() as watching:
            for connection in connections.all():
                watching.enter_context(connection.execute_wrapper(refuse))
            scene.owned_by(A)
            scene.stolen_by(B, STALE_MS)
            scene.granted(AskRelease(B))
