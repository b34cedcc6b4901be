import logging
from dataclasses import replace

import pytest

from django_runstore.errors import (
    DatabaseFailure,
    InvalidRun,
    RunNotFound,
    RunPersistenceFailed,
)
from django_runstore.handlers.execution import Completed, Failed, Interrupted
from django_runstore.outcomes import FenceLost, GuardFailed, NotFound, Transitioned
from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.supervision.endings import Ending, WorkerExit, WorkerLost
from django_runstore.supervision.pauses import Backoff
from django_runstore.supervision.settlement import Settler
from django_runstore.testing import FakeClock

# A broken connection is looked at even where the store is not a real one.
pytestmark = pytest.mark.django_db

OWNER = OwnerId("host", 1, "nonce")


class Row:
    recovery_count = 2
    failure_count = 0
    handler = "nobody.knows"
    deadline_at_ms = None


class FakeStore:
    """Answers each run with what the test gave, the last one again and again."""

    using = "default"

    def __init__(self, **answers):
        self.answers = {run_id: list(given) for run_id, given in answers.items()}
        self.clock = FakeClock(1_000)
        self.batches = []

    def get(self, run_id):
        if run_id == "gone":
            raise RunNotFound("get", "run gone was not found", {"run_id": run_id})
        return Row()

    def transition_many(self, owner, transitions):
        assert owner == OWNER
        self.batches.append(list(transitions))
        given = {}
        for transition in transitions:
            answers = self.answers[transition.run_id]
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            if isinstance(answer, Exception):
                raise answer
            given[transition.run_id] = answer
        return given

    @property
    def statuses(self):
        return [[str(transition.to_status) for transition in batch] for batch in self.batches]


def failure(code="io"):
    error = RunPersistenceFailed("transition_many", "database operation failed", {"cause": code})
    error.__cause__ = DatabaseFailure(code)
    return error


def refusal():
    return InvalidRun("transition_many", {"field": "result_json", "detail": "is no JSON"})


@pytest.fixture
def hands():
    return FakeClock(0)


@pytest.fixture
def settler_over(hands):
    def make(store, *endings):
        settler = Settler(store, OWNER, Backoff(100, 100, read_ms=hands.now_ms))
        for ending in endings:
            settler.add(ending)
        return settler

    return make


def completed(run_id, fence=1):
    return Ending(run_id, fence, Completed("1"))


def test_everything_that_is_due_is_settled_in_one_batch(settler_over):
    store = FakeStore(a=[Transitioned()], b=[Transitioned()])
    settler = settler_over(store, completed("a"), Ending("b", 1, Failed("{}")))
    settlements = settler.attempt()
    assert {(done.ending.run_id, done.status) for done in settlements} == {
        ("a", "completed"),
        ("b", "failed"),
    }
    assert store.statuses == [["completed", "failed"]]
    assert len(settler) == 0


def test_what_the_guard_refuses_is_tried_the_other_way_at_once(settler_over):
    store = FakeStore(a=[GuardFailed(), Transitioned()], b=[Transitioned()])
    settlements = settler_over(store, completed("a"), completed("b")).attempt()
    assert store.statuses == [["completed", "completed"], ["cancelled"]]
    assert {done.ending.run_id: done.status for done in settlements} == {
        "a": "cancelled",
        "b": "completed",
    }


@pytest.mark.parametrize("answer", [FenceLost(), NotFound()], ids=["lost", "missing"])
def test_a_run_of_somebody_else_is_not_tried_again(settler_over, answer):
    settler = settler_over(FakeStore(a=[answer]), completed("a"))
    (done,) = settler.attempt()
    assert (done.status, done.maybe_ours, len(settler)) == (None, False, 0)


def test_an_outcome_survives_failures_of_the_database(settler_over, hands):
    store = FakeStore(a=[failure(), failure("busy"), Transitioned()])
    settler = settler_over(store, completed("a"))
    for _ in range(2):
        assert settler.attempt() == []
        hands.advance(100)
    (done,) = settler.attempt()
    assert done.status == "completed"


def test_the_database_is_left_alone_for_a_while_after_it_failed(settler_over):
    store = FakeStore(a=[failure()])
    settler = settler_over(store, completed("a"))
    settler.attempt()
    settler.attempt()
    assert len(store.batches) == 1


def test_a_lost_fence_after_a_failure_may_be_ones_own_doing(settler_over, hands):
    settler = settler_over(FakeStore(a=[failure(), FenceLost()]), completed("a"))
    settler.attempt()
    hands.advance(100)
    (done,) = settler.attempt()
    assert done.maybe_ours


