import json

import pytest

from django_runstore.handlers.execution import Completed, Failed, Interrupted
from django_runstore.snapshots import Waiting
from django_runstore.supervision.endings import (
    NO_RETRIES,
    RETRY_LATER_MS,
    Ending,
    RecoveryBudget,
    RetryBudget,
    WorkerExit,
    WorkerLost,
    first_choice,
    last_choice,
    outcome_of,
    report_of,
    second_choice,
)
from django_runstore.unset import UNSET

PLENTY = RecoveryBudget(used=0, allowed=5)
KILLED = WorkerExit(-9)
NOW_MS = 1_000


def ending(outcome, worker_exit=None):
    return Ending("run", 7, outcome, worker_exit)


def choose(outcome, worker_exit=None, budget=PLENTY, retries=NO_RETRIES):
    return first_choice(ending(outcome, worker_exit), budget, retries, NOW_MS)


@pytest.mark.parametrize(
    "outcome", [Completed("1"), Failed("{}"), Interrupted("draining"), WorkerLost()], ids=repr
)
def test_every_transition_is_fenced(outcome):
    first = choose(outcome)
    second = second_choice(ending(outcome), NOW_MS)
    assert (first.run_id, first.fence, second.run_id, second.fence) == ("run", 7, "run", 7)


def test_a_result_is_stored_unless_somebody_asked_to_cancel():
    chosen = choose(Completed('{"a":1}'))
    assert (chosen.to_status, chosen.result_json) == ("completed", '{"a":1}')
    assert chosen.guard.cancel_requested == "absent"


def test_a_completion_refused_by_its_guard_becomes_a_cancellation():
    chosen = second_choice(ending(Completed("1")), NOW_MS)
    assert chosen.to_status == "cancelled"
    assert chosen.guard.cancel_requested == "present"


def test_a_failure_is_stored_and_counted_whether_or_not_it_was_to_be_cancelled():
    chosen = choose(Failed('{"type":"X"}'))
    assert (chosen.to_status, chosen.error_json) == ("failed", '{"type":"X"}')
    assert chosen.guard is None
    assert chosen.counts_failure


@pytest.mark.parametrize("reason", ["draining", "stopping", "lease_lapsed", "not_started"])
def test_an_interrupted_run_is_put_back_at_once_and_counts_nothing(reason):
    chosen = choose(Interrupted(reason))
    assert (chosen.to_status, chosen.available_at_ms) == ("suspended", UNSET)
    assert not chosen.counts_failure
    assert not chosen.counts_recovery
    assert chosen.note.payload == {"reason": reason}


@pytest.mark.parametrize("reason", ["unknown_handler", "unreadable", "database_unavailable"])
def test_a_run_that_would_end_the_same_way_at_once_is_put_back_for_later(reason):
    assert choose(Interrupted(reason)).available_at_ms == 1_000 + RETRY_LATER_MS


def test_a_run_that_left_unasked_is_put_back_for_later():
    unasked = Ending("run", 1, Interrupted("stopping"), is_unasked=True)
    chosen = first_choice(unasked, PLENTY, NO_RETRIES, NOW_MS)
    assert (chosen.to_status, chosen.available_at_ms) == ("suspended", 1_000 + RETRY_LATER_MS)


def test_a_cancelled_run_is_settled_only_while_the_request_stands():
    chosen = choose(Interrupted("cancelled"))
    assert (chosen.to_status, chosen.guard.cancel_requested) == ("cancelled", "present")
    second = second_choice(ending(Interrupted("cancelled")), NOW_MS)
    assert (second.to_status, second.available_at_ms) == ("suspended", UNSET)


def test_a_lost_ownership_settles_nothing():
    assert ending(Interrupted("fence_lost")).loses_ownership
    assert not ending(Interrupted("lease_lapsed")).loses_ownership


def test_a_lost_worker_puts_its_run_back_and_says_how_it_died():
    chosen = choose(WorkerLost(), KILLED)
    assert (chosen.to_status, chosen.counts_recovery) == ("suspended", True)
    assert chosen.note.event_type == "runstore.worker.lost"
    assert chosen.note.payload == {
        "exit_status": -9,
        "exit": "killed by signal 9 (SIGKILL)",
        "recoveries": 1,
    }


def test_a_run_that_keeps_losing_its_workers_fails_with_the_reason():
    chosen = choose(WorkerLost(), KILLED, RecoveryBudget(used=5, allowed=5))
    assert chosen.to_status == "failed"
    assert "6 times" in json.loads(chosen.error_json)["message"]


def test_a_request_to_cancel_comes_before_a_spent_recovery_budget():
    chosen = choose(WorkerLost(), KILLED, RecoveryBudget(used=5, allowed=5))
    assert chosen.guard.cancel_requested == "absent"
    assert second_choice(ending(WorkerLost(), KILLED), NOW_MS).to_status == "cancelled"


