"""
Entries of a stream become visible in the order of their sequence, whoever appends them.

Two real connections, the second watched while it waits for the first.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections, transaction

from django_runstore import Journal, RunStore
from django_runstore.errors import SequenceConflict, SinkFailed
from django_runstore.models import JournalEntry
from django_runstore.outcomes import Accepted, Duplicate
from django_runstore.services.journal import emitting
from django_runstore.snapshots import OwnedTransition, RunNote
from tests.conformance.journal.sample import event
from tests.conformance.world import A, B, World

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.postgres("another transaction can be watched while it waits"),
]

DEADLINE_SECONDS = 60


@pytest.fixture
def journal() -> Journal:
    world = World()
    world.active(A)
    return Journal(clock=world.clock, arbiter=world.arbiter)


class Second:
    """What another connection does, and what came of it."""

    def __init__(self, action: Callable[[], Any]) -> None:
        self._action = action
        self.answers: list[Any] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.answers.append(self._action())
        except Exception as error:  # noqa: BLE001 - shown by the assertions
            self.answers.append(error)
        finally:
            connections.close_all()

    def waits(self, kind: str = "%") -> None:
        """Return when it waits for a lock, of this kind, of this transaction."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            assert self.answers == []
            with connection.cursor() as cursor:
                # Not pg_stat_activity, which stands still in a transaction.
                cursor.execute(
                    "SELECT count(*) FROM pg_locks "
                    "WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid)) "
                    "AND locktype LIKE %s",
                    [kind],
                )
                if cursor.fetchone()[0]:
                    return
            assert time.monotonic() < deadline

    def answer(self) -> Any:
        self._thread.join(DEADLINE_SECONDS)
        (answer,) = self.answers
        return answer


def note() -> Any:
    ending = OwnedTransition("run", 1, "running", note=RunNote("noted", {}))
    return RunStore().transition_many(A, [ending])


APPENDING = {
    "a fenced event": lambda journal: journal.emit_durable(event(), A),
    "an unfenced event": lambda journal: journal.emit_durable_unfenced(event()),
    "a note": lambda _: note(),
}


def types() -> list[str]:
    stored = JournalEntry.objects.filter(companion="").order_by("seq")
    return list(stored.values_list("event_type", flat=True))


@pytest.mark.parametrize("second", APPENDING.values(), ids=APPENDING)
@pytest.mark.parametrize("first", APPENDING.values(), ids=APPENDING)
@pytest.mark.parametrize("kept", [True, False], ids=["committed", "rolled back"])
def test_whoever_appends_second_waits_for_the_first_to_end(journal, first, second, kept):
    with transaction.atomic():
        first(journal)
        other = Second(lambda: second(journal))
        other.waits()
        transaction.set_rollback(not kept)
    assert not isinstance(other.answer(), Exception)
    sequences = JournalEntry.objects.filter(companion="").order_by("seq")
    assert [*sequences.values_list("seq", flat=True)] == ([0, 1] if kept else [0])


def test_a_change_of_hands_waits_for_the_first_to_end():
    world = World()
    world.pending()
    seen = world.store.get("run")
    with transaction.atomic():
        world.store.claim("run", seen, A, 0)
        world.store.abandon_claim("run", A, 0)
        other = Second(lambda: world.store.claim_and_own("run", seen, B, 0))
        other.waits()
    assert other.answer().code == "activated"
    assert world.fact_names() == ["claimed", "released", "claimed", "activated"]


@pytest.mark.parametrize("companion", ["", "audit"])
def test_events_for_a_run_that_is_not_there_wait_for_each_other(companion):
    journal, sent = Journal(), event(run_id="nobody", companion=companion)
    with transaction.atomic():
        assert journal.emit_durable_unfenced(sent) == Accepted(0, 0)
        other = Second(lambda: journal.emit_durable_unfenced(sent))
        # However many they are, none of them runs into the index.
        other.waits("advisory")
    assert other.answer() == Accepted(1, 1)


def test_events_for_other_runs_do_not_wait():
    journal = Journal()
    with transaction.atomic():
        journal.emit_durable_unfenced(event(run_id="nobody"))
        other = Second(lambda: journal.emit_durable_unfenced(event(run_id="nobody else")))
        assert other.answer() == Accepted(0, 0)


@pytest.mark.parametrize("companion", ["", "audit"])
def test_an_event_waits_for_one_that_came_before_its_run(companion):
    """The one has the lock of the stream, the other that of the row: the index keeps order."""
    world = World()
    journal = Journal(clock=world.clock, arbiter=world.arbiter)
    sent = event(companion=companion)
    with transaction.atomic():
        assert journal.emit_durable_unfenced(sent) == Accepted(0, 0)
        assert Second(lambda: world.active(A)).answer().owner == A
        other = Second(lambda: journal.emit_durable(sent, A))
        other.waits()
    assert other.answer() == Accepted(1, 1)
    assert journal.emit_durable(sent, A) == Accepted(2, 2)


def test_a_note_finds_room_behind_an_event_that_came_before_its_run():
    world = World()
    with transaction.atomic():
        Journal().emit_durable_unfenced(event())
        assert Second(lambda: world.active(A)).answer().owner == A
    assert world.columns()["journal_seq"] == 0
    note()
    assert types() == ["sent", "noted"]


@pytest.mark.parametrize("exists", [True, False])
def test_of_two_who_say_the_same_at_once_the_second_looks_again(journal, exists, monkeypatch):
    appends: list[None] = []
    append = Journal._append
    monkeypatch.setattr(Journal, "_append", lambda *all_: appends.append(None) or append(*all_))
    sent = event(run_id="run" if exists else "nobody", source_seq=4)
    with transaction.atomic():
        assert journal.emit_durable_unfenced(sent) == Accepted(0, 4)
        other = Second(lambda: journal.emit_durable_unfenced(sent))
        other.waits()
    assert other.answer() == Duplicate(0, 4)
    assert len(appends) == 1


def test_a_snapshot_that_hides_the_taken_sequence_is_a_conflict_that_ends(journal):
    """At REPEATABLE READ no new look shows what the index has: the transaction must begin anew."""
    conflicts: list[Exception] = []
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert not journal.entries("run", companion="audit").entries
        sent = event(companion="audit")
        assert Second(lambda: journal.emit_durable(sent, A)).answer() == Accepted(0, 0)
        with pytest.raises(SequenceConflict) as caught:
            journal.emit_durable(sent, A)
        conflicts.append(caught.value)
        # The block of the caller is whole.
        assert not journal.entries("run", companion="audit").entries
    assert conflicts[0].code == "sequence_conflict"
    assert journal.emit_durable(sent, A) == Accepted(1, 1)


def test_other_failures_are_not_tried_again(journal, monkeypatch):
    looks: list[None] = []

    def fail(*_: object) -> None:
        looks.append(None)
        raise OSError("gone")

    monkeypatch.setattr(emitting, "ends_of", fail)
    with pytest.raises(SinkFailed):
        journal.emit_durable(event(), A)
    assert len(looks) == 1
