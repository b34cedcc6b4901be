"""Conformance 119 to 122, 210 and 211: who may append, fold and compact."""

import pytest
from django.db import OperationalError, connection, transaction

from django_runstore import Journal, OwnerId
from django_runstore.arbiters import DatabaseArbiter, LocalArbiter, NullArbiter
from django_runstore.arbiters.lease import AskGuard
from django_runstore.errors import (
    DatabaseFailure,
    FenceLostError,
    InvalidEvent,
    RunPersistenceFailed,
    SinkFailed,
)
from django_runstore.models import JournalEntry
from django_runstore.outcomes import Accepted, Duplicate
from tests.conformance.journal.sample import event, everything
from tests.conformance.raw import update_raw
from tests.conformance.world import A, B, World
from tests.db.trigger_states import table_hidden

# What an owner does to the journal of its run.
FENCED = {
    "emit_durable": lambda journal, owner, **fence: journal.emit_durable(event(), owner, **fence),
    "checkpoint": lambda journal, owner, **fence: journal.checkpoint("run", 0, {}, owner, **fence),
    "compact": lambda journal, owner, **fence: journal.compact("run", owner, **fence),
}


@pytest.fixture
def prepared(world: World, journal: Journal) -> Journal:
    """A's run with two entries and a checkpoint at the second."""
    world.active(A)
    journal.emit_durable(event(source_seq=0), A)
    journal.emit_durable(event(source_seq=1), A)
    journal.checkpoint("run", 1, {}, A)
    return journal


def displaced(world: World) -> None:
    """Have B steal A's run and activate."""
    seen = world.store.get("run").snapshot
    world.clock.advance(31_000)
    stolen = world.steal(B, seen)
    assert world.store.activate("run", B, stolen.claimed_at_ms, seen).code == "activated"


@pytest.mark.conformance(119)
def test_a_displaced_owner_can_do_nothing_and_its_successor_everything(world, journal):
    world.active(A)
    for _ in range(4):
        journal.emit_durable(event(), A)
    journal.checkpoint("run", 3, {"sum": 4}, A)
    displaced(world)
    before = everything()
    for act in FENCED.values():
        with pytest.raises(FenceLostError):
            act(journal, A)
    assert everything() == before
    assert journal.emit_durable(event(), B) == Accepted(4, 4)
    assert journal.compact("run", B).checkpoint_seq == 3


@pytest.mark.conformance(120)
def test_a_steal_in_the_same_transaction_counts_already(database_world):
    world = database_world
    journal = Journal(clock=world.clock, arbiter=world.arbiter)
    seen = world.active(A)
    facts = world.fact_names()

    def body():
        world.clock.advance(31_000)
        stolen = world.steal(B, seen)
        assert world.store.activate("run", B, stolen.claimed_at_ms, seen).code == "activated"
        return journal.emit_durable(event(), A)

    with pytest.raises(FenceLostError):
        journal.transact(body)
    assert not journal.entries("run").entries
    # Leaving the block by an exception rolls it back, the steal included.
    assert world.store.get("run").snapshot == seen
    assert world.fact_names() == facts


@pytest.mark.conformance(121)
@pytest.mark.django_db(transaction=True)
def test_without_the_table_of_the_leases_nothing_is_appended():
    world = World()
    world.active(A)
    journal = Journal(clock=world.clock, arbiter=world.arbiter)
    with table_hidden("runstore_run"):
        for operation in (
            lambda: world.store.heartbeat("run", A, 0),
            lambda: world.store.transition_owned("run", A, "running"),
        ):
            with pytest.raises(RunPersistenceFailed) as failed:
                operation()
            assert failed.value.__cause__ is not None
        with pytest.raises(SinkFailed) as caught:
            journal.emit_durable(event(), A)
    assert caught.value.code == "sink_failed"
    assert isinstance(caught.value.__cause__, DatabaseFailure)
    assert not journal.entries("run").entries


