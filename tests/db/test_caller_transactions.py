"""Spec 10.4 from the caller's side: blocks, requests, isolation levels, no autocommit."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.core.signals import got_request_exception
from django.db import Error, connection, transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path

from django_runstore import (
    OwnerId,
    RunConstraint,
    RunPersistenceFailed,
    RunSnapshot,
    RunStore,
    TransitionGuard,
)
from django_runstore.db import boundary, pulse_statements
from django_runstore.models import JournalEntry, Run
from django_runstore.outcomes import Activated, HeartbeatFresh, Transitioned, Updated
from tests.conformance.race import race
from tests.db.reopened import reopened, write_lock_held_elsewhere

pytestmark = pytest.mark.django_db(transaction=True)

OWNER = OwnerId("host", 1, "nonce")
OTHER = OwnerId("host", 2, "nonce")
PENDING = RunSnapshot("pending")


@pytest.fixture
def store() -> RunStore:
    return RunStore()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, noted instead of made."""
    made: list[float] = []
    monkeypatch.setattr(boundary.time, "sleep", made.append)
    return made


def stored() -> list[str]:
    return list(Run.objects.order_by("run_id").values_list("run_id", flat=True))


def elsewhere(action: Callable[[], Any]) -> Any:
    """Act on a connection of one's own, and be done when this returns."""
    (answer,) = race(action)
    return answer


# --- SQLite, whose transactions begin without the write lock unless told otherwise --------


@pytest.mark.sqlite("cannot upgrade an old snapshot")
def test_a_deferred_block_that_has_read_fails_typed_and_says_what_to_set(store, pauses):
    store.create("run", "{}")
    with reopened(transaction_mode="DEFERRED", timeout=0), transaction.atomic():
        seen = store.get("run")
        elsewhere(lambda: RunStore().create("meanwhile", "{}"))
        with pytest.raises(RunPersistenceFailed, match="transaction_mode") as caught:
            store.claim_and_own("run", seen, OWNER)
        # The block is whole: only this operation did not happen.
        assert store.get("run") == seen
    assert caught.value.detail["cause"] == "busy"
    assert 'OPTIONS["transaction_mode"] = "IMMEDIATE"' in caught.value.detail["hint"]
    assert pauses == []


@pytest.mark.sqlite("cannot upgrade an old snapshot")
def test_an_immediate_block_that_has_read_writes(store):
    store.create("run", "{}")
    with reopened(transaction_mode="IMMEDIATE"), transaction.atomic():
        seen = store.get("run")
        assert store.claim_and_own("run", seen, OWNER) == Activated(1)
    assert store.get("run").owner == OWNER


@pytest.mark.sqlite("has one lock for all writers")
def test_a_deferred_block_that_wrote_first_is_no_trouble(store):
    with reopened(transaction_mode="DEFERRED"), transaction.atomic():
        store.create("run", "{}")
        assert store.claim_and_own("run", store.get("run"), OWNER) == Activated(1)
    assert store.get("run").owner == OWNER


@pytest.mark.sqlite("has one lock for all writers")
def test_the_hint_is_for_callers_with_a_block_alone(store, pauses):
    with (
        reopened(transaction_mode="DEFERRED", timeout=0),
        write_lock_held_elsewhere(),
        pytest.raises(RunPersistenceFailed) as caught,
    ):
        store.create("run", "{}")
    assert dict(caught.value.detail) == {"category": "persistence_failed", "cause": "busy"}


# --- callers without autocommit -----------------------------------------------------------


@pytest.fixture
def no_autocommit(transactional_db: None) -> Iterator[None]:
    connection.ensure_connection()
    transaction.set_autocommit(False)
    try:
        yield
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)


@pytest.mark.usefixtures("no_autocommit")
def test_without_autocommit_a_write_waits_for_the_callers_commit(store):
    store.create("run", "{}")
    assert elsewhere(stored) == []
    transaction.commit()
    assert elsewhere(stored) == ["run"]


