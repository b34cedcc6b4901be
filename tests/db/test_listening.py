"""Waiting for a notice: short when one comes, and never longer than was asked."""

import asyncio
import itertools
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from django_runstore.db import listening
from django_runstore.db.listening import Listener
from tests.conformance.race import race

pytestmark = pytest.mark.django_db(transaction=True)

CHANNEL = "runstore test"  # a name that has to be quoted
ENDLESS = 100
SHORT = 0.05

postgres = pytest.mark.postgres("sends notices")


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener("default", CHANNEL, lambda payload: payload == "wanted")
    yield listener
    listener.close()


@pytest.fixture(params=["pause", "apause"])
def pause(request: pytest.FixtureRequest) -> Callable[[Listener, float], float]:
    """Wait either way, and tell for how long it was."""

    def wait(listener: Listener, seconds: float) -> float:
        began = time.monotonic()
        if request.param == "pause":
            listener.pause(seconds)
        else:
            async_to_sync(listener.apause)(seconds)
        return time.monotonic() - began

    return wait


def notify(*payloads: str) -> None:
    def send() -> None:
        with connection.cursor() as cursor:
            for payload in payloads:
                cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, payload])

    race(send)


def session_of(listener: Listener) -> Any:
    assert listener._connection is not None
    return listener._connection


@postgres
def test_the_session_is_a_bare_one_of_its_own(listener, pause):
    pause(listener, ENDLESS)
    session = session_of(listener)
    assert type(session) is psycopg.Connection
    assert session.autocommit
    assert session.prepare_threshold is None
    assert session is not connection.connection
    assert session.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


@postgres
def test_the_first_wait_only_connects_since_something_may_have_come_before(listener, pause):
    assert not listener.listening
    assert pause(listener, ENDLESS) < ENDLESS
    assert listener.listening


@postgres
def test_a_wanted_notice_ends_a_wait_that_has_begun(listener, pause):
    pause(listener, ENDLESS)
    sender = threading.Timer(SHORT, notify, ["wanted"])
    sender.start()
    assert pause(listener, ENDLESS) < ENDLESS
    sender.join()


@postgres
def test_a_wanted_notice_that_came_before_the_wait_ends_it_at_once(listener, pause):
    pause(listener, ENDLESS)
    notify("other", "wanted", "other")
    assert pause(listener, ENDLESS) < ENDLESS
    assert pause(listener, SHORT) >= SHORT


@postgres
def test_a_notice_that_is_not_wanted_ends_no_wait(listener, pause):
    pause(listener, ENDLESS)
    notify("other")
    sender = threading.Timer(SHORT / 5, notify, ["other"])
    sender.start()
    assert pause(listener, 2 * SHORT) >= 2 * SHORT
    sender.join()


@postgres
def test_without_a_choice_every_notice_ends_a_wait(pause):
    listener = Listener("default", CHANNEL)
    pause(listener, ENDLESS)
    notify("anything")
    assert pause(listener, ENDLESS) < ENDLESS
    listener.close()


@pytest.mark.sqlite("sends no notices")
def test_where_there_are_no_notices_a_wait_lasts_as_long_as_was_asked(listener, pause, caplog):
    assert pause(listener, SHORT) >= SHORT
    assert not listener.listening
    assert caplog.records == []


@postgres
def test_a_pooler_that_loses_the_listen_only_makes_waits_long(listener, pause):
    pause(listener, ENDLESS)
    session_of(listener).execute("UNLISTEN *")
    notify("wanted")
    assert pause(listener, SHORT) >= SHORT


@postgres
def test_a_peer_that_does_not_answer_only_makes_waits_long(listener, pause):
    pause(listener, ENDLESS)
    backend = session_of(listener).info.backend_pid
    os.kill(backend, signal.SIGSTOP)
    try:
        assert SHORT <= pause(listener, SHORT) < ENDLESS
        listener.close()
    finally:
        os.kill(backend, signal.SIGCONT)


def terminate(listener: Listener) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(%s, 10000)", [session_of(listener).info.backend_pid]
        )


@postgres
def test_a_session_that_was_ended_is_told_of_once_and_made_again(
    listener, pause, monkeypatch, caplog
):
    caplog.set_level(logging.INFO, "django_runstore.db")
    pause(listener, ENDLESS)
    terminate(listener)
    assert pause(listener, SHORT) >= SHORT  # polling meanwhile
    assert not listener.listening
    monkeypatch.setattr(listener, "_next_attempt", float("-inf"))  # the backoff is over
    assert pause(listener, ENDLESS) < ENDLESS
    assert listener.listening
    notify("wanted")
    assert pause(listener, ENDLESS) < ENDLESS
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", "notices cannot be listened for; polling only"),
        ("INFO", "notices are back"),
    ]
    told = caplog.records[0]
    assert (told.alias, told.channel, told.error) == ("default", CHANNEL, "OperationalError")


@postgres
def test_attempts_to_connect_are_put_off_for_longer_each_time_and_told_of_once(
    listener, monkeypatch, caplog
):
    now = [1_000.0]
    attempts: list[float] = []

    def refused(**parameters: object) -> None:
        attempts.append(now[0])
        raise psycopg.OperationalError("db-1 refused s3cr3t")

    def pass_time(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(listening.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(listening.time, "sleep", pass_time)
    monkeypatch.setattr(listening.psycopg, "connect", refused)
    for _ in range(600):
        began = now[0]
        listener.pause(0.5)
        assert now[0] == pytest.approx(began + 0.5)
    pauses = [after - before for before, after in itertools.pairwise(attempts)]
    # Half of 1, 2, 4, ... and then 60 seconds at the least, and a poll more at the most.
    for number, pause in enumerate(pauses):
        longest = min(2**number, 60)
        assert longest / 2 <= pause <= longest + 0.5
    assert len(pauses) > 8
    assert [record.message for record in caplog.records] == [
        "notices cannot be listened for; polling only"
    ]
    assert "s3cr3t" not in caplog.text


@postgres
def test_a_closed_listener_connects_no_more_and_waits_as_long_as_was_asked(listener, pause):
    pause(listener, ENDLESS)
    session = session_of(listener)
    listener.close()
    assert session.closed
    assert pause(listener, SHORT) >= SHORT
    assert not listener.listening


@postgres
def test_a_listener_that_is_closed_while_it_connects_keeps_no_session(listener, monkeypatch):
    made: list[Any] = []
    connect = psycopg.connect

    def slow(**parameters: Any) -> Any:
        made.append(connect(**parameters))
        listener.close()
        return made[0]

    monkeypatch.setattr(listening.psycopg, "connect", slow)
    listener.pause(SHORT)
    assert made[0].closed
    assert not listener.listening


@postgres
def test_a_waiting_task_holds_no_thread_and_can_be_cancelled(listener):
    async def cancel() -> int:
        await listener.apause(ENDLESS)
        before = threading.active_count()
        waiting = [asyncio.create_task(listener.apause(ENDLESS)) for _ in range(1)]
        await asyncio.sleep(0)
        during = threading.active_count() - before
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert all(task.cancelled() for task in waiting)
        # The loop watches the session no longer.
        assert not asyncio.get_running_loop().remove_reader(session_of(listener).fileno())
        return during

    assert async_to_sync(cancel)() == 0
