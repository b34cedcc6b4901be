"""Each scheduled retry of a write is counted, and nothing else about it twice."""

import pytest
from django.db import OperationalError, transaction

from django_runstore import RunPersistenceFailed
from django_runstore.arbiters import DatabaseArbiter
from django_runstore.db import boundary
from django_runstore.db.boundary import MOST_ATTEMPTS
from django_runstore.errors import DatabaseFailure
from tests.conformance.world import A, World

pytestmark = pytest.mark.django_db(transaction=True)

RETRIES = ("runstore_db_write_retries",)


class BusyArbiter(DatabaseArbiter):
    """The database is busy each time it is asked, as often as is wanted."""

    def __init__(self) -> None:
        self.failures = 0

    def decide(self, run_id, lease, request, *, stale_after_ms):
        if self.failures:
            self.failures -= 1
            raise OperationalError("somebody else was faster") from DatabaseFailure("busy")
        return super().decide(run_id, lease, request, stale_after_ms=stale_after_ms)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(boundary.time, "sleep", lambda _: None)


@pytest.fixture
def arbiter():
    return BusyArbiter()


@pytest.fixture
def owned(arbiter, recorder):
    world = World(arbiter)
    world.active(A)
    recorder.forget()
    return world


def test_a_replayed_write_counts_its_retries_and_one_outcome(owned, arbiter, recorder):
    arbiter.failures = 2
    owned.store.transition_owned("run", A, "completed")

    assert recorder.counts == {
        RETRIES: 2,
        ("runstore_run_transitions", "transitioned", "completed"): 1,
        ("runstore_run_throughput",): 1,
    }
    assert len(recorder.spans) == 1


def test_a_write_that_stays_busy_counts_the_retries_and_one_failure(owned, arbiter, recorder):
    arbiter.failures = MOST_ATTEMPTS
    with pytest.raises(RunPersistenceFailed):
        owned.store.transition_owned("run", A, "completed")

    assert recorder.counts == {
        RETRIES: MOST_ATTEMPTS - 1,
        ("runstore_run_transitions", "failure", "completed"): 1,
    }


def test_a_write_inside_a_block_counts_no_retry(owned, arbiter, recorder):
    arbiter.failures = 1
    with pytest.raises(RunPersistenceFailed), transaction.atomic():
        owned.store.heartbeat("run", A, 0)

    assert recorder.counts == {("runstore_run_heartbeats", "failure"): 1}
