"""Spec 8.4 transact and when_committed: committed together, delivered once, or not at all."""

import pytest
from django.db import OperationalError, transaction

from django_runstore import Journal, RunConstraint
from django_runstore.errors import SinkFailed
from django_runstore.models import JournalEntry, Run
from django_runstore.outcomes import Accepted, Transitioned
from tests.conformance.journal.sample import event
from tests.conformance.race import race
from tests.conformance.world import A, World
from tests.db.reopened import reopened, second_connection, write_lock_held_elsewhere

pytestmark = pytest.mark.django_db(transaction=True)


class Refused(Exception):  # noqa: N818 - a body's own
    pass


@pytest.fixture
def world() -> World:
    world = World()
    world.active(A)
    return world


@pytest.fixture
def journal(world: World) -> Journal:
    return Journal(clock=world.clock, arbiter=world.arbiter)


def types(journal: Journal) -> list[str]:
    return [entry.event_type for entry in journal.entries("run").entries]


def elsewhere(journal: Journal) -> list[str]:
    """What another connection sees."""
    (seen,) = race(lambda: types(journal))
    return seen


def test_state_and_events_are_committed_together_and_seen_by_nobody_before(world, journal):
    def body() -> str:
        assert world.store.transition_owned("run", A, "running", "1") == Transitioned()
        assert journal.emit_durable(event(), A) == Accepted(0, 0)
        assert types(journal) == ["sent"]
        assert elsewhere(journal) == []
        return "answer"

    assert journal.transact(body) == "answer"
    assert elsewhere(journal) == ["sent"]
    assert world.store.get("run").state_json == "1"


def test_a_body_that_raises_takes_everything_back_and_its_error_is_its_own(world, journal):
    def body() -> None:
        world.store.transition_owned("run", A, "running", "1")
        journal.emit_durable(event(), A)
        raise Refused

    with pytest.raises(Refused):
        journal.transact(body)
    assert types(journal) == []
    assert world.store.get("run").state_json == "{}"


def test_an_identity_that_was_rolled_back_may_be_emitted_again(journal):
    def body() -> None:
        assert journal.emit_durable(event(source_seq=7, payload="first"), A) == Accepted(0, 7)
        raise Refused

    with pytest.raises(Refused):
        journal.transact(body)
    assert journal.emit_durable(event(source_seq=7, payload="other"), A) == Accepted(0, 7)


def test_a_nested_body_is_a_savepoint(journal):
    def inner() -> None:
        journal.emit_durable(event(event_type="inner"), A)
        raise Refused

    def outer() -> None:
        journal.emit_durable(event(event_type="before"), A)
        with pytest.raises(Refused):
            journal.transact(inner)
        journal.emit_durable(event(event_type="after"), A)

    journal.transact(outer)
    assert types(journal) == ["before", "after"]


def test_an_emit_that_failed_leaves_the_block_of_its_caller_whole(world, journal):
    with transaction.atomic():
        journal.emit_durable(event(event_type="before"), A)
        with pytest.raises(RunConstraint):
            world.store.create("run", "{}")
        journal.emit_durable(event(event_type="after"), A)
    assert types(journal) == ["before", "after"]


def test_a_body_is_not_called_again(journal):
    calls: list[None] = []

    def body() -> None:
        calls.append(None)
        raise SinkFailed("emit_durable", "database operation failed")

    with pytest.raises(SinkFailed):
        journal.transact(body)
    assert len(calls) == 1


@pytest.mark.sqlite("cannot upgrade an old snapshot")
def test_a_body_has_the_write_lock_before_it_reads(journal):
    def body() -> None:
        locked = pytest.raises(OperationalError, match="locked")
        with second_connection(timeout=0) as other, other.cursor() as cursor, locked:
            cursor.execute("BEGIN IMMEDIATE")
        journal.emit_durable(event(), A)

    with reopened(transaction_mode="DEFERRED"):
        journal.transact(body)
    assert types(journal) == ["sent"]


@pytest.mark.sqlite("has one lock for all writers")
def test_a_database_that_stays_locked_is_a_failed_sink(journal, monkeypatch):
    monkeypatch.setattr("django_runstore.db.boundary.time.sleep", lambda _: None)
    with reopened(timeout=0), write_lock_held_elsewhere():
        with pytest.raises(SinkFailed) as caught:
            journal.emit_durable(event(), A)
        assert types(journal) == []
    assert caught.value.__cause__.code == "busy"
    assert caught.value.__context__ is None


# --- when_committed ---------------------------------------------------------------------------


def test_outside_a_transaction_an_update_runs_now(journal):
    done: list[str] = []
    assert journal.when_committed(lambda: done.append("now")) is True
    assert done == ["now"]


def test_in_a_transaction_an_update_runs_once_after_the_outermost_commit(journal):
    done: list[str] = []

    def body() -> None:
        assert journal.transact(lambda: journal.when_committed(lambda: done.append("then"))) is True
        assert done == []

    journal.transact(body)
    assert done == ["then"]


def test_what_was_rolled_back_has_no_update(journal):
    done: list[str] = []

    def body() -> None:
        journal.when_committed(lambda: done.append("then"))
        raise Refused

    def outer() -> None:
        with pytest.raises(Refused):
            journal.transact(body)

    journal.transact(outer)
    assert done == []


def test_in_a_transaction_that_django_knows_nothing_of_an_update_does_not_run(journal):
    done: list[str] = []
    transaction.set_autocommit(False)
    try:
        list(Run.objects.all())
        assert journal.when_committed(lambda: done.append("never")) is False
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)
    assert done == []


def test_without_autocommit_an_event_is_committed_with_the_transaction(journal):
    transaction.set_autocommit(False)
    try:
        journal.emit_durable(event(event_type="lost"), A)
        transaction.rollback()
        journal.emit_durable(event(event_type="kept"), A)
        transaction.commit()
    finally:
        transaction.set_autocommit(True)
    kept = JournalEntry.objects.filter(companion="")
    assert [*kept.values_list("event_type", flat=True)] == ["kept"]
