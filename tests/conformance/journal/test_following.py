"""Spec 8.7 stream: replay, then follow; nothing missed, nothing rolled back, nothing kept open."""

import asyncio
import gc
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection, connections, transaction

from django_runstore import Journal
from django_runstore.db.listening import Listener
from django_runstore.errors import Compacted, InvalidEvent, ReadFailed
from django_runstore.events import EntryRecord
from django_runstore.services.journal import following, streams
from tests.conformance.journal.sample import event
from tests.conformance.race import race
from tests.conformance.world import A, World

pytestmark = pytest.mark.django_db(transaction=True)

DEADLINE_SECONDS = 60


@pytest.fixture
def journal() -> Journal:
    world = World()
    world.active(A)
    return Journal(clock=world.clock, arbiter=world.arbiter)


def emit(journal: Journal, *payloads: object, **fields: Any) -> None:
    for payload in payloads:
        journal.emit_durable(event(payload=payload, **fields), A)


def taken(entries: Iterator[EntryRecord], count: int) -> list[object]:
    return [entry.payload for entry in itertools.islice(entries, count)]


def meanwhile(action: Callable[[], object]) -> threading.Thread:
    """Act on another connection, in a thread that has to be joined."""

    def act() -> None:
        try:
            action()
        finally:
            connections.close_all()

    thread = threading.Thread(target=act)
    thread.start()
    return thread


class Pauses:
    """Stands for the waiting: what happens in each pause, and how long each was to be."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[float] = []
        self.happening: list[Callable[[], object]] = []
        monkeypatch.setattr(Listener, "pause", lambda _, seconds: self.pause(seconds))

    def pause(self, seconds: float) -> None:
        self.asked.append(seconds)
        self.happening.pop(0)()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    return Pauses(monkeypatch)


def test_what_is_there_is_replayed_page_by_page_without_a_pause(journal, pauses):
    emit(journal, *range(7))
    with closing(journal.follow("run", page_size=2)) as entries:
        assert taken(entries, 7) == list(range(7))


def test_a_cursor_says_after_what_to_begin(journal):
    emit(journal, *range(4))
    with closing(journal.follow("run", 1)) as entries:
        assert [entry.seq for entry in itertools.islice(entries, 2)] == [2, 3]


def test_what_is_committed_later_is_followed(journal, pauses):
    pauses.happening = [
        lambda: emit(journal, "b", "c"),
        lambda: None,
        lambda: emit(journal, "d"),
    ]
    emit(journal, "a")
    with closing(journal.follow("run")) as entries:
        assert taken(entries, 4) == ["a", "b", "c", "d"]
    assert pauses.happening == []


def test_only_the_wanted_types_are_followed(journal, pauses):
    emit(journal, *range(5), event_type="other")
    pauses.happening = [
        lambda: emit(journal, "x", event_type="other"),
        lambda: emit(journal, "y"),
    ]
    with closing(journal.follow("run", event_types=["sent"])) as entries:
        (found,) = itertools.islice(entries, 1)
    assert (found.payload, found.seq) == ("y", 6)


def test_an_entry_that_comes_between_a_page_and_the_end_of_the_stream_is_not_passed_over(
    journal, pauses, monkeypatch
):
    read, meanwhile = Journal._page, [lambda: emit(journal, "x")]

    def page_and_then(self, *arguments):
        page = read(self, *arguments)
        while meanwhile:
            meanwhile.pop()()
        return page

    monkeypatch.setattr(Journal, "_page", page_and_then)
    emit(journal, *range(3), event_type="other")
    pauses.happening = [lambda: emit(journal, "y")]
    with closing(journal.follow("run", event_types=["sent"])) as entries:
        assert taken(entries, 2) == ["x", "y"]


def test_entries_of_other_types_are_passed_over_and_can_be_compacted(journal, pauses):
    emit(journal, *range(5), event_type="other")
    journal.checkpoint("run", 4, {}, A)
    pauses.happening = [lambda: journal.compact("run", A), lambda: emit(journal, "x")]
    with closing(journal.follow("run", event_types=["sent"])) as entries:
        assert taken(entries, 1) == ["x"]
    assert [entry.seq for entry in journal.entries("run", 3).entries] == [4, 5]


def test_a_companion_is_followed(journal):
    with closing(journal.follow("run", companion="run-store")) as entries:
        facts = [entry.event_type for entry in itertools.islice(entries, 2)]
    assert facts == ["runstore.ownership.claimed", "runstore.ownership.activated"]


def test_pauses_are_jittered_between_half_and_the_whole_of_the_interval(journal, pauses):
    pauses.happening = [*[lambda: None] * 50, lambda: emit(journal, "end")]
    with closing(journal.follow("run", poll_interval_ms=800)) as entries:
        assert taken(entries, 1) == ["end"]
    assert all(0.4 <= seconds <= 0.8 for seconds in pauses.asked)
    assert len(set(pauses.asked)) > 40


# --- really waiting -----------------------------------------------------------------------------

# As long as polling may take on SQLite; on PostgreSQL a notice has to come before.
INTERVAL_MS = {"sqlite": 20, "postgresql": 1_000 * 10 * DEADLINE_SECONDS}[connection.vendor]


def test_a_reader_that_waits_is_handed_what_another_connection_commits(journal):
    emit(journal, "first")
    with closing(journal.follow("run", poll_interval_ms=INTERVAL_MS)) as entries:
        assert taken(entries, 1) == ["first"]
        for number in range(3):
            thread = meanwhile(lambda number=number: emit(journal, number))
            assert taken(entries, 1) == [number]
            thread.join(DEADLINE_SECONDS)


def test_what_is_rolled_back_is_never_handed_out(journal):
    with closing(journal.follow("run", poll_interval_ms=INTERVAL_MS)) as entries:
        emit(journal, "before")
        assert taken(entries, 1) == ["before"]

        def write() -> None:
            with transaction.atomic():
                emit(journal, "rolled back")
                transaction.set_rollback(True)
            with transaction.atomic():
                with transaction.atomic():
                    emit(journal, "in a savepoint")
                    transaction.set_rollback(True)
                emit(journal, "after")

        thread = meanwhile(write)
        (entry,) = itertools.islice(entries, 1)
        thread.join(DEADLINE_SECONDS)
    assert (entry.payload, entry.seq) == ("after", 1)


def test_the_async_twin_is_handed_the_same(journal):
    emit(journal, "first")

    async def follow() -> list[object]:
        found = []
        async with aclosing(journal.afollow("run", poll_interval_ms=INTERVAL_MS)) as entries:
            async for entry in entries:
                found.append(entry.payload)
                if len(found) == 3:
                    break
                # From a connection that is not the reader's.
                await sync_to_async(race, thread_sensitive=False)(lambda: emit(journal, len(found)))
        return found

    assert async_to_sync(follow)() == ["first", 1, 2]


def test_a_cancelled_async_reader_leaves_nothing_behind(journal):
    waiting = asyncio.Event()

    async def follow() -> None:
        async for _ in journal.afollow("run", poll_interval_ms=INTERVAL_MS):
            waiting.set()

    async def cancel() -> None:
        task = asyncio.create_task(follow())
        await asyncio.wait_for(waiting.wait(), DEADLINE_SECONDS)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    emit(journal, "first")
    async_to_sync(cancel)()
    gc.collect()
    assert streams._readers == set()


# --- what is left behind ------------------------------------------------------------------------


def sessions() -> int:
    """Sessions of other connections than this one, on the database under test."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return cursor.fetchone()[0]


