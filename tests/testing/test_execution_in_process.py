"""One execution in the process of the test: told to stop, tried again, in transactions."""

import pytest
from django.db import transaction

from django_runstore import RunPersistenceFailed, RunStore
from django_runstore.errors import DatabaseFailure
from django_runstore.handlers import InvalidValue, RunHandle
from django_runstore.testing import (
    BlockIsOpenError,
    Runner,
    RunnerReport,
    UnknownHandlerError,
    crash_after,
)

pytestmark = pytest.mark.usefixtures("clock")


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


def test_a_failure_of_the_store_that_is_no_outage_is_raised(echo, monkeypatch):
    def fail(*_, **__):
        raise RunPersistenceFailed("claim_many", "no such table") from DatabaseFailure("unknown")

    echo.submit(run_id="run")
    monkeypatch.setattr(RunStore, "claim_many", fail)

    with pytest.raises(RunPersistenceFailed, match="no such table"):
        Runner().run_until_idle()


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


# --- states of other releases -------------------------------------------------------------


def test_an_older_state_is_upgraded_first(declare):
    def upgrade(state, version):
        return {"month": state, "was": version}

    later = declare("shop.later", lambda run: run.state, state_version=2, upgrade=upgrade)
    RunStore().create("run", '"2026-10"', handler="shop.later", state_version=1)

    (execution,) = Runner().run_until_idle(raise_errors=True).executions

    assert execution.status == "completed"
    assert RunHandle("run").result() == {"month": "2026-10", "was": 1}
    assert later.submit({}).row.state_version == 2


def test_an_upgrade_that_raises_parks_the_run_and_is_raised_on_request(declare):
    def upgrade(state, version):
        raise KeyError("month")

    declare("shop.later", lambda run: run.state, state_version=2, upgrade=upgrade)
    RunStore().create("run", "{}", handler="shop.later", state_version=1)

    with pytest.raises(KeyError, match="month"):
        Runner().run_until_idle(raise_errors=True)

    assert RunStore().waiting("run").reason == "upgrade"


def test_a_newer_state_is_left_for_a_newer_release(echo):
    RunStore().create("run", "{}", handler="shop.echo", state_version=7)

    assert Runner().run_until_idle() == RunnerReport()
    with pytest.raises(UnknownHandlerError, match=r"version 7, .* reads none above 1"):
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


def test_a_step_that_is_no_plain_function_is_refused_as_elsewhere(declare):
    async def later():
        raise AssertionError("called")

    declare("shop.work", lambda run: run.step("later", later)).submit(run_id="run")

    with pytest.raises(InvalidValue, match="must be a plain function"):
        Runner().run_until_idle(raise_errors=True)


def test_a_run_whose_key_is_taken_waits_for_the_lease_of_the_dead(declare, clock):
    work = declare("shop.work", lambda run: run.step("only", lambda: 42), concurrency_key="one")
    first, second = work.submit(run_id="a"), work.submit(run_id="b")
    runner = Runner()
    with crash_after("only"):
        report = runner.run_until_idle()
    assert [(e.run_id, e.ended) for e in report.executions] == [("a", "died")]

    runner.run_until_idle(advance_clock=True)

    assert (first.status, second.status) == ("completed", "completed")


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
