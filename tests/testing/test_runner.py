"""The runner: what a supervisor and its worker would have done, in the process of the test."""

from dataclasses import FrozenInstanceError

import pytest

from django_runstore import RunStore
from django_runstore.handlers import RunFailed, RunInterrupted
from django_runstore.models import JournalEntry, Run
from django_runstore.outcomes import Activated
from django_runstore.owners import OwnerId
from django_runstore.testing import (
    Execution,
    NeverIdleError,
    NotClaimableError,
    Runner,
    RunnerReport,
    UnknownHandlerError,
    clock_skew,
    use_clock,
)
from tests.testing.start import START

pytestmark = pytest.mark.usefixtures("clock")


@pytest.fixture
def broken(declare):
    def fail(run):
        raise ZeroDivisionError("nothing to share among")

    return declare("shop.broken", fail)


def ownership_facts(run_id):
    entries = JournalEntry.objects.filter(run_id=run_id, companion="run-store").order_by("seq")
    return [entry.event_type.rpartition(".")[2] for entry in entries]


# --- until idle ---------------------------------------------------------------------------


def test_nothing_to_do_is_an_empty_report():
    assert Runner().run_until_idle() == RunnerReport()


def test_a_run_is_executed_and_settled_as_a_supervisor_would(echo):
    handle = echo.submit({"month": "2026-10"}, run_id="run")

    report = Runner().run_until_idle()

    assert report.executions == (Execution("run", "shop.echo", 1, "completed", "completed"),)
    assert handle.result() == {"month": "2026-10"}
    assert ownership_facts("run") == ["claimed", "activated", "released"]


def test_what_happened_cannot_be_changed_afterwards(echo):
    echo.submit(run_id="run")
    report = Runner().run_until_idle()

    with pytest.raises(FrozenInstanceError):
        report.executions[0].status = "failed"
    with pytest.raises(FrozenInstanceError):
        report.executions = ()


def test_higher_priorities_come_first_and_others_in_their_order(echo, clock):
    for run_id, priority in (("a", 0), ("b", 0), ("c", 5)):
        echo.submit(run_id=run_id, priority=priority)
        clock.advance(1)

    report = Runner().run_until_idle()

    assert [execution.run_id for execution in report.executions] == ["c", "a", "b"]


def test_runs_that_handlers_submit_are_executed_too(declare, echo):
    declare("shop.parent", lambda _: echo.submit(run_id="child").run_id).submit(run_id="parent")

    report = Runner().run_until_idle()

    assert [execution.run_id for execution in report.executions] == ["parent", "child"]
    assert report.of("child")[0].status == "completed"


def test_only_the_queues_that_are_asked_for_are_served(echo):
    echo.submit(run_id="here", queue="reports")
    echo.submit(run_id="there", queue="mails")

    report = Runner(queues=["reports"]).run_until_idle()

    assert [execution.run_id for execution in report.executions] == ["here"]


def test_a_failure_is_stored_and_reported_with_the_very_exception(broken):
    handle = broken.submit(run_id="run")

    (execution,) = Runner().run_until_idle().executions

    assert (execution.ended, execution.status) == ("failed", "failed")
    assert isinstance(execution.error, ZeroDivisionError)
    assert handle.error["type"] == "ZeroDivisionError"


def test_on_request_the_exception_is_raised_once_the_run_is_settled(broken, echo):
    handle = broken.submit(run_id="run", priority=1)
    untouched = echo.submit(run_id="next")

    with pytest.raises(ZeroDivisionError, match="nothing to share among"):
        Runner().run_until_idle(raise_errors=True)

    assert (handle.status, untouched.status) == ("failed", "pending")


def test_a_result_that_cannot_be_stored_is_raised_as_a_failed_run(declare):
    declare("shop.object", lambda _: object()).submit(run_id="run")

    with pytest.raises(RunFailed, match="cannot be stored"):
        Runner().run_until_idle(raise_errors=True)


def test_no_report_shows_what_a_handler_raised(broken):
    broken.submit(run_id="run")

    assert "share" not in repr(Runner().run_until_idle())


def test_a_handler_that_leaves_unasked_is_left_alone_for_a_while(declare, clock):
    def leave(run):
        if run.fence == 1:
            raise RunInterrupted("tired")
        return run.fence

    handle = declare("shop.leave", leave).submit(run_id="run")

    first = Runner().run_until_idle()
    assert (first.executions[0].reason, first.executions[0].status) == ("tired", "suspended")
    assert Runner().run_until_idle() == RunnerReport()
    second = Runner().run_until_idle(advance_clock=True)

    assert second.advanced_ms == 5_000
    assert handle.result() == 2


