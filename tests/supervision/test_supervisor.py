"""Real supervisors and workers over the database under test."""

import importlib
import json
import os
import re
import signal
import time

import pytest
from django.core.management import call_command
from django.db import connection

from django_runstore.models import Run
from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from tests.supervision.processes import facts, has_status, is_alive, notes, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]

# As in tests/settings.py.
STALE_AFTER_S = 2.0
STALE_MINUS_SKEW_S = 1.4


class TestExecuting:
    def test_a_run_is_executed_and_its_result_stored(self, supervise, submit):
        submit("test.answer")
        assert supervise("--drain", "--concurrency", "1").wait() == 0
        row = RunStore().get("run")
        assert (row.status, json.loads(row.result_json)["answer"]) == ("completed", 42)

    def test_a_failure_is_stored_so_that_a_person_can_read_it(self, supervise, submit):
        submit("test.fail")
        supervise("--drain", "--concurrency", "1").wait()
        row = RunStore().get("run")
        error = json.loads(row.error_json)
        assert (row.status, row.failure_count) == ("failed", 1)
        assert error["type"] == "RuntimeError"
        assert "the disk is full" in error["message"]
        assert any("runs.py" in frame for frame in error["traceback"])

    def test_a_run_of_an_unknown_handler_is_left_untouched(self, supervise, submit):
        submit("nobody.knows")
        supervise("--drain", "--concurrency", "1").wait()
        row = RunStore().get("run")
        assert (row.status, row.fence) == ("pending", 0)

    def test_only_the_named_queues_are_served(self, supervise, submit):
        submit("test.answer", "here", queue="reports")
        submit("test.answer", "there", queue="mail")
        supervise("--drain", "--concurrency", "1", "--queues", "other, reports").wait()
        assert RunStore().get("here").status == "completed"
        assert RunStore().get("there").status == "pending"

    def test_once_takes_a_run_per_worker_and_no_more(self, supervise, submit):
        for number in range(3):
            submit("test.answer", f"run-{number}")
        assert supervise("--once", "--concurrency", "2").wait() == 0
        statuses = sorted(Run.objects.values_list("status", flat=True))
        assert statuses == ["completed", "completed", "pending"]

    def test_no_more_is_claimed_than_there_are_idle_workers(self, supervise, submit, marks):
        for number in range(3):
            submit("test.polling", f"run-{number}")
        supervise("--concurrency", "1")
        marks.entered()
        assert Run.objects.filter(status="running").count() == 1
        assert Run.objects.filter(fence=0).count() == 2

    def test_a_worker_of_a_test_run_uses_the_test_database(
        self, submit, monkeypatch, settings, tmp_path
    ):
        settings.RUNSTORE = {"RUNTIME_DIR": str(tmp_path / "runtime")}
        monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.settings")
        # What the worker's own settings would name: the developer's real database.
        monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path / 'real.sqlite3'}")
        importlib.import_module("tests.runapp.runs")
        submit("test.database")
        call_command("runstore_supervise", "--drain", "--concurrency", "1", verbosity=0)
        row = RunStore().get("run")
        assert row.status == "completed"
        assert json.loads(row.result_json)["name"] == str(connection.settings_dict["NAME"])

    def test_workers_that_cannot_start_are_reported_and_not_spun(self, supervise, submit):
        submit("test.answer")
        supervisor = supervise("--drain", "--concurrency", "1", RUNSTORE_TEST_BREAK_WORKERS="yes")
        assert supervisor.wait() == 3
        assert "before it could start: exit status 78" in supervisor.log
        assert len(re.findall("before it could start", supervisor.log)) == 3
        assert RunStore().get("run").fence == 0