@pytest.mark.usefixtures("no_autocommit")
def test_without_autocommit_a_write_goes_with_the_callers_rollback(store):
    store.create("run", "{}")
    assert store.claim_and_own("run", PENDING, OWNER) == Activated(1)
    transaction.rollback()
    assert (stored(), JournalEntry.objects.count()) == ([], 0)


@pytest.mark.usefixtures("no_autocommit")
def test_without_autocommit_a_refused_write_leaves_the_callers_work_alone(store):
    store.create("run", "{}")
    with pytest.raises(RunConstraint):
        store.create("run", "{}")
    transaction.commit()
    assert elsewhere(stored) == ["run"]


@pytest.mark.usefixtures("no_autocommit")
def test_without_autocommit_every_operation_is_one_of_the_callers_transaction(store):
    store.create("run", "{}")
    ((claimed),) = store.claim_many(OWNER, 1)
    assert store.heartbeat_many(OWNER, [("run", claimed.fence)]) == {"run": Updated()}
    assert store.request_cancel("run").code == "cancel_requested"
    assert store.request_cancel_lineage("run").code == "already_requested"
    settled = store.transition_owned(
        "run", OWNER, "cancelled", None, TransitionGuard("present"), fence=claimed.fence
    )
    assert settled == Transitioned()
    transaction.rollback()
    assert stored() == []


# --- requests -----------------------------------------------------------------------------


def submit(request: HttpRequest, run_id: str) -> HttpResponse:
    store = RunStore()
    seen = Run.objects.count()
    store.create(run_id, "{}")
    store.claim_and_own(run_id, PENDING, OWNER)
    if "fail" in request.GET:
        raise LookupError("the view failed")
    return HttpResponse(f"{seen} before")


urlpatterns = [path("submit/<run_id>", submit)]


@pytest.fixture
def client(transactional_db: None) -> Iterator[Client]:
    """A browser in front of a project with ATOMIC_REQUESTS."""
    connection.settings_dict["ATOMIC_REQUESTS"] = True
    try:
        with override_settings(ROOT_URLCONF=__name__):
            yield Client(raise_request_exception=False)
    finally:
        connection.settings_dict["ATOMIC_REQUESTS"] = False


def test_a_request_that_succeeds_keeps_its_runs(client: Client, store):
    assert client.get("/submit/run").content == b"0 before"
    assert store.get("run").owner == OWNER


def test_a_request_that_fails_takes_its_runs_along(client: Client):
    failures: list[object] = []
    got_request_exception.connect(lambda **kw: failures.append(kw), weak=False, dispatch_uid="t")
    try:
        assert client.get("/submit/run?fail").status_code == 500
    finally:
        got_request_exception.disconnect(dispatch_uid="t")
    assert (stored(), JournalEntry.objects.count(), len(failures)) == ([], 0, 1)


# --- PostgreSQL's isolation levels --------------------------------------------------------

STRICT = [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE]


@pytest.fixture(params=STRICT, ids=lambda level: level.name)
def strict(request: pytest.FixtureRequest, transactional_db: None) -> Iterator[None]:
    """Every transaction of the default connection sees one snapshot."""
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL: has isolation levels")
    with reopened(isolation_level=request.param):
        yield


