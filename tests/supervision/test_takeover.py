"""What becomes of a run whose owner died, and of one whose owner was only slow."""

import json

import pytest

from django_runstore import LivenessEvidence, OwnerId
from django_runstore.models import Run
from django_runstore.outcomes import Claimed, FenceLost, Transitioned, Updated
from django_runstore.supervision import examination
from tests.supervision.sweeping import (
    INTERVAL,
    STALE_AFTER,
    START,
    Scene,
    answers,
    dead_owner,
    facts,
    last_payload,
    reasons,
    short_lease,
)

pytestmark = pytest.mark.django_db

YEAR_MS = 365 * 24 * 3_600_000
OTHER_HOST = OwnerId("elsewhere", 1, "nonce")


@pytest.fixture
def scene(settings):
    settings.RUNSTORE = short_lease()
    return Scene()


@pytest.fixture
def meanwhile(monkeypatch):
    """Have something happen between the sweeper's read and its write."""

    def arrange(act):
        look = examination.gather_evidence

        def gather(row, observer, clock):
            found = look(row, observer, clock)
            act()
            return found

        monkeypatch.setattr(examination, "gather_evidence", gather)

    return arrange


class TestTakingARunBack:
    def test_a_stale_run_of_a_dead_owner_is_put_back(self, scene):
        run = scene.running()
        scene.go_stale()
        assert answers(scene.watch_and_act()) == {run.pk: "put_back"}
        assert scene.store.get(run.pk).status == "suspended"

    def test_a_run_that_was_put_back_can_be_claimed_at_once(self, scene):
        run = scene.running()
        scene.go_stale()
        scene.watch_and_act()
        claimed = scene.store.claim_many(OTHER_HOST, 10)
        assert [each.run.run_id for each in claimed] == [run.pk]

    def test_a_loss_counts_as_a_recovery_and_not_as_a_failure(self, scene):
        run = scene.running()
        scene.go_stale()
        scene.watch_and_act()
        row = scene.store.get(run.pk)
        assert (row.recovery_count, row.failure_count) == (1, 0)

    def test_the_takeover_and_the_put_back_are_ownership_facts(self, scene):
        run = scene.running()
        scene.go_stale()
        scene.watch_and_act()
        assert facts(run.pk) == ["claimed", "activated", "stolen", "activated", "released"]

    def test_the_fact_carries_the_evidence(self, scene):
        run = scene.running()
        scene.go_stale()
        scene.watch_and_act()
        evidence = last_payload(run.pk, "runstore.ownership.stolen")["evidence"]
        assert evidence["kind"] == "same-host-pid-dead"
        assert evidence["last_heartbeat_at_ms"] == START

    def test_the_runs_own_stream_says_that_its_owner_was_lost(self, scene):
        run = scene.running()
        scene.go_stale()
        scene.watch_and_act()
        assert last_payload(run.pk, "runstore.owner.lost") == {
            "owner": scene.dead.describe(),
            "owner_fence": 1,
            "evidence": "same-host-pid-dead",
            "silent_for_ms": STALE_AFTER + 1 + 2 * INTERVAL,
            "recoveries": 1,
            "became": "suspended",
        }

    def test_an_owner_of_another_host_is_judged_by_its_lease(self, scene):
        run = scene.running(OTHER_HOST)
        scene.go_stale()
        report = scene.watch_and_act()
        assert (answers(report), reasons(report)) == (
            {run.pk: "put_back"},
            {run.pk: "cross-host-unreachable-stale"},
        )

    def test_an_owner_with_the_longest_identity_can_be_taken_from(self, scene):
        run = scene.running(OwnerId("h" * 1_024, 1, "n" * 1_024))
        scene.go_stale()
        assert answers(scene.watch_and_act()) == {run.pk: "put_back"}

    def test_a_run_that_somebody_asked_to_stop_is_cancelled(self, scene):
        run = scene.running()
        scene.store.request_cancel(run.pk)
        scene.go_stale()
        assert answers(scene.watch_and_act()) == {run.pk: "cancelled"}
        assert scene.store.get(run.pk).status == "cancelled"

    def test_a_run_is_put_back_as_often_as_the_settings_allow_and_fails_then(self, scene, settings):
        settings.RUNSTORE = short_lease(MAX_RECOVERIES=2)
        run = scene.running()
        seen = []
        for _ in range(3):
            scene.go_stale()
            seen.append(answers(scene.watch_and_act())[run.pk])
            if seen[-1] == "put_back":
                scene.own(run.pk, scene.dead)
        assert seen == ["put_back", "put_back", "failed"]

    def test_a_run_that_lost_too_many_owners_says_so_in_its_error(self, scene, settings):
        settings.RUNSTORE = short_lease(MAX_RECOVERIES=0)
        run = scene.running()
        scene.go_stale()
        scene.watch_and_act()
        error = json.loads(scene.store.get(run.pk).error_json)
        assert error["type"] == "OwnerLost"
        assert "lost its worker or host 1 times without progress" in error["message"]

    def test_progress_before_the_loss_counts_although_it_came_after_the_read(
        self, scene, settings, meanwhile
    ):
        settings.RUNSTORE = short_lease(MAX_RECOVERIES=1)
        run = scene.running()
        Run.unguarded.filter(pk=run.pk).update(recovery_count=1)
        scene.go_stale()
        meanwhile(
            lambda: scene.store.save_progress(run.pk, scene.dead, fence=1, progress_json="{}")
        )
        assert answers(scene.watch_and_act()) == {run.pk: "put_back"}