# --- time ---------------------------------------------------------------------------------


def test_a_delayed_run_waits_for_its_time(echo, clock):
    handle = echo.submit(run_id="run", available_at_ms=START + 60_000)

    assert Runner().run_until_idle() == RunnerReport()
    clock.advance(60_000)
    Runner().run_until_idle()

    assert handle.status == "completed"


def test_on_request_the_clock_is_turned_on_to_what_is_due_next(declare, clock):
    seen = []
    note = declare("shop.note", lambda run: seen.append((run.run_id, clock.now_ms() - START)))
    note.submit(run_id="late", available_at_ms=START + 3_600_000)
    note.submit(run_id="soon", available_at_ms=START + 60_000)

    report = Runner().run_until_idle(advance_clock=True)

    assert seen == [("soon", 60_000), ("late", 3_600_000)]
    assert (report.advanced_ms, clock.now_ms()) == (3_600_000, START + 3_600_000)


def test_a_skewed_clock_is_turned_by_the_one_behind_it(declare, clock):
    handle = declare("shop.echo", lambda run: run.state).submit(available_at_ms=START + 60_000)
    with clock_skew(10):
        report = Runner().run_until_idle(advance_clock=True)

    assert (report.advanced_ms, clock.now_ms()) == (50_000, START + 50_000)
    assert handle.status == "completed"


def test_a_clock_that_cannot_be_turned_is_refused():
    class OwnClock:
        def now_ms(self):
            return START

    with use_clock(OwnClock()), pytest.raises(TypeError, match="use_clock"):
        Runner().run_until_idle(advance_clock=True)


def test_what_goes_round_for_ever_is_stopped(declare):
    again = declare("shop.again", lambda _: again.submit() and None)
    again.submit()

    with pytest.raises(NeverIdleError, match="more to do after 5 executions"):
        Runner(most_executions=5).run_until_idle()

    statuses = sorted(Run.objects.values_list("status", flat=True))
    assert statuses == ["completed"] * 5 + ["pending"]


# --- what is unknown here -----------------------------------------------------------------


def test_a_handler_that_nobody_declared_is_named_before_anything_is_claimed(echo):
    RunStore().create("run", "{}", handler="shop.misspelt")
    known = echo.submit(run_id="known", priority=9)

    with pytest.raises(UnknownHandlerError, match=r"run run .*'shop\.misspelt'"):
        Runner().run_until_idle()

    assert (RunStore().get("run").status, known.status) == ("pending", "pending")


def test_runs_without_a_handler_belong_to_somebody_else(echo):
    RunStore().create("hosted", "{}")

    assert Runner().run_until_idle() == RunnerReport()


def test_what_is_unknown_in_another_queue_is_none_of_its_business(echo):
    RunStore().create("run", "{}", handler="shop.misspelt", queue="elsewhere")

    assert Runner(queues=["default"]).run_until_idle() == RunnerReport()


# --- one run ------------------------------------------------------------------------------


def test_one_run_is_executed_whatever_else_is_due_and_whatever_it_waits_for(echo):
    other = echo.submit(run_id="other", priority=9)
    handle = echo.submit("answer", run_id="run", available_at_ms=START + 1_000_000)

    assert Runner().run_once("run") == Execution("run", "shop.echo", 1, "completed", "completed")

    assert (handle.result(), other.status) == ("answer", "pending")


def test_one_run_raises_on_request(broken):
    broken.submit(run_id="run")

    with pytest.raises(ZeroDivisionError):
        Runner().run_once("run", raise_errors=True)


def test_a_settled_run_is_not_executed_again(echo):
    echo.submit(run_id="run")
    Runner().run_once("run")

    with pytest.raises(NotClaimableError, match="run run is completed"):
        Runner().run_once("run")


def test_a_run_that_somebody_works_on_is_not_taken(echo):
    echo.submit(run_id="run")
    store = RunStore()
    assert store.claim_and_own("run", store.get("run"), OwnerId("h", 1, "n")) == Activated(1)

    with pytest.raises(NotClaimableError, match="run run is running: heartbeat_fresh"):
        Runner().run_once("run")


def test_one_run_of_an_unknown_handler_is_refused():
    RunStore().create("run", "{}", handler="shop.misspelt")

    with pytest.raises(UnknownHandlerError, match=r"shop\.misspelt"):
        Runner().run_once("run")