class Failing(DatabaseArbiter):
    """An arbiter whose own storage is away."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def decide(self, *_: object, **__: object):
        raise self.error


def busy() -> RunPersistenceFailed:
    error = RunPersistenceFailed("heartbeat", "the leases of db-1 are locked")
    error.__cause__ = DatabaseFailure("busy")
    return error


FAILURES = {
    "io": OSError("host db-1 is gone"),
    "unknown": OperationalError("the leases of db-1 are not there"),
    "busy": busy(),
}


@pytest.mark.conformance(121)
@pytest.mark.parametrize("act", FENCED.values(), ids=FENCED)
@pytest.mark.parametrize("code", FAILURES)
def test_an_arbiter_that_fails_is_a_failed_guard(prepared, world, act, code, monkeypatch):
    pauses: list[float] = []
    monkeypatch.setattr("django_runstore.db.boundary.time.sleep", pauses.append)
    before = everything()
    broken = Journal(clock=world.clock, arbiter=Failing(FAILURES[code]))
    with pytest.raises(SinkFailed) as caught:
        act(broken, A)
    assert str(caught.value).endswith(": consensus guard failed")
    assert caught.value.__cause__.code == code
    assert caught.value.__context__ is None
    assert "db-1" not in repr(caught.value)
    # In a test's transaction, whose own outermost write is the only one that may try again.
    assert pauses == []
    assert everything() == before


@pytest.mark.django_db(transaction=True)
def test_a_guard_that_failed_with_io_lets_go_of_the_connection():
    world = World()
    world.active(A)
    with pytest.raises(SinkFailed):
        Journal(clock=world.clock, arbiter=Failing(FAILURES["unknown"])).emit_durable(event(), A)
    assert connection.connection is not None
    with pytest.raises(SinkFailed):
        Journal(clock=world.clock, arbiter=Failing(FAILURES["io"])).emit_durable(event(), A)
    assert connection.connection is None


@pytest.mark.django_db(transaction=True)
def test_a_guard_that_was_busy_is_asked_again(monkeypatch):
    world = World()
    world.active(A)
    monkeypatch.setattr("django_runstore.db.boundary.time.sleep", lambda _: None)

    class BusyTwice(DatabaseArbiter):
        left = 2

        def decide(self, *arguments: object, **options: object):
            if self.left:
                self.left -= 1
                raise busy()
            return super().decide(*arguments, **options)

    journal = Journal(clock=world.clock, arbiter=BusyTwice())
    assert journal.emit_durable(event(), A) == Accepted(0, 0)


@pytest.mark.conformance(122)
@pytest.mark.parametrize("act", FENCED.values(), ids=FENCED)
def test_an_arbiter_that_knows_no_owner_lets_nobody_append(prepared, world, act):
    with pytest.raises(FenceLostError):
        act(Journal(clock=world.clock, arbiter=NullArbiter()), A)


@pytest.mark.conformance(210)
def test_only_the_holder_appends(world, journal):
    world.active(A)
    assert journal.emit_durable(event(), A) == Accepted(0, 0)
    for owner in (B, OwnerId("", 101, "owner-a"), OwnerId("host-a", 101, ""), OwnerId("", 0, "")):
        for act in FENCED.values():
            with pytest.raises(FenceLostError):
                act(journal, owner)
    assert [entry.seq for entry in journal.entries("run").entries] == [0]


MALFORMED = {
    "fractional pid": OwnerId("host-a", 101.5, "owner-a"),
    "whole float pid": OwnerId("host-a", 101.0, "owner-a"),
    "nan pid": OwnerId("host-a", float("nan"), "owner-a"),
    "infinite pid": OwnerId("host-a", float("inf"), "owner-a"),
    "negative pid": OwnerId("host-a", -1, "owner-a"),
    "bool pid": OwnerId("host-a", True, "owner-a"),
    "no host": OwnerId(None, 101, "owner-a"),
    "no nonce": OwnerId("host-a", 101, None),
    "null": None,
    "dict": {"host_id": "host-a", "pid": 101, "nonce": "owner-a"},
    "nothing in it": object.__new__(OwnerId),
}


@pytest.mark.conformance(210, "D13")
@pytest.mark.parametrize("operation", FENCED)
@pytest.mark.parametrize("owner", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_owner_is_invalid_and_nothing_is_written(prepared, operation, owner):
    before = everything()
    with pytest.raises(InvalidEvent) as caught:
        FENCED[operation](prepared, owner)
    assert str(caught.value) == (
        f"invalid_event: Journal.{operation}: {operation} requires a well-formed owner fence"
    )
    assert everything() == before


@pytest.mark.conformance(210)
@pytest.mark.parametrize("operation", FENCED)
def test_an_absent_owner_is_a_call_that_python_refuses(prepared, operation):
    before = everything()
    arguments = {
        "emit_durable": [event()],
        "checkpoint": ["run", 0, {}],
        "compact": ["run"],
    }
    with pytest.raises(TypeError, match="owner"):
        getattr(prepared, operation)(*arguments[operation])
    assert everything() == before


@pytest.mark.parametrize("owner", [OwnerId("x" * 10**6, 1, "\0"), OwnerId("\ud800", 10**5000, "n")])
def test_the_error_names_an_owner_that_no_run_can_have_without_its_values(prepared, owner):
    with pytest.raises(FenceLostError) as caught:
        prepared.emit_durable(event(), owner)
    assert len(str(caught.value)) < 200
    str(caught.value).encode()


def loses_by_release(world: World) -> OwnerId:
    world.store.transition_owned("run", A, "suspended")
    return A


def loses_to_another_pid(world: World) -> OwnerId:
    return OwnerId(A.host_id, A.pid + 1, A.nonce)


@pytest.mark.conformance(211)
@pytest.mark.parametrize("lose", [loses_by_release, loses_to_another_pid])
def test_a_retry_by_the_holder_is_a_duplicate_and_by_a_zombie_a_lost_fence(prepared, world, lose):
    assert prepared.emit_durable(event(source_seq=0), A) == Duplicate(0, 0)
    zombie = lose(world)
    before = everything()
    for act in (
        lambda: prepared.emit_durable(event(), zombie),
        lambda: prepared.emit_durable(event(source_seq=0), zombie),
        lambda: prepared.emit_durable(event(source_seq=0, payload="other"), zombie),
        lambda: prepared.checkpoint("run", 0, {}, zombie),
        lambda: prepared.checkpoint("run", 99, {}, zombie),
        lambda: prepared.compact("run", zombie),
        lambda: prepared.compact("run", zombie, up_to=99),
    ):
        with pytest.raises(FenceLostError) as caught:
            act()
        assert str(caught.value).endswith(
            f": run run is no longer owned by host-a:{zombie.pid}:owner-a"
        )
    assert everything() == before


def test_a_stealers_pending_claim_leaves_the_owner_its_journal(prepared, world):
    seen = world.store.get("run").snapshot
    world.clock.advance(31_000)
    assert world.steal(B, seen).code == "claimed"
    assert prepared.emit_durable(event(), A).code == "accepted"
    with pytest.raises(FenceLostError):
        prepared.emit_durable(event(), B)


@pytest.mark.conformance("D9")
@pytest.mark.parametrize("act", FENCED.values(), ids=FENCED)
def test_another_grant_of_the_same_owner_has_lost_its_fence(prepared, world, act):
    world.store.transition_owned("run", A, "suspended", fence=1)
    assert world.store.claim_and_own("run", world.store.get("run"), A).fence == 2
    before = everything()
    with pytest.raises(FenceLostError, match=r"under fence 1$"):
        act(prepared, A, fence=1)
    assert everything() == before
    act(prepared, A, fence=2)


@pytest.mark.conformance("D9")
@pytest.mark.parametrize("act", FENCED.values(), ids=FENCED)
def test_the_arbiter_is_asked_about_owner_and_grant(prepared, world, act):
    asked: list[object] = []

    class Recording(DatabaseArbiter):
        def decide(self, run_id: str, lease: object, request: object, **options: object):
            asked.append(request)
            return super().decide(run_id, lease, request, **options)

    act(Journal(clock=world.clock, arbiter=Recording()), A, fence=1)
    assert asked == [AskGuard(A, 1)]


@pytest.mark.parametrize("act", FENCED.values(), ids=FENCED)
def test_a_lease_over_a_row_that_records_somebody_else_is_no_ownership(db, act):
    world = World(LocalArbiter())
    world.active(A)
    journal = Journal(clock=world.clock, arbiter=world.arbiter)
    journal.emit_durable(event(), A)
    journal.checkpoint("run", 0, {}, A)
    update_raw("run", owner_nonce="owner-b")
    before = everything()
    for owner in (A, OwnerId(A.host_id, A.pid, "owner-b")):
        with pytest.raises(FenceLostError):
            act(journal, owner)
    assert everything() == before


@pytest.mark.parametrize("operation", FENCED)
@pytest.mark.parametrize("fence", [-1, 1.0, True, "1", 2**53])
def test_a_malformed_grant_is_invalid(prepared, operation, fence):
    with pytest.raises(InvalidEvent, match="requires a well-formed owner fence"):
        FENCED[operation](prepared, A, fence=fence)


def test_a_fence_guards_a_companion_too(prepared, world):
    displaced(world)
    with pytest.raises(FenceLostError):
        prepared.emit_durable(event(companion="audit"), A)
    with pytest.raises(FenceLostError):
        prepared.compact("run", A, companion="run-store")
    assert prepared.emit_durable(event(companion="audit"), B) == Accepted(0, 0)


def test_a_lost_fence_in_a_block_leaves_the_block_usable(prepared, world):
    displaced(world)
    with transaction.atomic():
        prepared.emit_durable(event(event_type="before"), B)
        with pytest.raises(FenceLostError):
            prepared.emit_durable(event(event_type="lost"), A)
        prepared.emit_durable(event(event_type="after"), B)
    kept = JournalEntry.objects.filter(companion="").order_by("seq")
    assert [*kept.values_list("event_type", flat=True)] == ["sent", "sent", "before", "after"]
