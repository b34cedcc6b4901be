"""Supervisors that are told, and supervisors that are told nothing any more."""

import psycopg
import pytest
from django.db import connection, transaction

from django_runstore.services import RunStore
from tests.conftest import url_of
from tests.supervision.processes import has_status, until
from tests.supervision.proxy import Proxy

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(120),
    pytest.mark.postgres("sends notices"),
]

# Longer than any of these tests: whatever happens in time, a notice has brought about.
NEVER = {"RUNSTORE_TEST_POLL_INTERVAL_MS": "600000"}


def listens():
    """Whether a supervisor listens."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%%runstore_runs%%' "
            "AND datname = current_database() AND pid <> pg_backend_pid()"
        )
        return cursor.fetchone()[0]


def test_a_run_is_claimed_and_a_request_noticed_without_waiting_for_a_poll(
    supervise, submit, marks
):
    supervisor = supervise("--concurrency", "1", **NEVER)
    supervisor.says("worker 1 is ready")
    until(listens)
    submit("test.polling")
    marks.entered()
    RunStore().request_cancel("run")
    until(has_status("run", "cancelled"))


def test_what_was_stored_in_a_transaction_is_claimed_at_its_commit(supervise, submit, marks):
    supervisor = supervise("--concurrency", "1", **NEVER)
    supervisor.says("worker 1 is ready")
    until(listens)
    with transaction.atomic():
        submit("test.answer")
    until(has_status("run", "completed"))


def test_a_run_that_was_put_back_is_claimed_by_whoever_is_idle(supervise, submit, marks):
    first = supervise("--concurrency", "1", **NEVER)
    submit("test.polling")
    marks.entered()
    second = supervise("--concurrency", "1", **NEVER)
    second.says("worker 1 is ready")
    until(lambda: listens() == 2)
    first.process.terminate()
    marks.entered(times=2)
    assert first.wait() == 0


def test_without_a_word_from_the_listening_session_runs_are_found_by_polling(
    supervise, submit, monkeypatch
):
    found = connection.get_connection_params()
    proxy = Proxy(found["host"], found.get("port", 5432))
    settings = connection.settings_dict
    through_proxy = {**settings, "OPTIONS": {**settings["OPTIONS"], "host": str(proxy.folder)}}
    try:
        supervisor = supervise("--concurrency", "1", DATABASE_URL=url_of(through_proxy))
        supervisor.says("worker 1 is ready")
        until(listens)
        proxy.kill_silently(having_sent=b"LISTEN")
        submit("test.answer")
        until(has_status("run", "completed"))
        # And it listens again once it has found out, by itself.
        supervisor.says("notices do not arrive; polling only")
        supervisor.says("notices are back")
    finally:
        supervisor.end()
        proxy.close()


def test_a_lock_on_the_table_does_not_keep_a_supervisor_from_being_stopped(
    supervise, submit, database_url
):
    supervisor = supervise("--concurrency", "1")
    supervisor.says("worker 1 is ready")
    with psycopg.connect(**connection.get_connection_params() | {"context": None}) as blocking:
        blocking.execute("LOCK TABLE runstore_run IN ACCESS EXCLUSIVE MODE")
        supervisor.says("the database failed while")
        supervisor.process.terminate()
        assert supervisor.wait(20) == 0
        blocking.rollback()


def test_a_drain_does_not_end_while_a_due_run_is_only_locked(supervise, submit):
    submit("test.answer")
    with transaction.atomic():
        RunStore().request_cancel("run")
        RunStore()._lock("run")
        supervisor = supervise("--concurrency", "1", "--drain")
        supervisor.says("worker 1 is ready")
        with pytest.raises(AssertionError, match="did not end"):
            supervisor.wait(2)
        transaction.set_rollback(True)
    assert supervisor.wait() == 0
    assert RunStore().get("run").status == "completed"