class TestLosingARace:
    def test_case_3_the_owner_completes_after_the_sweeper_has_read(self, scene, meanwhile):
        run = scene.running()
        scene.go_stale()
        done = []
        meanwhile(
            lambda: done.append(
                scene.store.transition_owned(run.pk, scene.dead, "completed", fence=1)
            )
        )
        report = scene.watch_and_act()
        assert done == [Transitioned()]
        assert (answers(report), reasons(report)) == (
            {run.pk: "moved_on"},
            {run.pk: "snapshot_changed"},
        )
        assert scene.store.get(run.pk).status == "completed"
        assert facts(run.pk) == ["claimed", "activated", "released"]

    def test_case_3_another_claims_after_the_sweeper_has_read(self, scene, meanwhile):
        run = scene.running()
        scene.go_stale()

        def reclaim():
            scene.store.transition_owned(run.pk, scene.dead, "suspended", fence=1)
            scene.own(run.pk, OTHER_HOST)

        meanwhile(reclaim)
        assert answers(scene.watch_and_act()) == {run.pk: "moved_on"}
        assert scene.store.get(run.pk).owner == OTHER_HOST

    def test_the_owner_beats_after_the_sweeper_has_read(self, scene, meanwhile):
        run = scene.running()
        scene.go_stale()
        beats = []
        meanwhile(lambda: beats.append(scene.store.heartbeat(run.pk, scene.dead, fence=1)))
        report = scene.watch_and_act()
        assert beats == [Updated()]
        assert (answers(report), reasons(report)) == (
            {run.pk: "moved_on"},
            {run.pk: "heartbeat_fresh"},
        )
        assert scene.store.get(run.pk).owner == scene.dead

    def test_a_run_that_is_deleted_meanwhile_is_reported_and_not_raised(self, scene, meanwhile):
        run = scene.running()
        scene.go_stale()
        meanwhile(lambda: Run.unguarded.filter(pk=run.pk).delete())
        report = scene.watch_and_act()
        assert (answers(report), reasons(report)) == ({run.pk: "moved_on"}, {run.pk: "not_found"})

    def test_of_two_sweepers_the_second_finds_nothing_to_do(self, scene):
        run = scene.running()
        scene.go_stale()
        first, second = scene.sweeper(), scene.sweeper(observer=OwnerId.for_this_process())
        first.sweep_once()
        second.sweep_once()
        scene.pass_time(2 * INTERVAL)
        assert answers(first.sweep_once()) == {run.pk: "put_back"}
        assert second.sweep_once().runs == ()

    def test_case_1_and_41_the_old_execution_has_lost_its_fence(self, scene):
        run = scene.running()
        scene.go_stale()
        scene.watch_and_act()
        # The same owner once more, as after a put-back inside one supervisor.
        fence = scene.own(run.pk, scene.dead)
        late = scene.store.transition_owned(run.pk, scene.dead, "completed", fence=1)
        assert late == FenceLost()
        rightful = scene.store.transition_owned(run.pk, scene.dead, "completed", fence=fence)
        assert rightful == Transitioned()


class TestClaims:
    def test_case_21_a_claim_whose_holder_died_is_cleared(self, scene):
        run = scene.claimed()
        scene.go_stale()
        assert answers(scene.watch_and_act()) == {run.pk: "claim_cleared"}
        assert [each.run.run_id for each in scene.store.claim_many(OTHER_HOST, 1)] == [run.pk]

    def test_case_42_runs_that_never_started_go_back_with_nothing_counted(self, scene):
        runs = [scene.claimed() for _ in range(3)]
        scene.go_stale()
        scene.watch_and_act()
        rows = [scene.store.get(run.pk) for run in runs]
        assert [(row.status, row.claim, row.failure_count, row.recovery_count) for row in rows] == [
            ("pending", None, 0, 0)
        ] * 3

    def test_case_25_a_run_whose_taker_died_half_way_is_taken_by_the_next_sweeper(self, scene):
        run = scene.running()
        scene.go_stale()
        now_ms = int(scene.clock.now_ms())
        stealer = dead_owner(2)
        evidence = LivenessEvidence(scene.dead, now_ms, "lease-expired")
        row = scene.store.get(run.pk)
        assert isinstance(scene.store.steal(run.pk, row, stealer, now_ms, evidence), Claimed)
        scene.go_stale()
        report = scene.watch_and_act()
        assert [str(swept.answer) for swept in report.runs] == ["claim_cleared", "put_back"]

    def test_a_fresh_claim_is_left_alone(self, scene):
        scene.claimed()
        scene.pass_time(STALE_AFTER)
        assert scene.sweeper().sweep_once().runs == ()

    def test_a_stale_claim_of_a_living_process_is_left_alone(self, scene):
        run = scene.claimed(scene.living)
        scene.go_stale()
        assert answers(scene.watch_and_act()) == {run.pk: "not_provably_dead"}

    def test_a_claim_that_is_activated_meanwhile_is_left_alone(self, scene, monkeypatch):
        run = scene.claimed()
        scene.go_stale()
        look = examination.gather_claim_evidence

        def gather(row, observer, clock):
            found = look(row, observer, clock)
            pending = scene.store.get(run.pk)
            scene.store.activate(run.pk, scene.dead, pending.claimed_at_ms, pending)
            return found

        monkeypatch.setattr(examination, "gather_claim_evidence", gather)
        report = scene.watch_and_act()
        assert (answers(report), reasons(report)) == (
            {run.pk: "moved_on"},
            {run.pk: "claim_changed"},
        )
