import threading

import pytest
from django.db import connection, transaction

from django_runstore import RunNotFound, RunStore
from django_runstore.handlers import (
    InvalidValue,
    RunCancelled,
    RunFailed,
    RunHandle,
    RunUnfinished,
    RunUnsuccessful,
)
from django_runstore.outcomes import CancelRequested, Terminal
from django_runstore.snapshots import OwnedTransition
from django_runstore.states import RunStatus
from tests.handlers.conftest import OWNER


def settle(context, status, **details):
    transition = OwnedTransition(context.run_id, context.fence, status, **details)
    RunStore().transition_many(OWNER, [transition])


def test_a_completed_run_gives_its_result(make_context):
    context = make_context()
    settle(context, "completed", result_json='{"sum": 3}')
    assert RunHandle(context.run_id).result() == {"sum": 3}


def test_a_run_that_is_not_settled_has_no_result(make_context):
    handle = RunHandle(make_context().run_id)
    with pytest.raises(RunUnfinished, match="is running"):
        handle.result()


@pytest.mark.parametrize(("status", "kind"), [("failed", RunFailed), ("cancelled", RunCancelled)])
def test_a_run_without_success_says_how_it_ended(make_context, status, kind):
    context = make_context()
    settle(context, status, error_json='{"type": "E"}')
    handle = RunHandle(context.run_id)
    with pytest.raises(kind, match=status) as caught:
        handle.result()
    assert isinstance(caught.value, RunUnsuccessful)
    assert caught.value.detail == {"run_id": context.run_id, "status": status}
    assert handle.error == {"type": "E"}


def test_state_and_progress_are_what_was_last_saved(make_context):
    context = make_context({"n": 1})
    context.save({"n": 2})
    context.progress(0.5, "half")
    handle = RunHandle(context.run_id)
    assert handle.state == {"n": 2}
    assert handle.progress == {"fraction": 0.5, "message": "half"}


def test_cancel_records_a_request(make_context):
    handle = RunHandle(make_context().run_id)
    assert isinstance(handle.cancel(), CancelRequested)


def test_cancel_of_a_settled_run_says_how_it_ended(make_context):
    context = make_context()
    settle(context, "completed")
    assert RunHandle(context.run_id).cancel() == Terminal(RunStatus.COMPLETED)


@pytest.mark.django_db
def test_an_unknown_run_is_not_found():
    with pytest.raises(RunNotFound):
        _ = RunHandle("nobody").status


def test_waiting_inside_an_atomic_block_is_refused_at_once(make_context):
    with pytest.raises(RunUnfinished, match="atomic block"):
        RunHandle(make_context().run_id).wait(timeout=60)


@pytest.mark.django_db(transaction=True)
def test_waiting_with_autocommit_off_is_refused_at_once(make_context):
    handle = RunHandle(make_context().run_id)
    transaction.set_autocommit(False)
    try:
        with pytest.raises(RunUnfinished, match="atomic block"):
            handle.wait(timeout=60)
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)


@pytest.mark.parametrize("timeout", [-1, float("nan"), None, "5", True])
def test_a_timeout_is_a_number_of_seconds(timeout):
    with pytest.raises(InvalidValue) as caught:
        RunHandle("any").wait(timeout=timeout)
    assert caught.value.detail["field"] == "timeout"


@pytest.mark.django_db(transaction=True)
def test_a_timeout_of_zero_looks_once(make_context):
    context = make_context()
    with pytest.raises(RunUnfinished):
        RunHandle(context.run_id).wait(timeout=0)
    settle(context, "completed")
    assert RunHandle(context.run_id).wait(timeout=0) == RunStatus.COMPLETED


@pytest.mark.django_db(transaction=True)
def test_waiting_ends_when_the_time_is_up(make_context):
    with pytest.raises(RunUnfinished, match=r"is running after 0\.01 s"):
        RunHandle(make_context().run_id).wait(timeout=0.01)


@pytest.mark.django_db(transaction=True)
def test_waiting_ends_when_the_run_is_settled(make_context):
    context = make_context()

    def finish():
        try:
            settle(context, "completed")
        finally:
            connection.close()

    thread = threading.Thread(target=finish)
    thread.start()
    assert RunHandle(context.run_id).wait(timeout=30) == RunStatus.COMPLETED
    thread.join()