class TestLosingWorkers:
    def test_a_killed_workers_run_is_put_back_and_finished_by_another(
        self, supervise, submit, marks
    ):
        submit("test.polling")
        supervise("--concurrency", "1")
        os.kill(marks.entered(), signal.SIGKILL)
        killed_at = time.monotonic()
        until(lambda: notes("run"), what="the note")
        assert time.monotonic() - killed_at < 1
        marks.entered(2)
        marks.allow()
        until(has_status("run", "completed"))
        row = RunStore().get("run")
        assert (row.fence, row.failure_count, row.recovery_count) == (2, 0, 1)

    def test_the_journal_says_how_the_worker_died(self, supervise, submit, marks):
        submit("test.exit_once")
        supervise("--drain", "--concurrency", "1").wait()
        assert notes("run") == [
            (
                "runstore.worker.lost",
                {"exit_status": -9, "exit": "killed by signal 9 (SIGKILL)", "recoveries": 1},
            )
        ]

    def test_a_run_that_kills_every_worker_fails_in_the_end(self, supervise, submit):
        submit("test.always_dies")
        supervise("--drain", "--concurrency", "1").wait(60)
        row = RunStore().get("run")
        assert (row.status, row.fence) == ("failed", 6)
        assert json.loads(row.error_json)["type"] == "WorkerLost"

    def test_what_a_handler_started_ends_with_its_worker(self, supervise, submit, marks):
        submit("test.parent")
        supervisor = supervise("--concurrency", "1")
        worker = marks.entered()
        until(lambda: "child" in marks.lines)
        supervisor.says("is ready")
        os.kill(worker, signal.SIGKILL)
        supervisor.signal(signal.SIGTERM)
        supervisor.signal(signal.SIGTERM)
        supervisor.wait()
        _assert_nothing_more_happens(marks)


class TestStopping:
    def test_the_first_signal_lets_a_run_come_to_a_safe_point_and_puts_it_back(
        self, supervise, submit, marks
    ):
        submit("test.polling")
        supervisor = supervise("--concurrency", "1")
        marks.entered()
        supervisor.signal(signal.SIGTERM)
        assert supervisor.wait() == 0
        row = RunStore().get("run")
        assert (row.status, row.failure_count, row.recovery_count) == ("suspended", 0, 0)
        assert notes("run") == [("runstore.run.put_back", {"reason": "draining"})]
        assert len(RunStore().claim_many(_somebody(), 1)) == 1

    def test_a_run_may_finish_while_its_supervisor_drains(self, supervise, submit, marks):
        submit("test.sleeping")
        supervisor = supervise("--concurrency", "1", "--grace", "30")
        marks.entered()
        supervisor.signal(signal.SIGINT)
        supervisor.says("stopping")
        marks.allow()
        assert supervisor.wait() == 0
        assert RunStore().get("run").status == "completed"

    def test_nothing_is_claimed_while_draining(self, supervise, submit, marks):
        submit("test.sleeping", "first")
        supervisor = supervise("--concurrency", "2", "--grace", "30")
        marks.entered()
        supervisor.signal(signal.SIGTERM)
        supervisor.says("stopping")
        submit("test.answer", "second")
        marks.allow()
        supervisor.wait()
        assert RunStore().get("second").fence == 0

    def test_past_the_grace_a_handler_is_interrupted_wherever_it_is(self, supervise, submit, marks):
        submit("test.sleeping")
        supervisor = supervise("--concurrency", "1", "--grace", "0.2")
        marks.entered()
        supervisor.signal(signal.SIGTERM)
        assert supervisor.wait() == 0
        assert "cleaned up 1" in marks.lines
        assert RunStore().get("run").status == "suspended"

    def test_a_deaf_handler_is_killed_and_its_run_put_back_after_that(
        self, supervise, submit, marks
    ):
        submit("test.deaf")
        supervisor = supervise("--concurrency", "1", "--grace", "0.2")
        worker = marks.entered()
        supervisor.signal(signal.SIGTERM)
        until(has_status("run", "suspended"))
        assert not is_alive(worker)
        assert supervisor.wait() == 0
        row = RunStore().get("run")
        assert (row.failure_count, row.recovery_count) == (0, 0)
        _assert_nothing_more_happens(marks)

    def test_the_second_signal_stops_at_once(self, supervise, submit, marks):
        submit("test.deaf")
        supervisor = supervise("--concurrency", "1", "--grace", "60")
        marks.entered()
        supervisor.signal(signal.SIGTERM)
        supervisor.says("stopping")
        began = time.monotonic()
        supervisor.signal(signal.SIGTERM)
        assert supervisor.wait() == 0
        assert time.monotonic() - began < 5
        assert RunStore().get("run").status == "suspended"

    def test_a_worker_signalled_along_with_its_supervisor_comes_to_a_safe_point(
        self, supervise, submit, marks
    ):
        submit("test.polling")
        supervisor = supervise("--concurrency", "1")
        worker = marks.entered()
        # As a service manager does it: every process of the service.
        os.kill(worker, signal.SIGTERM)
        supervisor.signal(signal.SIGTERM)
        assert supervisor.wait() == 0
        row = RunStore().get("run")
        assert (row.status, row.recovery_count) == ("suspended", 0)

    def test_an_idle_supervisor_ends_at_once_and_leaves_no_lock(self, supervise, submit, tmp_path):
        supervisor = supervise("--concurrency", "1")
        supervisor.says("is ready")
        supervisor.signal(signal.SIGTERM)
        assert supervisor.wait(10) == 0
        assert list((tmp_path / "runtime").glob("*.lock")) == []


