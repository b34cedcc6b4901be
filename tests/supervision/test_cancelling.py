"""
Case 40: requests to cancel, whenever they come and whoever executes the run.

Asked, seen by the owner and ended are three facts, each with a time of its own.
"""

from collections import Counter

import pytest

from django_runstore.handlers.execution import Completed
from django_runstore.outcomes import CancelRequested, Terminal
from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.supervision.endings import Ending
from django_runstore.supervision.settlement import Settler
from tests.conformance.race import race
from tests.supervision.processes import has_status, is_alive, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(180)]

OWNER = OwnerId("host", 1, "u-0123456789abcdef")
HANDLERS = ["test.polling", "test.sleeping", "test.deaf"]
ROUNDS = 200


def cancelled(run_id="run"):
    """Wait for the end of a run that was cancelled, and give its row."""
    until(lambda: RunStore().get(run_id).finished_at_ms, what="the end of the run")
    row = RunStore().get(run_id)
    assert (row.status, row.result_json, row.fence) == ("cancelled", None, 1)
    return row


@pytest.mark.parametrize("handler", HANDLERS)
def test_a_request_before_the_claim_is_met_without_entering(supervise, submit, marks, handler):
    submit(handler)
    asked = RunStore().request_cancel("run")
    assert supervise("--drain", "--concurrency", "1").wait() == 0
    row = cancelled()
    assert marks.lines == []
    assert row.cancel_requested_at_ms == asked.requested_at_ms
    # Nobody was at work who could have seen it.
    assert row.cancel_acknowledgement is None
    assert row.finished_at_ms >= asked.requested_at_ms


@pytest.mark.parametrize("handler", HANDLERS)
def test_a_request_while_it_runs_is_acknowledged_and_then_met(supervise, submit, marks, handler):
    submit(handler)
    supervisor = supervise("--concurrency", "1")
    worker = marks.entered()
    asked = RunStore().request_cancel("run")
    row = cancelled()
    seen = row.cancel_acknowledgement
    assert seen.owner.pid == supervisor.pid
    assert asked.requested_at_ms <= seen.observed_at_ms <= row.finished_at_ms
    assert row.cancel_requested_at_ms == asked.requested_at_ms
    if handler == "test.deaf":
        until(lambda: not is_alive(worker), what="the end of the deaf worker")
    # Its place is free, and the supervisor is none the worse for it.
    submit("test.answer", "next")
    until(has_status("next", "completed"))
    assert supervisor.process.poll() is None


@pytest.mark.parametrize("is_deaf", [False, True], ids=["sync", "deaf"])
def test_a_request_between_the_last_step_and_the_end_is_met(supervise, submit, marks, is_deaf):
    submit("test.asked_at_the_end_deaf" if is_deaf else "test.asked_at_the_end")
    supervisor = supervise("--drain", "--concurrency", "1")
    assert supervisor.wait() == 0
    row = cancelled()
    assert "the last step is done" in marks.lines
    assert row.cancel_requested_at_ms <= row.finished_at_ms


@pytest.mark.parametrize("handler", HANDLERS)
def test_a_request_after_the_end_finds_it_ended(supervise, submit, marks, handler):
    submit(handler)
    marks.allow()
    assert supervise("--drain", "--concurrency", "1").wait() == 0
    before = RunStore().get("run")
    assert RunStore().request_cancel("run") == Terminal("completed")
    assert RunStore().get("run") == before
    assert (before.status, before.cancel_requested_at_ms) == ("completed", None)


def test_of_completing_and_cancelling_one_wins_and_both_know_which():
    """The end and the request meet, round after round."""
    store, won = RunStore(), Counter()
    for number in range(ROUNDS):
        run_id = f"run-{number}"
        store.create(run_id, "{}", handler="h")
        (claimed,) = store.claim_many(OWNER, 1)
        settler = Settler(RunStore(), OWNER)
        settler.add(Ending(run_id, claimed.fence, Completed('"done"')))
        settled, asked = race(
            lambda s=settler: settle(s), lambda r=run_id: RunStore().request_cancel(r)
        )
        row = store.get(run_id)
        assert row.status == settled
        if isinstance(asked, CancelRequested):
            assert (row.status, row.result_json) == ("cancelled", None)
            assert row.cancel_requested_at_ms == asked.requested_at_ms
        else:
            assert asked == Terminal("completed")
            assert (row.status, row.result_json) == ("completed", '"done"')
            assert row.cancel_requested_at_ms is None
        won[row.status] += 1
    assert set(won) == {"cancelled", "completed"}, "one of the two always came first"


def settle(settler):
    """Settle the one run; a database that is busy for a moment is asked again, as in service."""
    while True:
        for settlement in settler.attempt():
            return settlement.status
