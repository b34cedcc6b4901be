import pytest
from django.db import OperationalError

from django_runstore.handlers.execution import Interrupted
from django_runstore.models import Run
from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.supervision.crew import Place
from django_runstore.supervision.rounds import REST_MS, Rounds
from django_runstore.supervision.settlement import Settler
from django_runstore.supervision.sweep_report import SweepAnswer, SweepReport, SweptRun

pytestmark = pytest.mark.django_db

OWNER = OwnerId("host", 1, "u-0123456789abcdef")
PLACES = [Place(0), Place(1)]


class FakeExecution:
    is_given_up = False

    def __init__(self, run_id, fence):
        self.run_id, self.fence = run_id, fence


class FakeExecutions:
    def __init__(self):
        self.begun = []
        self.stopped = []

    def __len__(self):
        return len(self.begun)

    def __contains__(self, key):
        return key in [(execution.run_id, execution.fence) for execution in self.begun]

    def under_way(self):
        return self.begun

    def begin(self, claimed, place, confirmed_at_ms):
        self.begun.append(FakeExecution(claimed.run.run_id, claimed.fence))

    def stop(self, execution, reason, *, grace_ms, kill_after_ms):
        execution.is_given_up = True
        self.stopped.append((execution.run_id, reason, grace_ms))


class FakeKeeper:
    is_confirmed = True

    def all_confirmed(self):
        return self.is_confirmed


class BrokenStore(RunStore):
    """Commits what it is asked to, and loses the answer."""

    def claim_many(self, *arguments, **options):
        super().claim_many(*arguments, **options)
        raise OperationalError("server closed the connection unexpectedly")


@pytest.fixture(autouse=True)
def quick(settings):
    settings.RUNSTORE = {"POLL_INTERVAL_MS": 1, "STOP_GRACE_MS": 7}


@pytest.fixture
def make_rounds():
    def make(store=None, sweep=SweepReport):
        store = store or RunStore()
        rounds = Rounds(
            store,
            OWNER,
            None,
            executions=FakeExecutions(),
            keeper=FakeKeeper(),
            settler=Settler(store, OWNER),
            sweep=sweep,
        )
        rounds._sweep_timer.expire()
        return rounds

    return make


@pytest.fixture
def submit(monkeypatch):
    from django_runstore.handlers import registry  # noqa: PLC0415

    monkeypatch.setattr(type(registry), "state_versions", lambda _: {"h": 1})

    def create(run_id):
        RunStore().create(run_id, "{}", handler="h")

    return create


def test_one_run_is_claimed_for_each_idle_worker(make_rounds, submit):
    for number in range(3):
        submit(f"run-{number}")
    rounds = make_rounds()
    rounds.claim(PLACES)
    assert len(rounds._executions.begun) == 2
    assert Run.objects.filter(fence=0).count() == 1


def test_nothing_is_claimed_while_an_ownership_awaits_its_confirmation(make_rounds, submit):
    submit("run")
    rounds = make_rounds()
    rounds._keeper.is_confirmed = False
    rounds.claim(PLACES)
    assert RunStore().get("run").fence == 0
    assert not rounds.has_looked


def test_nothing_is_claimed_without_an_idle_worker(make_rounds, submit):
    submit("run")
    make_rounds().claim([])
    assert RunStore().get("run").fence == 0


def test_an_empty_queue_is_asked_again_after_the_poll_interval_only(make_rounds, settings):
    settings.RUNSTORE = {"POLL_INTERVAL_MS": 60_000}
    rounds = make_rounds()
    rounds.claim(PLACES)
    assert rounds.found_nothing
    assert rounds.next_claim_in_ms() > 40_000
    rounds.claim_soon()
    assert rounds.next_claim_in_ms() <= REST_MS


def test_a_claim_whose_answer_was_lost_is_found_and_put_back(make_rounds, submit):
    submit("run")
    rounds = make_rounds(BrokenStore())
    rounds.claim(PLACES)
    assert RunStore().get("run").owner == OWNER
    rounds._patience.succeeded()
    rounds.look_for_the_dead()
    rounds._settler.attempt()
    assert RunStore().get("run").status == "suspended"


