"""Workers that are replaced, stopped, and printed in, with real supervisors."""

import os
import signal

from django_runstore.models import Run
from django_runstore.services import RunStore
from tests.supervision.processes import has_status, is_alive, notes, until


def test_a_worker_is_replaced_after_its_runs_and_always_between_two(supervise, submit):
    for number in range(5):
        submit("test.pid", f"run-{number}")
    supervisor = supervise("--drain", "--concurrency", "1", RUNSTORE_TEST_WORKER_MAX_RUNS="2")
    assert supervisor.wait() == 0
    assert set(Run.objects.values_list("status", "failure_count", "recovery_count")) == {
        ("completed", 0, 0)
    }
    pids = list(Run.objects.order_by("started_at_ms").values_list("result_json", flat=True))
    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [2, 2, 1]
    assert supervisor.log.count("is replaced: it has executed 2 of 2 runs") == 2


def test_a_worker_that_holds_too_much_memory_is_replaced(supervise, submit):
    for number in range(2):
        submit("test.pid", f"run-{number}")
    supervisor = supervise("--drain", "--concurrency", "1", RUNSTORE_TEST_WORKER_MAX_MEMORY_MIB="1")
    assert supervisor.wait() == 0
    assert len(set(Run.objects.values_list("result_json", flat=True))) == 2


def test_the_run_of_a_stopped_worker_goes_on_elsewhere(supervise, submit, marks):
    submit("test.polling")
    supervise("--concurrency", "1")
    stopped = marks.entered()
    os.kill(stopped, signal.SIGSTOP)
    assert marks.entered(2) != stopped
    assert not is_alive(stopped)
    marks.allow()
    until(has_status("run", "completed"))
    row = RunStore().get("run")
    assert (row.failure_count, row.recovery_count) == (0, 1)
    assert [kind for kind, _ in notes("run")] == ["runstore.worker.lost"]


def test_what_a_handler_prints_is_told_with_its_run(supervise, submit):
    submit("test.noisy")
    supervisor = supervise("--drain", "--concurrency", "1")
    supervisor.wait()
    assert "run run: handlers may print" in supervisor.log
    assert "and so may their children" in supervisor.log


def test_a_handler_that_closes_its_output_disturbs_no_later_run(supervise, submit):
    submit("test.closes_output", "first")
    submit("test.noisy", "second", priority=-1)
    supervisor = supervise("--drain", "--concurrency", "1")
    supervisor.wait()
    assert set(Run.objects.values_list("status", flat=True)) == {"completed"}
    assert "run second: handlers may print" in supervisor.log