def until(condition: Callable[[], bool]) -> None:
    """Wait for what another process does soon."""
    give_up = threading.Event()
    threading.Timer(DEADLINE_SECONDS, give_up.set).start()
    while not condition():
        assert not give_up.is_set()
    give_up.set()


@pytest.mark.parametrize("leave", ["close", "forget"])
def test_a_consumer_that_stops_leaves_no_reader_and_no_session(journal, leave):
    before = sessions() if connection.vendor == "postgresql" else None
    emit(journal, "first")
    entries = journal.follow("run", poll_interval_ms=10)
    assert taken(entries, 1) == ["first"]
    thread = meanwhile(lambda: emit(journal, "second"))
    assert taken(entries, 1) == ["second"]
    thread.join(DEADLINE_SECONDS)
    assert len(streams._readers) == 1
    if before is not None:
        until(lambda: sessions() == before + 1)
    if leave == "close":
        entries.close()
    else:
        del entries
        gc.collect()
    assert streams._readers == set()
    if before is not None:
        until(lambda: sessions() == before)


def test_a_reader_that_was_never_begun_is_none(journal):
    entries = journal.follow("run")
    assert streams._readers == set()
    entries.close()


def test_between_two_entries_no_transaction_is_open(journal):
    emit(journal, "first", "second")
    with closing(journal.follow("run", page_size=1)) as entries:
        next(entries)
        assert not connection.in_atomic_block
        if connection.vendor == "postgresql":
            status = connection.connection.info.transaction_status.name
            assert status == "IDLE"


# --- where it is refused, and what it raises ----------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("run_id", ""),
        ("after", -2),
        ("event_types", []),
        ("companion", None),
        ("page_size", 0),
        ("page_size", 10_001),
        ("poll_interval_ms", 0),
        ("poll_interval_ms", 1.5),
    ],
)
@pytest.mark.parametrize("method", ["follow", "afollow"])
def test_bad_arguments_are_refused_by_the_call_itself(journal, method, field, value):
    with pytest.raises(InvalidEvent):
        getattr(journal, method)(**{"run_id": "run", field: value})


def test_inside_a_block_nothing_is_handed_out(journal):
    with transaction.atomic():
        emit(journal, "may be rolled back")
        with pytest.raises(RuntimeError, match=r"Journal\.follow was used inside a transaction"):
            next(journal.follow("run"))
        transaction.set_rollback(True)


def test_a_reader_that_was_begun_outside_is_refused_inside_too(journal):
    emit(journal, "first")
    entries = journal.follow("run")
    next(entries)
    with transaction.atomic(), pytest.raises(RuntimeError):
        next(entries)


def test_in_a_transaction_without_autocommit_nothing_is_handed_out(journal):
    transaction.set_autocommit(False)
    try:
        with pytest.raises(RuntimeError):
            next(journal.follow("run"))
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)


@pytest.mark.django_db(transaction=False)
def test_the_transaction_of_a_test_case_counts_as_none(journal):
    emit(journal, "first")
    with closing(journal.follow("run")) as entries:
        assert taken(entries, 1) == ["first"]


def test_a_cursor_below_the_floor_is_compacted(journal):
    emit(journal, *range(4))
    journal.checkpoint("run", 3, {}, A)
    journal.compact("run", A)
    with pytest.raises(Compacted) as caught:
        next(journal.follow("run", 1))
    assert caught.value.checkpoint_seq == 3
    with closing(journal.follow("run", 2)) as entries:
        assert taken(entries, 1) == [3]


def test_a_database_that_fails_ends_the_reader(journal, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError("db-1 is gone")

    monkeypatch.setattr(following.Following, "_floor", fail)
    with pytest.raises(ReadFailed) as caught:
        next(journal.follow("run"))
    assert "db-1" not in str(caught.value)
    assert streams._readers == set()
