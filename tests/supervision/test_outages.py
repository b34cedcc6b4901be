"""Supervisors over a database that hangs or drops its connections."""

import signal
import time
from contextlib import contextmanager

import psycopg
import pytest
from django.db import connection

from django_runstore.services import RunStore
from tests.supervision.processes import has_status, is_alive, until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.postgres("locks a table and ends sessions of a server"),
]

STALE_MINUS_SKEW_S = 1.4


@contextmanager
def another_session():
    """A connection that no fixture knows of."""
    parameters = connection.get_connection_params()
    for name in ("context", "cursor_factory"):
        parameters.pop(name, None)
    with psycopg.connect(**parameters, autocommit=True) as session:
        yield session


@contextmanager
def locked_table():
    """Let nobody read or write a run."""
    with another_session() as session, session.transaction():
        session.execute("LOCK TABLE runstore_run IN ACCESS EXCLUSIVE MODE")
        yield


def test_a_hanging_database_ends_the_handler_in_time_and_all_recovers(supervise, submit, marks):
    submit("test.deaf")
    supervise("--concurrency", "1")
    worker = marks.entered()
    with locked_table():
        began = time.monotonic()
        until(lambda: not is_alive(worker), 5)
        assert time.monotonic() - began < STALE_MINUS_SKEW_S + 0.5
    marks.entered(2)
    marks.allow()
    until(has_status("run", "completed"))
    assert RunStore().get("run").recovery_count == 0


def test_a_short_outage_changes_nothing_for_the_handler(supervise, submit, marks):
    submit("test.polling")
    supervise("--concurrency", "1")
    marks.entered()
    with locked_table():
        time.sleep(0.5)
    marks.allow()
    until(has_status("run", "completed"))
    assert RunStore().get("run").fence == 1


def test_dropped_connections_are_replaced(supervise, submit, marks):
    submit("test.polling")
    supervisor = supervise("--concurrency", "1")
    marks.entered()
    with another_session() as session:
        session.execute(
            "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    connection.close()
    marks.allow()
    until(has_status("run", "completed"))
    assert RunStore().get("run").fence == 1
    assert supervisor.process.poll() is None


def test_an_outcome_is_kept_until_the_database_takes_it(supervise, submit, marks):
    submit("test.sleeping")
    supervise("--concurrency", "1")
    marks.entered()
    with locked_table():
        marks.allow()
        until(lambda: "cleaned up 1" in marks.lines)
        time.sleep(0.5)
    until(has_status("run", "completed"))
    assert RunStore().get("run").fence == 1


def test_a_supervisor_that_hangs_in_the_database_can_be_killed_without_harm(
    supervise, submit, marks
):
    submit("test.polling")
    supervisor = supervise("--concurrency", "1")
    worker = marks.entered()
    with locked_table():
        time.sleep(0.5)
        supervisor.signal(signal.SIGTERM)
        supervisor.signal(signal.SIGKILL)
        supervisor.wait()
        until(lambda: not is_alive(worker), 5)
    assert RunStore().get("run").status == "running"
