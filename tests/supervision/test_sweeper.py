"""The sweeper takes back what dead owners left, on evidence, and nothing else."""

import json
import logging

import pytest
from django.db import OperationalError

from django_runstore import OwnerId
from django_runstore.supervision import examination
from django_runstore.supervision import sweeper as sweeper_module
from django_runstore.testing.factories import RunFactory
from tests.supervision.sweeping import (
    INTERVAL,
    STALE_AFTER,
    START,
    Scene,
    answers,
    everything,
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


def fail(page):
    raise OperationalError


class TestPatience:
    def test_the_first_look_takes_nothing(self, scene):
        run = scene.running()
        scene.go_stale()
        report = scene.sweeper().sweep_once()
        assert (answers(report), report.has_more) == ({run.pk: "watched"}, True)

    def test_a_millisecond_short_of_two_intervals_is_not_enough(self, scene):
        run = scene.running()
        scene.go_stale()
        sweeper = scene.sweeper()
        sweeper.sweep_once()
        scene.pass_time(2 * INTERVAL - 1)
        assert answers(sweeper.sweep_once()) == {run.pk: "watched"}

    def test_a_stamp_that_is_exactly_stale_after_old_is_fresh(self, scene):
        scene.running()
        scene.pass_time(STALE_AFTER)
        assert scene.sweeper().sweep_once().runs == ()

    def test_a_beat_between_two_looks_ends_the_watching(self, scene):
        run = scene.running()
        scene.go_stale()
        sweeper = scene.sweeper()
        sweeper.sweep_once()
        scene.store.heartbeat(run.pk, scene.dead, fence=1)
        scene.pass_time(2 * INTERVAL)
        assert sweeper.sweep_once().runs == ()

    def test_a_late_beat_that_is_still_stale_begins_the_watching_anew(self, scene):
        run = scene.running()
        scene.go_stale()
        sweeper = scene.sweeper()
        sweeper.sweep_once()
        scene.store.heartbeat(run.pk, scene.dead, START + 1, fence=1)
        scene.pass_time(2 * INTERVAL)
        assert answers(sweeper.sweep_once()) == {run.pk: "watched"}

    def test_a_clock_that_jumps_ahead_takes_no_run_whose_owner_beats(self, scene):
        run = scene.running()
        sweeper = scene.sweeper()
        scene.clock.advance(3_600_000)
        assert answers(sweeper.sweep_once()) == {run.pk: "watched"}
        scene.pass_time(INTERVAL)
        scene.store.heartbeat(run.pk, scene.dead, fence=1)
        scene.pass_time(INTERVAL)
        assert sweeper.sweep_once().runs == ()

    def test_a_process_whose_clock_jumped_takes_nothing(self, scene):
        scene.running()
        scene.go_stale()
        scene.clock.takeovers_blocked = lambda: True
        report = scene.watch_and_act()
        assert (report.takeovers_blocked, report.runs) == (True, ())

    def test_what_was_seen_before_the_clock_jumped_does_not_count(self, scene):
        run = scene.running()
        scene.go_stale()
        sweeper = scene.sweeper()
        sweeper.sweep_once()
        scene.clock.takeovers_blocked = lambda: True
        sweeper.sweep_once()
        scene.clock.takeovers_blocked = lambda: False
        scene.pass_time(2 * INTERVAL)
        assert answers(sweeper.sweep_once()) == {run.pk: "watched"}

    def test_a_host_that_sweeps_rarely_takes_runs_too(self, scene):
        run = scene.running()
        scene.go_stale()
        sweeper = scene.sweeper()
        sweeper.sweep_once()
        scene.pass_time(10 * STALE_AFTER)
        assert answers(sweeper.sweep_once()) == {run.pk: "put_back"}

    def test_time_that_the_reads_were_held_up_does_not_count(self, scene, monkeypatch):
        run = scene.running()
        scene.go_stale()
        sweeper = scene.sweeper()
        read = sweeper_module.stale_running

        def held_up(page):
            scene.monotonic.advance(STALE_AFTER)
            return read(page)

        monkeypatch.setattr(sweeper_module, "stale_running", held_up)
        for _ in range(2):
            assert answers(sweeper.sweep_once()) == {run.pk: "watched"}

    def test_what_was_seen_before_the_database_failed_does_not_count(self, scene, monkeypatch):
        run = scene.running()
        scene.go_stale()
        sweeper = scene.sweeper()
        sweeper.sweep_once()
        with monkeypatch.context() as away:
            away.setattr(sweeper_module, "stale_running", fail)
            with pytest.raises(OperationalError):
                sweeper.sweep_once()
        scene.pass_time(2 * INTERVAL)
        assert answers(sweeper.sweep_once()) == {run.pk: "watched"}


class TestLivingOwners:
    def test_case_14_how_long_a_run_has_been_running_never_matters(self, scene):
        run = scene.running()
        scene.pass_time(YEAR_MS)
        scene.store.heartbeat(run.pk, scene.dead, fence=1)
        assert scene.watch_and_act().runs == ()

    def test_case_17_a_beat_that_arrives_late_does_not_make_a_run_stale(self, scene):
        run = scene.running()
        scene.pass_time(20_000)
        scene.store.heartbeat(run.pk, scene.dead, START + 20_000, fence=1)
        scene.store.heartbeat(run.pk, scene.dead, START + 10_000, fence=1)
        scene.pass_time(STALE_AFTER)
        assert scene.sweeper().sweep_once().runs == ()
        assert scene.store.get(run.pk).heartbeat_at_ms == START + 20_000

    def test_a_stale_owner_whose_process_exists_keeps_its_run(self, scene):
        run = scene.running(scene.living)
        scene.go_stale()
        assert answers(scene.watch_and_act()) == {run.pk: "not_provably_dead"}
        assert scene.store.get(run.pk).status == "running"

    def test_the_reason_is_in_the_report(self, scene):
        run = scene.running(scene.living)
        scene.go_stale()
        assert "its process exists on this host" in reasons(scene.watch_and_act())[run.pk]

    def test_a_check_that_fails_proves_nothing_and_blocks_no_other_run(self, scene, settings):
        settings.RUNSTORE = short_lease(LIVENESS=["tests.supervision.checks_that.fail_for_host_x"])
        doubtful = scene.running(OwnerId("host-x", 1, "nonce"), run_id="a")
        dead = scene.running(OTHER_HOST, run_id="b")
        scene.go_stale()
        report = scene.watch_and_act()
        assert answers(report) == {doubtful.pk: "not_provably_dead", dead.pk: "put_back"}
        assert "fail_for_host_x" in reasons(report)[doubtful.pk]

    def test_a_run_that_its_owner_left_is_none_of_the_sweepers_business(self, scene):
        for status in ("pending", "suspended", "completed", "failed", "cancelled"):
            RunFactory(status=status, clock=scene.clock)
        scene.go_stale()
        assert scene.watch_and_act().runs == ()


class TestIsolation:
    def test_a_row_that_cannot_be_decoded_is_reported_and_blocks_no_other(self, scene):
        broken = RunFactory.raw(
            run_id="a",
            status="running",
            owner_host_id=scene.dead.host_id,
            owner_pid=scene.dead.pid,
            owner_nonce=scene.dead.nonce,
            heartbeat_at_ms=START,
            state_json="not json",
        )
        run = scene.running(run_id="b")
        scene.go_stale()
        report = scene.watch_and_act()
        assert answers(report) == {broken.pk: "undecodable", run.pk: "put_back"}
        assert [swept.run_id for swept in report.needs_a_person] == ["a"]

    def test_a_row_whose_takeover_breaks_is_reported_and_blocks_no_other(self, scene, monkeypatch):
        first, second = scene.running(run_id="a"), scene.running(run_id="b")
        scene.go_stale()
        take_over = examination.take_over

        def break_for_a(store, observer, row, evidence, **options):
            if row.run_id == "a":
                raise ZeroDivisionError("secret")
            return take_over(store, observer, row, evidence, **options)

        monkeypatch.setattr(examination, "take_over", break_for_a)
        report = scene.watch_and_act()
        assert answers(report) == {first.pk: "broken", second.pk: "put_back"}
        assert reasons(report)[first.pk] == "ZeroDivisionError"

    def test_rows_that_cannot_be_taken_hide_none_behind_them(self, scene):
        for number in range(5):
            scene.running(scene.living, run_id=f"a{number}")
        scene.running(run_id="z")
        scene.go_stale()
        sweeper = scene.sweeper(window=2)
        taken = []
        for _ in range(10):
            taken += [swept.run_id for swept in sweeper.sweep_once().taken]
            scene.pass_time(2 * INTERVAL)
        assert taken == ["z"]

    def test_a_round_ends_when_every_row_has_had_its_turn(self, scene):
        for number in range(5):
            scene.running(run_id=f"run-{number}")
        scene.go_stale()
        sweeper = scene.sweeper(window=2)
        taken, has_more = [], True
        while has_more:
            report = sweeper.sweep_once()
            taken += [swept.run_id for swept in report.taken]
            has_more = report.has_more
            scene.pass_time(2 * INTERVAL)
        assert taken == [f"run-{number}" for number in range(5)]


class TestReporting:
    def test_a_dry_run_says_what_would_be_done(self, scene):
        run, claimed = scene.running(), scene.claimed()
        scene.go_stale()
        report = scene.watch_and_act(dry_run=True)
        assert answers(report) == {run.pk: "put_back", claimed.pk: "claim_cleared"}

    def test_a_dry_run_writes_nothing(self, scene):
        scene.running()
        scene.claimed()
        scene.go_stale()
        before = everything()
        scene.watch_and_act(dry_run=True)
        assert everything() == before

    def test_the_report_is_json(self, scene):
        run = scene.running()
        scene.go_stale()
        assert json.loads(json.dumps(scene.watch_and_act().as_json())) == {
            "runs": [
                {
                    "run_id": run.pk,
                    "held_as": "ownership",
                    "answer": "put_back",
                    "holder": scene.dead.describe(),
                    "silent_for_ms": STALE_AFTER + 1 + 2 * INTERVAL,
                    "reason": "same-host-pid-dead",
                }
            ],
            "has_more": False,
            "takeovers_blocked": False,
            "dry_run": False,
        }

    def test_a_takeover_is_logged_in_words(self, scene, caplog):
        scene.running(run_id="run-7")
        scene.go_stale()
        with caplog.at_level(logging.INFO, "django_runstore.supervision"):
            scene.watch_and_act()
        owner = scene.dead.describe()
        assert caplog.messages == [
            f"run run-7: put back; owner {owner}, silent for 32.0 s, is gone (same-host-pid-dead)"
        ]

    def test_what_does_not_change_is_logged_once(self, scene, caplog):
        scene.running(scene.living)
        scene.go_stale()
        sweeper = scene.sweeper()
        with caplog.at_level(logging.INFO, "django_runstore.supervision"):
            for _ in range(5):
                scene.watch_and_act(sweeper)
        assert len(caplog.messages) == 1

    def test_no_state_is_in_report_or_log(self, scene, caplog):
        scene.running(state_json='"hunter2"')
        RunFactory.raw(
            status="running",
            owner_host_id="h",
            owner_pid=1,
            owner_nonce="n",
            heartbeat_at_ms=START,
            state_json="hunter2 is not json",
        )
        scene.go_stale()
        with caplog.at_level(logging.DEBUG):
            report = scene.watch_and_act()
        assert len(report.runs) == 2
        assert "hunter2" not in f"{report}{caplog.text}"
