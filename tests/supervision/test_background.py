import threading
import time
from collections.abc import Iterator

import pytest
from django.db import connection

from django_runstore.supervision.background import Completion, ThreadedCalls

PATIENCE_MS = 10_000


@pytest.fixture
def calls() -> Iterator[ThreadedCalls]:
    made = ThreadedCalls()
    yield made
    made.close(PATIENCE_MS)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Calls that wait for it hang until the test ends."""
    opened = threading.Event()
    yield opened
    opened.set()


def test_a_call_is_answered(calls):
    calls.start("lane", lambda: 42)

    assert calls.wait(PATIENCE_MS) == Completion("lane", value=42)


def test_an_error_is_an_answer_too(calls):
    error = KeyboardInterrupt()

    def fail() -> None:
        raise error

    calls.start("lane", fail)

    assert calls.wait(PATIENCE_MS) == Completion("lane", error=error)


def test_a_call_that_hangs_stops_no_other_lane(calls, gate):
    calls.start("hanging", gate.wait)
    calls.start("other", lambda: 1)

    assert calls.wait(PATIENCE_MS) == Completion("other", value=1)


def test_waiting_ends_with_its_time(calls, gate):
    calls.start("hanging", gate.wait)

    assert calls.wait(10) is None


def test_waiting_can_be_ended_by_another_thread(calls):
    threading.Timer(0.01, calls.wake).start()
    began = time.monotonic()

    assert calls.wait(PATIENCE_MS) is None
    assert time.monotonic() - began < PATIENCE_MS / 1_000


def test_a_lane_keeps_its_thread(calls):
    threads = []
    for _ in range(2):
        calls.start("lane", threading.get_ident)
        threads.append(calls.wait(PATIENCE_MS).value)

    assert threads[0] == threads[1]


def test_the_answer_of_an_abandoned_call_is_dropped(calls):
    gate = threading.Event()
    calls.start("lane", gate.wait)
    calls.abandon("lane")
    gate.set()
    calls.start("lane", lambda: "second")

    answers = [calls.wait(PATIENCE_MS), calls.wait(200)]

    assert [answer.value for answer in answers if answer] == ["second"]


def test_an_abandoned_lane_is_replaced_at_once(calls, gate):
    calls.start("lane", gate.wait)
    calls.abandon("lane")

    calls.start("lane", lambda: 1)

    assert calls.wait(PATIENCE_MS) == Completion("lane", value=1)


def test_abandoning_a_lane_that_does_nothing_is_nothing(calls):
    calls.abandon("unknown")

    assert calls.wait(0) is None


def test_closing_does_not_wait_for_a_call_that_hangs(gate):
    calls = ThreadedCalls()
    calls.start("hanging", gate.wait)
    began = time.monotonic()

    calls.close()

    assert time.monotonic() - began < 5


def test_closing_waits_for_a_call_as_long_as_it_is_told():
    calls = ThreadedCalls()
    gate = threading.Event()
    done = threading.Event()

    def work() -> None:
        gate.wait()
        done.set()

    calls.start("lane", work)
    threading.Timer(0.05, gate.set).start()
    calls.close(PATIENCE_MS)

    assert done.is_set()


@pytest.mark.django_db(transaction=True)
def test_a_lane_keeps_one_connection_and_closes_it_in_the_end():
    calls = ThreadedCalls()
    seen = []

    def use() -> None:
        connection.ensure_connection()
        seen.append(connection.connection)

    for _ in range(2):
        calls.start("lane", use)
        calls.wait(PATIENCE_MS)
    calls.close(PATIENCE_MS)

    assert seen[0] is seen[1]
    assert is_closed(seen[0])


@pytest.mark.django_db(transaction=True)
def test_a_failed_call_gives_its_connection_up():
    calls = ThreadedCalls()
    seen = []

    def use() -> None:
        connection.ensure_connection()
        seen.append(connection.connection)
        raise RuntimeError

    for _ in range(2):
        calls.start("lane", use)
        calls.wait(PATIENCE_MS)
    calls.close(PATIENCE_MS)

    assert seen[0] is not seen[1]
    assert is_closed(seen[0])


def is_closed(raw) -> bool:
    """Ask the driver: psycopg tells, sqlite3 refuses to work."""
    if hasattr(raw, "closed"):
        return bool(raw.closed)
    with pytest.raises(Exception, match="closed database"):
        raw.execute("SELECT 1")
    return True
