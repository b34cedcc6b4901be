"""Runs whose handlers raise, hang or take too long, with real supervisors and workers."""

import json
import os
import signal

import pytest

from django_runstore.clocks import clock_for
from django_runstore.services import RunStore
from tests.supervision.processes import has_status, notes, until


def test_a_run_is_tried_again_until_it_succeeds(supervise, submit, marks):
    submit("test.fail_twice")
    supervise("--concurrency", "1")
    until(has_status("run", "completed"))
    row = RunStore().get("run")
    assert (row.failure_count, row.recovery_count, row.error_json) == (2, 0, None)
    assert json.loads(row.result_json) == {"fence": 3}
    retried = {"max_attempts": 3, "delay_ms": 50}
    assert notes("run") == [
        ("runstore.run.retried", {"failures": 1, **retried}),
        ("runstore.run.retried", {"failures": 2, **retried}),
    ]


def test_a_run_fails_with_its_last_error_when_no_attempt_is_left(supervise, submit, marks):
    submit("test.fail_always")
    supervise("--concurrency", "1")
    until(has_status("run", "failed"))
    row = RunStore().get("run")
    assert row.failure_count == 2
    assert json.loads(row.error_json)["message"] == "entered under fence 2"
    assert [kind for kind, _ in notes("run")] == ["runstore.run.retried", "runstore.run.given_up"]


def test_an_error_that_is_not_retryable_is_the_last(supervise, submit, marks):
    submit("test.fail_for_good")
    supervise("--drain", "--concurrency", "1").wait()
    row = RunStore().get("run")
    assert (row.status, row.failure_count, row.fence) == ("failed", 1, 1)
    assert notes("run")[0][1]["because"] == "not_retryable"


def test_a_drain_and_a_lost_worker_burn_no_attempt(supervise, submit, marks):
    submit("test.polling")
    first = supervise("--concurrency", "1")
    os.kill(marks.entered(), signal.SIGKILL)
    marks.entered(2)
    first.signal(signal.SIGTERM)
    first.wait()
    assert RunStore().get("run").failure_count == 0
    supervise("--concurrency", "1")
    marks.entered(3)
    marks.allow()
    until(has_status("run", "completed"))
    row = RunStore().get("run")
    assert (row.failure_count, row.recovery_count) == (0, 1)


@pytest.mark.parametrize("handler", ["test.polling", "test.sleeping", "test.deaf"])
def test_a_handler_that_works_past_the_deadline_is_stopped_and_its_run_fails(
    supervise, submit, marks, handler
):
    submit(handler, deadline_at_ms=now_ms() + 4_000)
    supervise("--concurrency", "1")
    marks.entered()
    until(has_status("run", "failed"))
    row = RunStore().get("run")
    assert json.loads(row.error_json)["type"] == "DeadlinePassed"
    assert (row.failure_count, row.fence) == (0, 1)
    assert now_ms() >= row.deadline_at_ms


def test_a_run_past_its_deadline_is_failed_and_never_entered(supervise, submit, marks):
    submit("test.polling", deadline_at_ms=now_ms() - 1, available_at_ms=now_ms() + 3_600_000)
    supervise("--drain", "--concurrency", "1").wait()
    row = RunStore().get("run")
    assert (row.status, json.loads(row.error_json)["type"]) == ("failed", "DeadlinePassed")
    assert marks.lines == []


def test_a_deadline_is_met_by_a_run_that_is_done_before(supervise, submit, marks):
    submit("test.answer", deadline_at_ms=now_ms() + 600_000)
    supervise("--drain", "--concurrency", "1").wait()
    assert RunStore().get("run").status == "completed"


def now_ms():
    return int(clock_for("default").now_ms())


@pytest.mark.parametrize("handler", ["test.hangs", "test.spins"])
def test_a_run_that_does_not_advance_is_stopped_and_has_failed(supervise, submit, marks, handler):
    submit(handler)
    supervise("--concurrency", "1")
    marks.entered()
    until(has_status("run", "failed"), 60)
    row = RunStore().get("run")
    assert json.loads(row.error_json)["type"] == "NoProgress"
    assert (row.failure_count, row.recovery_count) == (2, 0)
    kinds = [kind for kind, _ in notes("run")]
    assert kinds == [
        "runstore.run.no_progress",
        "runstore.run.retried",
        "runstore.run.no_progress",
        "runstore.run.given_up",
    ]


def test_a_run_that_advances_slowly_is_left_alone(supervise, submit, marks):
    submit("test.advances")
    supervise("--drain", "--concurrency", "1").wait()
    assert RunStore().get("run").status == "completed"
    assert notes("run") == []