class Meddler(RunStore):
    """Somebody else writes after the snapshot was taken and before the row is locked."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def _lock(self, run_id: str) -> Any:
        if self.times:
            self.times -= 1
            assert Run.objects.count() == 1  # takes the snapshot
            elsewhere(lambda: Run.unguarded.filter(pk=run_id).update(priority=self.times))
        return super()._lock(run_id)


@pytest.mark.usefixtures("strict")
def test_an_outermost_write_that_cannot_be_serialized_is_replayed(store, pauses):
    store.create("run", "{}")
    assert Meddler(2).claim_and_own("run", PENDING, OWNER) == Activated(1)
    assert len(pauses) == 2
    entries = JournalEntry.objects.filter(run_id="run").values_list("event_type", flat=True)
    assert [each.rpartition(".")[2] for each in entries] == ["claimed", "activated"]


@pytest.mark.usefixtures("strict")
def test_a_nested_write_that_cannot_be_serialized_is_the_callers_to_replay(store, pauses):
    store.create("run", "{}")
    with transaction.atomic():
        with pytest.raises(RunPersistenceFailed) as caught:
            Meddler(1).claim_and_own("run", PENDING, OWNER)
        assert stored() == ["run"]
    assert dict(caught.value.detail) == {"category": "persistence_failed", "cause": "busy"}
    assert pauses == []


@pytest.mark.usefixtures("strict")
def test_of_two_claims_at_a_strict_level_one_wins(store):
    for number in range(5):
        run_id = f"run-{number}"
        store.create(run_id, "{}")
        answers = race(
            lambda run_id=run_id: RunStore().claim_and_own(run_id, PENDING, OWNER),
            lambda run_id=run_id: RunStore().claim_and_own(run_id, PENDING, OTHER),
        )
        assert sorted(answers, key=repr) == [Activated(1), HeartbeatFresh()]


@pytest.mark.usefixtures("strict")
def test_a_row_saved_meanwhile_does_not_fail_the_beat_of_the_others(store, monkeypatch):
    for run_id in ("one", "two"):
        store.create(run_id, "{}")
    claimed = store.claim_many(OWNER, 2)
    beat_many = pulse_statements.beat_many

    def after_a_save(*args: Any) -> Any:
        elsewhere(lambda: Run.unguarded.filter(pk="one").update(progress_json="{}"))
        return beat_many(*args)

    monkeypatch.setattr(pulse_statements, "beat_many", after_a_save)
    pairs = [(each.run.run_id, each.fence) for each in claimed]
    assert store.heartbeat_many(OWNER, pairs) == {"one": Updated(), "two": Updated()}


# --- lost connections ---------------------------------------------------------------------


def end_connection() -> None:
    pid = connection.connection.info.backend_pid

    def terminate() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 30000)", [pid])

    elsewhere(terminate)


@pytest.mark.postgres("a server that can end a connection")
@pytest.mark.parametrize("operation", ["get", "heartbeat", "heartbeat_many", "claim_many"])
def test_a_lost_connection_costs_one_call_and_not_all_that_follow(store, operation):
    store.create("run", "{}")
    calls = {
        "get": lambda: store.get("run"),
        "heartbeat": lambda: store.heartbeat("run", OWNER),
        "heartbeat_many": lambda: store.heartbeat_many(OWNER, [("run", 1)]),
        "claim_many": lambda: store.claim_many(OWNER, 1),
    }
    end_connection()
    with pytest.raises(RunPersistenceFailed) as caught:
        calls[operation]()
    assert caught.value.detail["cause"] == "io"
    calls[operation]()


@pytest.mark.postgres("a server that can end a connection")
def test_a_connection_lost_within_a_block_is_the_callers_until_the_block_ends(store):
    block = transaction.atomic()
    block.__enter__()
    store.create("run", "{}")
    end_connection()
    for _ in range(2):
        with pytest.raises(RunPersistenceFailed):
            store.get("run")
    with pytest.raises(Error):
        block.__exit__(None, None, None)
    assert stored() == []


# --- blocks that failed before ------------------------------------------------------------


@pytest.mark.postgres("refuses the rest of a failed transaction")
def test_a_block_whose_statement_failed_unnoticed_is_named(store):
    store.create("run", "{}")
    with transaction.atomic():
        with pytest.raises(Exception, match="division by zero"), connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")
        for call in (lambda: store.get("run"), lambda: store.heartbeat("run", OWNER)):
            with pytest.raises(RunPersistenceFailed, match="leave it before using") as caught:
                call()
            assert caught.value.detail["cause"] == "unknown"
        transaction.set_rollback(True)
    assert store.get("run").status == "pending"
