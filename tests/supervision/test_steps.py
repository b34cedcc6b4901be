"""Steps of runs whose worker, or supervisor, is killed on the way."""

import json

import pytest

from django_runstore.models import Attempt
from django_runstore.services import RunStore
from tests.supervision.processes import facts, has_status, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]


@pytest.fixture
def submit_steps(transactional_db, marks):
    def create(handler, **where):
        RunStore().create("run", json.dumps({"file": str(marks.path), **where}), handler=handler)

    return create


def effects(marks):
    """What was done outside the database: step and fence."""
    return [tuple(line.split()[:2]) for line in marks.lines]


def attempts():
    return list(Attempt.objects.order_by("pk").values_list("step_name", "attempt", "state"))


def test_a_worker_killed_between_two_steps_repeats_neither(supervise, submit_steps, marks):
    submit_steps("test.steps", dies_after="second")
    assert supervise("--drain", "--concurrency", "1").wait() == 0

    assert effects(marks) == [("first", "1"), ("second", "1"), ("third", "2")]
    assert json.loads(RunStore().get("run").result_json) == [
        ["first", 1],
        ["second", 1],
        ["third", 2],
    ]
    assert attempts() == [(name, 0, "completed") for name in ("first", "second", "third")]


def test_a_worker_killed_in_a_step_repeats_this_one_alone(supervise, submit_steps, marks):
    submit_steps("test.steps", dies_in="second")
    assert supervise("--drain", "--concurrency", "1").wait() == 0

    assert effects(marks) == [("first", "1"), ("second", "1"), ("second", "2"), ("third", "2")]
    assert attempts() == [
        ("first", 0, "completed"),
        ("second", 0, "interrupted"),
        ("second", 1, "completed"),
        ("third", 0, "completed"),
    ]


def test_another_supervisor_goes_on_after_the_last_finished_step(supervise, submit_steps, marks):
    submit_steps("test.steps_deserted")
    first = supervise("--concurrency", "1")
    until(lambda: first.process.poll() is not None, what="the death of the supervisor")
    supervise("--concurrency", "1")
    until(has_status("run", "completed"))

    # The sweeper's takeover is a grant of its own, and the claim after it another.
    assert effects(marks) == [("first", "1"), ("second", "1"), ("third", "3")]
    assert "stolen" in [event for event, _ in facts("run")]
