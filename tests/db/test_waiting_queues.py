import pytest

from django_runstore.db import waiting_queues as module
from django_runstore.db.waiting_queues import waiting_queues
from django_runstore.testing.factories import RunFactory

pytestmark = pytest.mark.django_db

NOW_MS = 1_000


def due(queue, available_at_ms, **columns):
    return RunFactory.raw(queue=queue, available_at_ms=available_at_ms, **columns)


def test_the_queue_that_has_waited_longest_comes_first():
    due("young", 900)
    due("old", 100)
    due("old", 500)
    assert waiting_queues("default", NOW_MS) == [("old", 100, 2), ("young", 900, 1)]


def test_the_oldest_of_a_queue_is_found_at_whatever_priority_it_has():
    due("q", 300, priority=10)
    due("q", 100, priority=-5)
    due("q", 200)
    due("other", 400, priority=7)
    assert waiting_queues("default", NOW_MS) == [("q", 100, 3), ("other", 400, 1)]


@pytest.mark.parametrize(
    "columns",
    [
        {"available_at_ms": NOW_MS + 1},
        {"available_at_ms": None},
        {"status": "completed"},
        {"status": "suspended", "available_at_ms": NOW_MS + 1},
    ],
)
def test_what_cannot_be_claimed_yet_does_not_wait_for_a_worker(columns):
    RunFactory.raw(queue="q", **{"available_at_ms": 0, **columns})
    assert waiting_queues("default", NOW_MS) == []


def test_what_is_due_now_waits():
    due("q", NOW_MS)
    assert waiting_queues("default", NOW_MS) == [("q", NOW_MS, 1)]


def test_a_run_that_somebody_has_claimed_is_not_the_oldest():
    due("q", 100, claim_host_id="h", claim_pid=1, claim_nonce="n", claimed_at_ms=200)
    due("q", 300)
    (queue,) = waiting_queues("default", NOW_MS)
    assert queue.since_ms == 300


def test_a_suspended_run_that_is_due_waits_too():
    due("q", 100, status="suspended")
    assert waiting_queues("default", NOW_MS) == [("q", 100, 1)]


def test_counting_ends_where_a_number_says_no_more(monkeypatch):
    monkeypatch.setattr(module, "_QUEUES", module._QUEUES.replace("LIMIT 1000", "LIMIT 2"))
    for _ in range(3):
        due("q", 100)
    assert waiting_queues("default", NOW_MS) == [("q", 100, 2)]
