"""Spec 8.7 and conformance 212: pages, cursors, types, generations."""

import pytest

from django_runstore import Journal
from django_runstore.errors import (
    Compacted,
    DatabaseFailure,
    InvalidEvent,
    JournalDecodeFailed,
    ReadFailed,
)
from django_runstore.events import EntryPage, EntryRecord, Generation
from django_runstore.models import JournalCheckpoint, JournalEntry, JournalGeneration
from tests.conformance.journal.sample import event
from tests.conformance.world import A, World, owner_json
from tests.db.trigger_states import table_hidden


@pytest.fixture
def six(world: World, journal: Journal) -> Journal:
    """Six entries of two types, by turns."""
    world.active(A)
    for number in range(6):
        journal.emit_durable(event(event_type="ab"[number % 2], payload=number), A)
    return journal


def read(page: EntryPage) -> list[int]:
    return [entry.seq for entry in page.entries]


def test_entries_come_in_the_order_of_their_sequence(six):
    page = six.entries("run")
    assert (read(page), page.has_more) == ([0, 1, 2, 3, 4, 5], False)
    assert [entry.payload for entry in page.entries] == [0, 1, 2, 3, 4, 5]


def test_a_cursor_is_the_last_sequence_that_was_read(six):
    page = six.entries("run", limit=4)
    assert (read(page), page.has_more) == ([0, 1, 2, 3], True)
    page = six.entries("run", after=3, limit=4)
    assert (read(page), page.has_more) == ([4, 5], False)
    assert six.entries("run", after=5) == EntryPage((), has_more=False)
    assert read(six.entries("run", after=-1, limit=1)) == [0]


def test_a_page_that_ends_with_the_stream_has_no_more(six):
    assert six.entries("run", limit=6).has_more is False
    assert six.entries("run", limit=5).has_more is True


def test_types_are_exact_and_has_more_is_about_what_matches(six):
    assert read(six.entries("run", event_types=["a"])) == [0, 2, 4]
    assert read(six.entries("run", 0, ("a",), limit=1)) == [2]
    assert six.entries("run", 0, {"a"}, limit=2).has_more is False
    assert six.entries("run", 0, ["b"], limit=2).has_more is True
    assert read(six.entries("run", event_types=["a", "b"])) == [0, 1, 2, 3, 4, 5]
    assert read(six.entries("run", event_types=["A", "ab"])) == []


def test_a_run_without_entries_has_an_empty_page(six):
    assert six.entries("nobody") == EntryPage((), has_more=False)
    assert six.entries("run", companion="audit") == EntryPage((), has_more=False)


def test_ownership_facts_are_read_as_a_companion(six):
    page = six.entries("run", companion="run-store")
    assert [entry.event_type for entry in page.entries] == [
        *("runstore.ownership.claimed", "runstore.ownership.activated"),
    ]
    fact = page.entries[1]
    assert fact == EntryRecord(
        run_id="run",
        companion="run-store",
        seq=1,
        source_id="runstore",
        source_seq=1,
        emitted_at_ms=0,
        event_type="runstore.ownership.activated",
        payload={"run_id": "run", "owner": owner_json(A), "granted_at_ms": 0, "fence": 1},
        meta={"run_id": "run"},
    )


@pytest.mark.parametrize("limit", [0, -1, 10_001, 1.0, True, None, "1", 2**70])
def test_a_page_holds_1_to_10000_entries(journal, limit):
    with pytest.raises(InvalidEvent, match="limit must be an integer from 1 to 10000"):
        journal.entries("run", limit=limit)


def test_the_greatest_page_is_admitted(journal):
    assert journal.entries("run", limit=10_000).entries == ()


@pytest.mark.parametrize(
    "types", [[], [f"t{n}" for n in range(65)], "a", b"a", {"a": 1}, 1, [""], [None], ["\ud800"]]
)
def test_types_are_1_to_64_identifiers(journal, types):
    with pytest.raises(InvalidEvent, match="event_types must be"):
        journal.entries("run", event_types=types)


def test_64_types_are_admitted(journal):
    assert journal.entries("run", event_types=[f"t{n}" for n in range(64)]).entries == ()


@pytest.mark.parametrize("after", [-2, 1.0, True, "1", 2**53, float("nan")])
def test_a_cursor_is_a_sequence(journal, after):
    with pytest.raises(InvalidEvent, match="after must be a sequence"):
        journal.entries("run", after=after)


@pytest.mark.parametrize("run_id", ["", None, "a\0", "\ud800", "x" * 1_025, 1])
def test_a_run_id_is_durable_text(journal, run_id):
    for operation in (journal.entries, journal.latest_checkpoint, journal.generation):
        with pytest.raises(InvalidEvent, match="run_id must be well-formed durable text"):
            operation(run_id)