def test_a_handler_that_cancels_itself_again_and_again_does_not_spin():
    unasked = Ending("run", 1, Interrupted("cancelled"), is_unasked=True)
    chosen = second_choice(unasked, NOW_MS)
    assert (chosen.to_status, chosen.available_at_ms) == ("suspended", NOW_MS + RETRY_LATER_MS)


class TestRetries:
    def test_a_failure_is_tried_again_later_while_attempts_are_left(self):
        chosen = choose(Failed('{"type":"X"}'), retries=RetryBudget(1, 3, 250))
        assert (chosen.to_status, chosen.available_at_ms) == ("suspended", NOW_MS + 250)
        assert (chosen.error_json, chosen.counts_failure) == ('{"type":"X"}', True)
        assert not chosen.counts_recovery
        assert chosen.note.event_type == "runstore.run.retried"
        assert chosen.note.payload == {"failures": 2, "max_attempts": 3, "delay_ms": 250}

    @pytest.mark.parametrize(
        ("outcome", "retries", "because"),
        [
            (Failed("{}"), RetryBudget(2, 3, 250), "max_attempts"),
            (Failed("{}"), RetryBudget(9, 3, 250), "max_attempts"),
            (Failed("{}", is_final=True), RetryBudget(0, 3, 250), "not_retryable"),
            (Failed("{}"), RetryBudget(0, 3, 250, NOW_MS + 250), "deadline"),
        ],
    )
    def test_the_last_failure_says_why_it_is_the_last(self, outcome, retries, because):
        chosen = choose(outcome, retries=retries)
        assert (chosen.to_status, chosen.counts_failure) == ("failed", True)
        assert chosen.note.event_type == "runstore.run.given_up"
        assert chosen.note.payload == {
            "failures": retries.failures + 1,
            "max_attempts": 3,
            "because": because,
        }

    def test_a_deadline_further_away_than_the_delay_is_no_objection(self):
        chosen = choose(Failed("{}"), retries=RetryBudget(0, 3, 250, NOW_MS + 251))
        assert chosen.to_status == "suspended"

    def test_a_run_to_be_cancelled_is_not_tried_again_and_keeps_its_error(self):
        first = choose(Failed('{"type":"X"}'), retries=RetryBudget(0, 3, 250))
        assert first.guard.cancel_requested == "absent"
        second = second_choice(ending(Failed('{"type":"X"}')), NOW_MS)
        assert (second.to_status, second.error_json) == ("cancelled", '{"type":"X"}')
        assert second.counts_failure


class TestUnreadableStates:
    UNREADABLE = Failed('{"type":"KeyError"}', is_unreadable=True)

    def test_a_run_whose_state_cannot_be_upgraded_is_parked_and_has_not_failed(self):
        chosen = choose(self.UNREADABLE, retries=RetryBudget(0, 3, 250))
        assert (chosen.to_status, chosen.available_at_ms) == ("suspended", None)
        assert chosen.waiting == Waiting("upgrade")
        assert chosen.error_json == '{"type":"KeyError"}'
        assert not chosen.counts_failure
        assert chosen.note.event_type == "runstore.run.parked"

    def test_a_request_to_cancel_comes_before_the_parking(self):
        assert choose(self.UNREADABLE).guard.cancel_requested == "absent"
        second = second_choice(ending(self.UNREADABLE), NOW_MS)
        assert (second.to_status, second.counts_failure) == ("cancelled", False)


class TestDeadlines:
    def test_a_run_past_its_deadline_fails_unless_it_was_to_be_cancelled(self):
        chosen = choose(Interrupted("deadline_passed"))
        assert (chosen.to_status, chosen.guard.cancel_requested) == ("failed", "absent")
        assert json.loads(chosen.error_json)["type"] == "DeadlinePassed"
        assert not chosen.counts_failure
        assert (
            second_choice(ending(Interrupted("deadline_passed")), NOW_MS).to_status == "cancelled"
        )

    def test_a_handler_that_says_so_by_itself_is_put_back(self):
        unasked = Ending("run", 1, Interrupted("deadline_passed"), is_unasked=True)
        assert first_choice(unasked, PLENTY, NO_RETRIES, NOW_MS).to_status == "suspended"


def test_an_unstorable_outcome_fails_its_run_with_a_reason_that_can_be_stored():
    chosen = last_choice(ending(Completed("nonsense")), "result_json is no JSON")
    assert chosen.to_status == "failed"
    assert "result_json is no JSON" in json.loads(chosen.error_json)["message"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exit status 0"),
        (78, "exit status 78"),
        (-9, "killed by signal 9 (SIGKILL)"),
        (-250, "killed by signal 250"),
    ],
)
def test_an_exit_is_told_in_words(code, words):
    assert str(WorkerExit(code)) == words


@pytest.mark.parametrize(
    "outcome",
    [
        Completed("1"),
        Failed("{}"),
        Failed("{}", is_final=True),
        Failed("{}", is_unreadable=True),
        Interrupted("x"),
    ],
    ids=repr,
)
def test_an_outcome_is_the_same_after_it_was_reported(outcome):
    assert outcome_of(report_of("run", 7, outcome)) == outcome