class TestCancelling:
    def test_a_request_reaches_a_handler_that_looks(self, supervise, submit, marks):
        submit("test.polling")
        supervise("--concurrency", "1")
        marks.entered()
        RunStore().request_cancel("run")
        until(has_status("run", "cancelled"), 3)
        assert RunStore().get("run").cancel_acknowledgement is not None

    @pytest.mark.parametrize("handler", ["test.sleeping", "test.deaf"])
    def test_a_request_ends_a_handler_that_does_not_look(self, supervise, submit, marks, handler):
        submit(handler)
        supervise("--concurrency", "1")
        worker = marks.entered()
        RunStore().request_cancel("run")
        until(has_status("run", "cancelled"), 10)
        until(lambda: not is_alive(worker), 5)

    def test_the_place_of_a_cancelled_run_is_free_again(self, supervise, submit, marks):
        submit("test.deaf", "first")
        supervise("--concurrency", "1")
        marks.entered()
        submit("test.answer", "second")
        RunStore().request_cancel("first")
        until(has_status("second", "completed"))

    def test_a_run_cancelled_before_its_claim_is_never_entered(self, supervise, submit, marks):
        submit("test.polling")
        RunStore().request_cancel("run")
        supervise("--drain", "--concurrency", "1").wait()
        assert RunStore().get("run").status == "cancelled"
        assert marks.lines == []