@pytest.mark.parametrize("companion", [None, "a\0", "ä" * 257, 1])
def test_a_companion_is_durable_text_of_512_bytes_or_empty(journal, companion):
    with pytest.raises(InvalidEvent, match="companion must be well-formed durable text of at most"):
        journal.entries("run", companion=companion)


# --- compacted ------------------------------------------------------------------------------


@pytest.fixture
def compacted(six: Journal) -> Journal:
    """The same, compacted to the entry at 3."""
    six.checkpoint("run", 3, {}, A)
    assert six.compact("run", A).deleted == 3
    return six


@pytest.mark.parametrize("after", [None, -1, 0, 1])
def test_a_cursor_below_the_floor_is_compacted_and_told_where_to_begin(compacted, after):
    with pytest.raises(Compacted) as caught:
        compacted.entries("run", after)
    assert (caught.value.code, caught.value.checkpoint_seq) == ("compacted", 3)
    assert compacted.latest_checkpoint("run").seq == 3


@pytest.mark.parametrize(("after", "left"), [(2, [3, 4, 5]), (3, [4, 5]), (5, [])])
def test_a_cursor_just_before_the_floor_misses_nothing_and_goes_on(compacted, after, left):
    assert read(compacted.entries("run", after)) == left


def test_a_checkpoint_that_was_not_compacted_to_is_no_floor(six):
    six.checkpoint("run", 3, {}, A)
    assert len(six.entries("run").entries) == 6


def test_a_compaction_of_the_stream_leaves_its_companions_alone(compacted):
    assert len(compacted.entries("run", companion="run-store").entries) == 2


def test_the_floor_is_read_after_the_page(six, monkeypatch):
    """A compaction between the two is noticed, and no page with a hole is handed out."""
    six.checkpoint("run", 3, {}, A)
    read_floor = Journal._floor

    def compacted_meanwhile(self, stream):
        monkeypatch.setattr(Journal, "_floor", read_floor)
        six.compact("run", A)
        return read_floor(self, stream)

    monkeypatch.setattr(Journal, "_floor", compacted_meanwhile)
    with pytest.raises(Compacted):
        six.entries("run", limit=2)


# --- what is broken -------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["payload_json", "meta_json"])
@pytest.mark.parametrize("text", ["", "{", "NaN", "[" * 10_000])
def test_a_corrupt_entry_is_named_and_not_quoted(six, column, text):
    JournalEntry.unguarded.filter(companion="", seq=2).update(**{column: text})
    with pytest.raises(JournalDecodeFailed) as caught:
        six.entries("run")
    assert str(caught.value) == "decode_failed: Journal.entries: could not decode journal entry"
    assert dict(caught.value.detail) == {"run_id": "run", "companion": "", "seq": 2}
    assert caught.value.__context__ is None
    assert read(six.entries("run", after=2)) == [3, 4, 5]


@pytest.mark.parametrize("text", ["{", "NaN"])
def test_a_corrupt_checkpoint_is_named_and_not_quoted(six, text):
    six.checkpoint("run", 2, {}, A)
    JournalCheckpoint.unguarded.update(state_json=text)
    with pytest.raises(JournalDecodeFailed, match="could not decode journal checkpoint"):
        six.latest_checkpoint("run")


@pytest.mark.conformance(212)
def test_a_stream_that_was_never_rewound_is_of_generation_nought(journal):
    assert journal.generation("run") == Generation(0, -1)


@pytest.mark.conformance(212)
def test_a_stored_generation_is_read_by_every_journal(journal):
    JournalGeneration.unguarded.create(run_id="run", generation=3, after_seq=17)
    assert journal.generation("run") == Journal().generation("run") == Generation(3, 17)
    assert journal.generation("other") == Generation(0, -1)


READS = {
    "entries": ("runstore_journal_entry", lambda journal: journal.entries("run")),
    "latest_checkpoint": (
        "runstore_journal_checkpoint",
        lambda journal: journal.latest_checkpoint("run"),
    ),
    "generation": ("runstore_journal_generation", lambda journal: journal.generation("run")),
}


@pytest.mark.conformance(212)
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("table", "operation"), READS.values(), ids=READS)
def test_a_database_that_fails_is_read_failed(table, operation):
    with table_hidden(table), pytest.raises(ReadFailed) as caught:
        operation(Journal())
    assert caught.value.code == "read_failed"
    assert isinstance(caught.value.__cause__, DatabaseFailure)
    assert "hidden" not in str(caught.value)
