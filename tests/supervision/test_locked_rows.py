"""A row that somebody has locked keeps a supervisor neither from other runs nor from signals."""

import pytest

from django_runstore.handlers import registry
from django_runstore.handlers.execution import Completed, Interrupted
from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.supervision.endings import Ending
from django_runstore.supervision.rounds import Rounds
from django_runstore.supervision.settlement import Settler
from django_runstore.supervision.sweep_report import SweepReport
from tests.conformance.race import elsewhere_locked
from tests.supervision.test_rounds import PLACES, FakeExecutions, FakeKeeper

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.postgres("locks rows"),
    # Far below what an unbounded wait for the lock would take: the test is what holds it.
    pytest.mark.timeout(60),
]

OWNER = OwnerId("host", 1, "u-0123456789abcdef")


@pytest.fixture(autouse=True)
def impatient(settings):
    settings.RUNSTORE = {
        "LEASE": {
            "HEARTBEAT_INTERVAL_MS": 100,
            "STALE_AFTER_MS": 60_000,
            "SKEW_ALLOWANCE_MS": 1_000,
        },
        "POLL_INTERVAL_MS": 1,
    }


def test_a_locked_run_is_settled_later_and_the_others_at_once():
    store = RunStore()
    settler = Settler(store, OWNER)
    for run_id in ("free", "held", "other"):
        store.create(run_id, "{}", handler="h")
    for claimed in store.claim_many(OWNER, 3):
        settler.add(Ending(claimed.run.run_id, claimed.fence, Completed("1")))
    with elsewhere_locked("held"):
        done = settler.attempt()
        assert {each.ending.run_id: each.status for each in done} == {
            "free": "completed",
            "other": "completed",
        }
        assert len(settler) == 1
    settler.backoff.succeeded()
    assert [each.ending.run_id for each in settler.attempt()] == ["held"]


def test_a_single_locked_run_is_given_up_for_now():
    store = RunStore()
    settler = Settler(store, OWNER)
    store.create("held", "{}", handler="h")
    (claimed,) = store.claim_many(OWNER, 1)
    settler.add(Ending("held", claimed.fence, Interrupted("draining")))
    with elsewhere_locked("held"):
        assert settler.attempt() == []
    assert settler.backoff.failures == 1


def test_a_request_to_stop_a_locked_run_is_passed_on_and_acknowledged_later(monkeypatch):
    monkeypatch.setattr(type(registry), "names", lambda _: frozenset({"h"}))
    store = RunStore()
    rounds = Rounds(
        store,
        OWNER,
        None,
        executions=FakeExecutions(),
        keeper=FakeKeeper(),
        settler=Settler(store, OWNER),
        sweep=SweepReport,
    )
    store.create("held", "{}", handler="h")
    (claimed,) = store.claim_many(OWNER, 1)
    rounds._executions.begin(claimed, PLACES[0], 0)
    store.request_cancel("held")
    with elsewhere_locked("held"):
        rounds.look_for_requests()
        assert [run_id for run_id, *_ in rounds._executions.stopped] == ["held"]
        assert store.get("held").cancel_acknowledgement is None
    rounds._cancel_poll.hasten(0)
    rounds._patience.succeeded()
    rounds.look_for_requests()
    assert store.get("held").cancel_acknowledgement is not None
    assert not rounds._acknowledgements