class TestLosingSupervisors:
    def test_workers_die_with_their_supervisor(self, supervise, submit, marks):
        submit("test.deaf")
        supervisor = supervise("--concurrency", "2")
        worker = marks.entered()
        until(lambda: len(supervisor.worker_pids()) == 2)
        supervisor.signal(signal.SIGKILL)
        supervisor.wait()
        until(lambda: not any(map(is_alive, supervisor.worker_pids())), 5)
        assert not is_alive(worker)
        _assert_nothing_more_happens(marks)

    def test_another_supervisor_takes_over_with_evidence(self, supervise, submit, marks):
        submit("test.polling")
        first = supervise("--concurrency", "1")
        marks.entered()
        second = supervise("--concurrency", "1")
        second.says("is ready")
        first.signal(signal.SIGKILL)
        marks.entered(2)
        marks.allow()
        until(has_status("run", "completed"))
        taken = [payload for kind, payload in facts("run") if kind == "stolen"]
        assert taken[0]["evidence"]["kind"] == "same-host-pid-dead"
        assert RunStore().get("run").recovery_count == 1

    def test_a_worker_settles_an_outcome_that_nobody_answered_for(self, supervise, submit, marks):
        submit("test.sleeping")
        supervisor = supervise("--concurrency", "1")
        marks.entered()
        supervisor.signal(signal.SIGSTOP)
        marks.allow()
        # Handed over, though nobody reads it; then the supervisor dies.
        until(lambda: "cleaned up 1" in marks.lines)
        supervisor.signal(signal.SIGKILL)
        supervisor.wait()
        until(has_status("run", "completed"), 5)

    def test_a_stopped_supervisors_handler_has_no_effects_past_the_lease(
        self, supervise, submit, marks
    ):
        submit("test.deaf")
        supervisor = supervise("--concurrency", "1")
        worker = marks.entered()
        supervisor.signal(signal.SIGSTOP)
        stopped_at = time.monotonic()
        until(lambda: not is_alive(worker), STALE_MINUS_SKEW_S + 2)
        # The last beat was at most one interval old when it stopped.
        assert time.monotonic() - stopped_at < STALE_MINUS_SKEW_S + 0.5
        _assert_nothing_more_happens(marks)

    def test_a_stopped_supervisors_handler_is_refused_before_that(self, supervise, submit, marks):
        submit("test.polling")
        supervisor = supervise("--concurrency", "1")
        worker = marks.entered()
        supervisor.signal(signal.SIGSTOP)
        time.sleep(STALE_MINUS_SKEW_S + 0.2)
        _assert_nothing_more_happens(marks)
        # It left by itself and waits with its outcome; nobody had to end it.
        assert is_alive(worker)
        assert RunStore().get("run").status == "running"
        supervisor.signal(signal.SIGCONT)
        marks.entered(2)
        assert RunStore().get("run").recovery_count == 0

    def test_after_a_short_stop_the_run_goes_on(self, supervise, submit, marks):
        submit("test.polling")
        supervisor = supervise("--concurrency", "1")
        marks.entered()
        supervisor.signal(signal.SIGSTOP)
        time.sleep(0.5)
        supervisor.signal(signal.SIGCONT)
        marks.allow()
        until(has_status("run", "completed"))
        assert RunStore().get("run").fence == 1


class TestFences:
    def test_a_displaced_handler_is_stopped_and_nothing_settled_for_it(
        self, supervise, submit, marks
    ):
        submit("test.deaf")
        supervise("--concurrency", "1")
        worker = marks.entered()
        # Somebody takes the run away without asking, as raw SQL can.
        thief = _somebody()
        Run.unguarded.filter(pk="run").update(
            owner_host_id=thief.host_id,
            owner_pid=thief.pid,
            owner_nonce=thief.nonce,
            fence=2,
            owner_fence=2,
        )
        until(lambda: not is_alive(worker), 5)
        row = RunStore().get("run")
        assert (row.status, row.owner) == ("running", thief)
        assert notes("run") == []

    def test_an_old_execution_of_the_same_supervisor_cannot_write(self, supervise, submit, marks):
        submit("test.save_late")
        supervise("--concurrency", "2")
        marks.entered()
        # Put back behind the supervisor's back, under its own name, and claimed by it again.
        row = RunStore().get("run")
        RunStore().transition_owned("run", row.owner, "suspended", fence=row.owner_fence)
        marks.entered(2)
        marks.allow("go")
        until(has_status("run", "completed"))
        assert RunStore().get("run").owner_fence is None
        assert json.loads(RunStore().get("run").state_json)["saved_by"] == 2
        assert "saved 1" not in marks.lines


def _somebody():
    return OwnerId("elsewhere", 1, "u-0123456789abcdef")


def _assert_nothing_more_happens(marks, seconds=0.3):
    before = marks.lines
    time.sleep(seconds)
    assert marks.lines == before
