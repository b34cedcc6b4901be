"""The runner: what a supervisor and its worker would have done, in the process of the test."""

from dataclasses import FrozenInstanceError

import pytest
from django.db import transaction

from django_runstore import RunStore
from django_runstore.handlers import RunFailed, RunInterrupted
from django_runstore.models import JournalEntry, Run
from django_runstore.outcomes import Activated
from django_runstore.owners import OwnerId
from django_runstore.testing import (
    BlockIsOpenError,
    Execution,
    FakeClock,
    NeverIdleError,
    NotClaimableError,
    Runner,
    RunnerReport,
    UnknownHandlerError,
    use_clock,
)

START = 1_000_000_000


@pytest.fixture(autouse=True)
def clock(either_case):
    with use_clock(FakeClock(START)) as clock:
        yield clock


@pytest.fixture
def echo(declare):
    return declare("shop.echo", lambda run: run.state)


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


# --- cancelling ---------------------------------------------------------------------------


def test_a_run_that_was_cancelled_beforehand_is_never_entered(declare):
    entered = []
    handle = declare("shop.listed", entered.append).submit(run_id="run")
    handle.cancel()

    (execution,) = Runner().run_until_idle().executions

    assert (execution.ended, execution.reason) == ("interrupted", "cancelled")
    assert (execution.status, entered) == ("cancelled", [])


def test_a_request_reaches_the_handler_at_its_next_look(declare):
    def work(run):
        RunStore().request_cancel(run.run_id)
        run.check()
        raise AssertionError("went on")

    handle = declare("shop.work", work).submit(run_id="run")

    (execution,) = Runner().run_until_idle(raise_errors=True).executions

    assert (execution.reason, execution.status) == ("cancelled", "cancelled")
    assert handle.row.cancel_acknowledgement is not None


# --- trying again -------------------------------------------------------------------------


def test_a_failed_run_is_tried_again_after_its_backoff(declare, clock):
    def work(run):
        if run.fence < 3:
            raise ZeroDivisionError
        return run.fence

    retried = declare("shop.retried", work, max_attempts=3, backoff=[1_000, 60_000])
    handle = retried.submit(run_id="run")

    report = Runner().run_until_idle(advance_clock=True)

    assert [(e.ended, e.status) for e in report.executions] == [
        ("failed", "suspended"),
        ("failed", "suspended"),
        ("completed", "completed"),
    ]
    assert (report.advanced_ms, handle.result()) == (61_000, 3)


def test_a_run_past_its_deadline_is_never_entered(declare, clock):
    entered = []
    listed = declare("shop.listed", entered.append, deadline_after_ms=1_000)
    handle = listed.submit(run_id="run")
    clock.advance(1_000)

    (execution,) = Runner().run_until_idle().executions

    assert (execution.reason, execution.status) == ("deadline_passed", "failed")
    assert (handle.error["type"], entered) == ("DeadlinePassed", [])


def test_a_deadline_that_passes_while_the_handler_works_stops_it(declare, clock):
    def work(run):
        clock.advance(1_000)
        run.check()
        raise AssertionError("went on")

    handle = declare("shop.work", work, deadline_after_ms=1_000).submit(run_id="run")

    Runner().run_until_idle(raise_errors=True)

    assert handle.error["type"] == "DeadlinePassed"


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


# --- transactions -------------------------------------------------------------------------


def test_what_is_not_committed_yet_is_not_executed(echo):
    with transaction.atomic():
        handle = echo.submit(run_id="run")
        with pytest.raises(BlockIsOpenError, match="leave the atomic block"):
            Runner().run_until_idle()
        with pytest.raises(BlockIsOpenError):
            Runner().run_once("run")
    Runner().run_until_idle()

    assert handle.status == "completed"


def test_a_block_that_rolls_back_takes_its_run_along(echo):
    def submit_and_fail():
        with transaction.atomic():
            echo.submit(run_id="run")
            raise KeyError

    with pytest.raises(KeyError):
        submit_and_fail()

    assert Runner().run_until_idle() == RunnerReport()


def test_what_is_submitted_on_commit_is_executed_once_it_was_captured(
    echo, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        transaction.on_commit(lambda: echo.submit(run_id="run"))

    report = Runner().run_until_idle()

    assert [execution.run_id for execution in report.executions] == ["run"]


def test_callbacks_of_a_handler_run_once_although_they_are_captured_too(
    declare, django_capture_on_commit_callbacks
):
    called = []

    def work(run):
        transaction.on_commit(lambda: called.append(run.run_id))

    declare("shop.work", work).submit(run_id="run")
    with django_capture_on_commit_callbacks(execute=True):
        Runner().run_until_idle()

    assert called == ["run"]


def test_what_a_handler_submits_on_commit_is_executed(declare, echo):
    def work(run):
        with transaction.atomic():
            transaction.on_commit(lambda: echo.submit(run_id="child"))

    declare("shop.work", work).submit(run_id="run")

    report = Runner().run_until_idle()

    assert [execution.run_id for execution in report.executions] == ["run", "child"]


def test_steps_and_saves_work(declare):
    def work(run):
        extracted = run.step("extract", lambda month: {"rows": 4, "month": month}, run.state)
        run.save("saved")
        run.progress(0.5, "half")
        run.log("shop.logged", {"rows": 4})
        return extracted

    handle = declare("shop.work", work).submit("2026-10", run_id="run")
    Runner().run_until_idle(raise_errors=True)

    assert handle.result() == {"rows": 4, "month": "2026-10"}
    assert (handle.state, handle.progress) == ("saved", {"fraction": 0.5, "message": "half"})