def test_a_failure_is_logged_once_per_outage_and_without_the_drivers_words(
    settler_over, hands, caplog
):
    settler = settler_over(FakeStore(a=[failure()]), completed("a"))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            settler.attempt()
            hands.advance(100)
    assert [record.getMessage() for record in caplog.records] == [
        "the database failed (io); 1 outcome kept and tried again"
    ]


def test_an_unstorable_outcome_fails_its_run_and_holds_up_nobody(settler_over):
    # First in company, then alone, then as a failure.
    store = FakeStore(bad=[refusal(), refusal(), Transitioned()], good=[Transitioned()])
    settlements = settler_over(store, completed("bad"), completed("good")).attempt()
    assert {done.ending.run_id: done.status for done in settlements} == {
        "bad": "failed",
        "good": "completed",
    }
    (last,) = next(batch for batch in store.batches if batch[0].to_status == "failed")
    assert "invalid_run" in last.error_json


def test_an_outcome_that_cannot_even_be_failed_is_given_up(settler_over):
    settler = settler_over(FakeStore(bad=[refusal()]), completed("bad"))
    (done,) = settler.attempt()
    assert (done.status, len(settler)) == (None, 0)


def test_what_awaits_a_confirmation_is_held_back(settler_over):
    store = FakeStore(a=[Transitioned()], b=[Transitioned()])
    settler = settler_over(store, completed("a"), completed("b"))
    (done,) = settler.attempt(may_settle=lambda ending: ending.run_id == "b")
    assert done.ending.run_id == "b"
    assert settler.runs() == [("a", 1)]


def test_a_lost_workers_recoveries_are_read_when_it_is_settled(settler_over, settings):
    settings.RUNSTORE = {"MAX_RECOVERIES": 2}
    store = FakeStore(a=[Transitioned()])
    (done,) = settler_over(store, Ending("a", 1, WorkerLost(), WorkerExit(-9))).attempt()
    assert done.status == "failed"


def test_a_lost_worker_of_a_run_that_is_gone_settles_nothing(settler_over):
    settler = settler_over(FakeStore(), Ending("gone", 1, WorkerLost()))
    (done,) = settler.attempt()
    assert (done.status, len(settler)) == (None, 0)


def test_an_ending_can_be_taken_back(settler_over):
    ending = completed("a")
    settler = settler_over(FakeStore(), ending)
    assert settler.discard("a", 2) is None
    assert settler.discard("a", 1) == ending
    assert settler.attempt() == []


class TestOverTheStore:
    @pytest.fixture
    def claim(self):
        store = RunStore()
        store.create("run", "{}", handler="h")

        def own():
            (claimed,) = store.claim_many(OWNER, 1)
            return store, claimed.fence

        return own

    def settle(self, store, ending):
        settler = Settler(store, OWNER)
        settler.add(ending)
        (done,) = settler.attempt()
        return done.status

    def test_a_request_that_came_in_time_wins_over_the_result(self, claim):
        store, fence = claim()
        store.request_cancel("run")
        assert self.settle(store, Ending("run", fence, Completed("1"))) == "cancelled"
        assert store.get("run").result_json is None

    def test_a_request_reaches_a_run_that_is_put_back(self, claim):
        store, fence = claim()
        store.request_cancel("run")
        assert self.settle(store, Ending("run", fence, Interrupted("draining"))) == "cancelled"

    def test_an_old_execution_does_not_settle_for_its_successor(self, claim):
        store, fence = claim()
        assert self.settle(store, Ending("run", fence, Interrupted("draining"))) == "suspended"
        (again,) = store.claim_many(OWNER, 1)
        assert self.settle(store, Ending("run", fence, Completed("1"))) is None
        assert store.get("run").owner_fence == again.fence

    def test_a_run_put_back_is_claimable_at_once_and_counts_nothing(self, claim):
        store, fence = claim()
        before = store.get("run")
        self.settle(store, Ending("run", fence, Interrupted("draining")))
        after = store.get("run")
        assert (after.failure_count, after.recovery_count) == (
            before.failure_count,
            before.recovery_count,
        )
        assert len(store.claim_many(OWNER, 1)) == 1

    def test_an_unstorable_result_is_a_failure_one_can_read(self, claim):
        store, fence = claim()
        ending = Ending("run", fence, Completed("1"))
        assert self.settle(store, replace(ending, outcome=Completed("nonsense"))) == "failed"
        assert "UnstorableOutcome" in store.get("run").error_json
