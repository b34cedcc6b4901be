"""Concurrency limits with real supervisors: nothing to leak, whoever is killed."""

import signal

from django_runstore.models import Run
from django_runstore.services import RunStore
from tests.supervision.processes import has_status, until

RUNS = ("a", "b", "c")


def live():
    return Run.objects.filter(status="running").count()


def test_a_killed_supervisor_leaves_no_place_taken_and_none_too_many(supervise, submit, marks):
    for run_id in RUNS:
        submit("test.polling", run_id, concurrency_key="tenant", concurrency_limit=1)
    first = supervise("--concurrency", "3")
    marks.entered()
    first.signal(signal.SIGKILL)
    first.wait()
    # Its run still counts: nobody knows yet that it is not executed any more.
    assert live() == 1
    second = supervise("--concurrency", "3")
    third = supervise("--concurrency", "3")
    marks.entered(2)
    assert live() == 1
    marks.allow()
    for run_id in RUNS:
        until(lambda run_id=run_id: most_one_live() and has_status(run_id, "completed")())
    assert second.process.poll() is third.process.poll() is None
    assert sum(RunStore().get(run_id).fence for run_id in RUNS) >= len(RUNS) + 1


def most_one_live():
    assert live() <= 1
    return True


def test_as_many_as_the_limit_says_are_executed_at_once(supervise, submit, marks):
    for number in range(5):
        submit("test.polling", f"run-{number}", concurrency_key="tenant", concurrency_limit=2)
    supervise("--concurrency", "4")
    marks.entered(2)
    assert live() == 2
    marks.allow()
    until(lambda: Run.objects.filter(status="completed").count() == 5)
