import threading
import time
import traceback

import pytest
from django.db import connection, transaction

from django_runstore import InvalidRun, RunConstraint
from django_runstore.handlers import InvalidValue, RunIdTaken, submission
from django_runstore.handlers.registry import Handler
from django_runstore.models import Run

SECRET = "s3cr3t-value"


class RunsElsewhere:
    def db_for_write(self, model, **hints):
        return "elsewhere" if model is Run else None


def somebody_waits_for_a_transaction():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return cursor.fetchone()[0] > 0


def wait_until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.01)


@pytest.mark.django_db
def test_a_submitted_run_waits_with_its_handler_queue_and_state():
    handler = Handler("tests.mail", lambda _: None, queue="mail", priority=7)
    handle = handler.submit({"to": "é"}, run_id="mail-1")
    run = Run.objects.get()
    assert (run.run_id, run.status, run.handler) == ("mail-1", "pending", "tests.mail")
    assert (run.queue, run.priority, run.state_json) == ("mail", 7, '{"to":"é"}')
    assert handle.run_id == "mail-1"


@pytest.mark.django_db
def test_a_submission_may_choose_queue_priority_time_and_parent(echo):
    echo.submit(run_id="parent")
    echo.submit(
        run_id="child", queue="slow", priority=-3, available_at_ms=99, parent_run_id="parent"
    )
    run = Run.objects.get(pk="child")
    assert (run.queue, run.priority, run.available_at_ms) == ("slow", -3, 99)
    assert run.parent_run_id == "parent"


@pytest.mark.django_db
def test_the_same_id_gives_the_same_run_and_keeps_its_state(echo):
    echo.submit(1, run_id="once")
    again = echo.submit(2, run_id="once")
    assert again.state == 1
    assert Run.objects.count() == 1


@pytest.mark.django_db
def test_the_id_of_another_handlers_run_is_refused_naming_both(echo):
    echo.submit(run_id="taken")
    with pytest.raises(RunIdTaken, match=r"'tests\.echo', not 'tests\.other'"):
        Handler("tests.other", lambda _: None).submit(run_id="taken")


@pytest.mark.django_db
def test_an_unknown_parent_is_a_constraint(echo):
    with pytest.raises(RunConstraint, match="parent"):
        echo.submit(run_id="orphan", parent_run_id="nobody")
    assert not Run.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("run_id", ["", "a\0b", "\ud800", 3])
def test_a_bad_id_is_refused_before_anything_is_written(echo, run_id):
    with pytest.raises(InvalidRun):
        echo.submit(run_id=run_id)
    assert not Run.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("state", "path"),
    [
        ({"a": [0, {"b": object()}]}, "$.a[1].b"),
        ({SECRET: "\ud800"}, "$"),
        ([float("nan")], "$[0]"),
        ({1: 2}, "$"),
        ([SECRET, {SECRET}], "$[1]"),
    ],
)
def test_a_state_that_cannot_be_stored_is_refused_with_its_path_and_without_its_value(
    echo, state, path
):
    with pytest.raises(InvalidValue) as caught:
        echo.submit(state)
    assert caught.value.operation == "submit"
    assert caught.value.detail["field"] == "state"
    assert caught.value.detail["path"].startswith(path)
    # With causes and contexts, as a log shows it.
    logged = "".join(traceback.format_exception(caught.value))
    assert "object at 0x" not in logged
    assert SECRET not in logged
    assert not Run.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_run_submitted_in_a_transaction_that_rolls_back_never_was(echo):
    with transaction.atomic():
        echo.submit(run_id="undone")
        transaction.set_rollback(True)
    assert not Run.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.postgres(reason="another transaction can be watched while it waits")
def test_a_submission_waits_for_a_rival_that_has_not_committed(echo, is_kept):
    second = []

    def submit_second():
        try:
            second.append(echo.submit("second", run_id="shared"))
        finally:
            connection.close()

    thread = threading.Thread(target=submit_second)
    with transaction.atomic():
        echo.submit("first", run_id="shared")
        thread.start()
        wait_until(somebody_waits_for_a_transaction)
        assert second == []
        transaction.set_rollback(not is_kept)
    thread.join(30)
    assert [handle.run_id for handle in second] == ["shared"]
    assert second[0].state == ("first" if is_kept else "second")


def test_the_routers_decide_where_a_run_goes(echo, settings, monkeypatch):
    stores = []

    class RefusedError(Exception):
        pass

    def refuse(using):
        stores.append(using)
        raise RefusedError

    monkeypatch.setattr(submission, "RunStore", refuse)
    settings.DATABASE_ROUTERS = [RunsElsewhere()]
    with pytest.raises(RefusedError):
        echo.submit()
    with pytest.raises(RefusedError):
        echo.submit(using="default")
    assert stores == ["elsewhere", "default"]


@pytest.mark.django_db(transaction=True)
def test_two_threads_that_submit_one_id_at_once_share_one_run(echo):
    barrier = threading.Barrier(4)
    handles, errors = [], []

    def submit(number):
        try:
            barrier.wait(10)
            handles.append(echo.submit(number, run_id="shared"))
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=submit, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert {handle.run_id for handle in handles} == {"shared"}
    assert Run.objects.count() == 1
