"""Locks of others: none is waited for for ever, and none is waited for in a circle."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.db import connection, connections, transaction

from django_runstore import OwnerId, RunPersistenceFailed, RunSnapshot, RunStore
from django_runstore.db import boundary
from django_runstore.models import Run
from django_runstore.outcomes import AlreadyRequested, CancelRequested, Transitioned, Updated
from django_runstore.services import cancelling
from django_runstore.snapshots import OwnedTransition
from tests.conformance.race import race

pytestmark = pytest.mark.django_db(transaction=True)

OWNER = OwnerId("host", 1, "nonce")
OTHER = OwnerId("host", 2, "nonce")
DEADLINE_SECONDS = 30
ROUNDS = 25


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The attempts that had to be repeated, each noted where it would pause."""
    made: list[int] = []
    monkeypatch.setattr(boundary, "_pause", made.append)
    return made


def test_settling_a_lineage_and_cancelling_it_never_wait_for_each_other_in_a_circle(pauses):
    store = RunStore()
    # Stored in the order opposite to that of the locks, and asked for in neither.
    names = [f"run-{number:02}" for number in range(20)]
    for ordinal, name in enumerate(reversed(names)):
        store.create(name, "{}", lineage_id="line", round_ordinal=ordinal)
    fences = {claimed.run.run_id: claimed.fence for claimed in store.claim_many(OWNER, 20)}
    for number in range(ROUNDS):
        Run.unguarded.update(cancel_requested_at_ms=None)
        saves = [
            OwnedTransition(name, fences[name], "running", state_json=str(number))
            for name in reversed(names)
        ]
        saved, asked, claimed, asked_too = race(
            lambda saves=saves: store.transition_many(OWNER, saves),
            lambda: store.request_cancel_lineage("run-03", 5),
            lambda: store.claim_many(OTHER, 20),
            lambda: store.request_cancel_lineage("run-17", 7),
        )
        assert saved == dict.fromkeys(names, Transitioned())
        assert claimed == ()
        assert sorted([asked, asked_too], key=repr) in (
            [AlreadyRequested(5), CancelRequested(5)],
            [AlreadyRequested(7), CancelRequested(7)],
        )
        assert Run.objects.filter(state_json=str(number)).count() == 20
    if connection.vendor == "postgresql":
        assert pauses == []


@contextmanager
def table_locked_elsewhere() -> Iterator[None]:
    """Hold the table as a migration does, on another connection."""
    locked, release = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("LOCK TABLE runstore_run IN ACCESS EXCLUSIVE MODE")
                locked.set()
                assert release.wait(DEADLINE_SECONDS)
        finally:
            locked.set()
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        holder = pool.submit(hold)
        try:
            assert locked.wait(DEADLINE_SECONDS)
            yield
        finally:
            release.set()
            holder.result(DEADLINE_SECONDS)


@pytest.mark.postgres("can lock a table")
def test_a_locked_table_fails_a_group_heartbeat_after_one_interval(settings, pauses):
    interval_ms = 300
    settings.RUNSTORE = {
        "LEASE": {
            "HEARTBEAT_INTERVAL_MS": interval_ms,
            "STALE_AFTER_MS": 3_000,
            "SKEW_ALLOWANCE_MS": 1_000,
        }
    }
    store = RunStore()
    store.create("run", "{}")
    store.claim_and_own("run", RunSnapshot("pending"), OWNER)
    with table_locked_elsewhere():
        began = time.monotonic()
        with pytest.raises(RunPersistenceFailed) as caught:
            store.heartbeat_many(OWNER, [("run", 1)])
        waited_ms = (time.monotonic() - began) * 1000
    assert caught.value.detail["cause"] == "busy"
    assert interval_ms <= waited_ms < 10 * interval_ms
    assert pauses == []
    assert store.heartbeat_many(OWNER, [("run", 1)]) == {"run": Updated()}


@pytest.mark.postgres("keeps settings per session")
def test_the_patience_of_a_pulse_ends_with_it():
    store = RunStore()

    def setting(name: str) -> str:
        with connection.cursor() as cursor:
            cursor.execute(f"SHOW {name}")
            return cursor.fetchone()[0]

    names = ("lock_timeout", "transaction_isolation")
    before = [setting(name) for name in names]
    store.heartbeat_many(OWNER, [("run", 1)])
    assert [setting(name) for name in names] == before
    with transaction.atomic():
        store.heartbeat_many(OWNER, [("run", 1)])
        assert [setting(name) for name in names] == before


@pytest.mark.postgres("SQLite has one writer at a time")
def test_a_run_created_while_it_is_asked_to_stop_is_asked(monkeypatch):
    # It is committed after the UPDATE looked for it and before the SELECT does.
    store, created = RunStore(), []
    judge_miss = cancelling._judge_miss

    def created_meanwhile(*arguments):
        if not created:
            created.append(True)
            race(lambda: RunStore().create("run", "{}"))
        return judge_miss(*arguments)

    monkeypatch.setattr(cancelling, "_judge_miss", created_meanwhile)
    assert store.request_cancel("run", 5) == CancelRequested(5)
    assert store.get("run").cancel_requested_at_ms == 5