def test_what_is_executed_is_no_stray(make_rounds, submit):
    submit("run")
    rounds = make_rounds()
    rounds.claim(PLACES)
    rounds.look_for_the_dead()
    assert len(rounds._settler) == 0


def test_runs_of_other_owners_are_no_strays(make_rounds, submit):
    submit("run")
    RunStore().claim_many(OwnerId("host", 1, "u-fedcba9876543210"), 1)
    rounds = make_rounds()
    rounds.look_for_the_dead()
    assert len(rounds._settler) == 0


def test_the_database_is_left_alone_for_a_while_after_it_failed(make_rounds, submit):
    rounds = make_rounds(BrokenStore())
    rounds.claim(PLACES)
    assert rounds.next_claim_in_ms() > 0
    assert rounds.next_look_in_ms() > 0


def test_a_request_is_noticed_acknowledged_and_passed_on_once(make_rounds, submit):
    submit("run")
    rounds = make_rounds()
    rounds.claim(PLACES)
    rounds.look_for_requests()
    assert rounds._executions.stopped == []
    RunStore().request_cancel("run")
    for _ in range(2):
        rounds._cancel_poll.hasten(0)
        rounds.look_for_requests()
    assert rounds._executions.stopped == [("run", "cancelled", 7)]
    assert RunStore().get("run").cancel_acknowledgement.owner == OWNER


def test_an_acknowledgement_that_failed_is_made_up_for(make_rounds, submit, monkeypatch):
    submit("run")
    rounds = make_rounds()
    rounds.claim(PLACES)
    RunStore().request_cancel("run")

    def fail(*_, **__):
        raise OperationalError

    with monkeypatch.context() as broken:
        broken.setattr(RunStore, "acknowledge_cancel", fail)
        rounds.look_for_requests()
    # The handler is told all the same.
    assert rounds._executions.stopped == [("run", "cancelled", 7)]
    assert RunStore().get("run").cancel_acknowledgement is None

    rounds._patience.succeeded()
    rounds._cancel_poll.hasten(0)
    rounds.look_for_requests()
    assert rounds._executions.stopped == [("run", "cancelled", 7)]
    assert RunStore().get("run").cancel_acknowledgement.owner == OWNER


def test_a_sweep_that_breaks_keeps_nothing_else_from_going_on(make_rounds, submit, caplog):
    def sweep():
        message = "secret"
        raise ZeroDivisionError(message)

    submit("run")
    rounds = make_rounds(sweep=sweep)
    rounds.look_for_the_dead()
    rounds.claim(PLACES)
    assert len(rounds._executions.begun) == 1
    assert "sweeping broke: ZeroDivisionError" in caplog.text
    assert "secret" not in caplog.text


def test_nothing_is_swept_while_an_ownership_awaits_its_confirmation(make_rounds):
    swept = []
    rounds = make_rounds(sweep=lambda: swept.append(1) or SweepReport())
    rounds._keeper.is_confirmed = False
    rounds.look_for_the_dead()
    assert swept == []


def test_what_a_sweep_put_back_is_claimed_without_waiting_for_the_next_poll(make_rounds, settings):
    settings.RUNSTORE = {"POLL_INTERVAL_MS": 60_000}
    swept = SweptRun("run", "ownership", SweepAnswer.PUT_BACK, "host pid 1", 30_001, "dead")
    rounds = make_rounds(sweep=lambda: SweepReport((swept,)))
    rounds.claim(PLACES)
    rounds.look_for_the_dead()
    assert rounds.next_claim_in_ms() <= REST_MS


def test_a_stray_is_put_back_with_a_reason(make_rounds, submit):
    submit("run")
    RunStore().claim_many(OWNER, 1)
    rounds = make_rounds()
    rounds.look_for_the_dead()
    (pending,) = rounds._settler._pending.values()
    assert pending.ending.outcome == Interrupted("unanswered")
