"""Spec 8.8: checkpoints, and what is kept of the entries below one."""

import json
from hashlib import sha256

import pytest

from django_runstore import Journal
from django_runstore.errors import (
    CheckpointInvalid,
    Compacted,
    IdempotencyConflict,
    InvalidEvent,
    ReaderBehind,
)
from django_runstore.events import CheckpointRecord, Compaction
from django_runstore.models import JournalCheckpoint, JournalDedup, JournalEntry
from django_runstore.outcomes import Accepted, Duplicate
from django_runstore.services.journal import compacting
from tests.conformance.journal.sample import event, everything
from tests.conformance.world import A, World


@pytest.fixture
def five(world: World, journal: Journal) -> Journal:
    """Five entries of one source, numbered ten times their sequence."""
    world.active(A)
    for number in range(5):
        journal.emit_durable(event(source_seq=10 * number, payload=number), A)
    return journal


def left(companion: str = "") -> list[int]:
    entries = JournalEntry.objects.filter(run_id="run", companion=companion)
    return list(entries.order_by("seq").values_list("seq", flat=True))


def test_a_checkpoint_is_returned_as_it_was_stored(world, five):
    world.clock.set(500)
    state = {"sum": 6, "secret": "kept"}
    stored = five.checkpoint("run", 3, state, A)
    assert stored == CheckpointRecord("run", "", 3, state, 500, None)
    assert five.latest_checkpoint("run") == stored


def test_the_state_is_stored_as_it_is_and_not_redacted(five):
    five.checkpoint("run", 3, {"b": 1.0, "a": "password=abc"}, A)
    assert JournalCheckpoint.objects.get().state_json == '{"b":1.0,"a":"password=abc"}'


def test_the_latest_checkpoint_is_the_one_with_the_highest_sequence(five):
    assert five.latest_checkpoint("run") is None
    five.checkpoint("run", 3, "late", A)
    five.checkpoint("run", 1, "early", A)
    assert five.latest_checkpoint("run").state == "late"
    assert five.latest_checkpoint("run", companion="audit") is None
    assert five.latest_checkpoint("other") is None


def test_a_second_checkpoint_at_the_same_place_replaces_the_first(world, five):
    five.checkpoint("run", 3, "first", A)
    world.clock.set(900)
    assert five.checkpoint("run", 3, "second", A).created_at_ms == 900
    assert JournalCheckpoint.objects.count() == 1
    assert five.latest_checkpoint("run") == CheckpointRecord("run", "", 3, "second", 900, None)


@pytest.mark.parametrize("seq", [5, 99, 2**53 - 2])
def test_a_checkpoint_must_name_a_committed_entry(five, seq):
    before = everything()
    with pytest.raises(CheckpointInvalid) as caught:
        five.checkpoint("run", seq, {}, A)
    assert caught.value.code == "checkpoint_invalid"
    assert everything() == before


@pytest.mark.parametrize("seq", [0, 2, 3])
def test_a_checkpoint_must_lie_above_the_floor(five, seq):
    five.checkpoint("run", 3, {}, A)
    five.compact("run", A)
    before = everything()
    with pytest.raises(CheckpointInvalid):
        five.checkpoint("run", seq, {}, A)
    assert everything() == before
    assert five.checkpoint("run", 4, {}, A).seq == 4


@pytest.mark.parametrize("seq", [-1, 1.0, True, None, "1", 2**53 - 1])
def test_the_place_of_a_checkpoint_is_a_sequence(five, seq):
    with pytest.raises(InvalidEvent, match="seq must be an integer from 0 to 9007199254740990"):
        five.checkpoint("run", seq, {}, A)


@pytest.mark.parametrize(
    ("state", "complaint"),
    [
        (float("nan"), "contains a non-finite number"),
        ({1: 2}, "contains an unbounded or ill-formed object key"),
        (b"", "contains a non-JSON bytes"),
        ("\ud800", "contains unbounded or ill-formed text"),
    ],
)
def test_a_state_that_cannot_be_stored_as_it_is_is_invalid(five, state, complaint):
    before = everything()
    with pytest.raises(InvalidEvent) as caught:
        five.checkpoint("run", 3, state, A)
    assert str(caught.value) == f"invalid_event: Journal.checkpoint: state {complaint}"
    assert caught.value.__context__ is None
    assert everything() == before


# --- compaction -------------------------------------------------------------------------------


def test_compaction_deletes_the_entries_below_and_keeps_the_one_at_the_checkpoint(world, five):
    five.checkpoint("run", 3, "sum", A)
    world.clock.set(700)
    assert five.compact("run", A) == Compaction("run", "", 3, 3)
    assert left() == [3, 4]
    assert five.latest_checkpoint("run") == CheckpointRecord("run", "", 3, "sum", 0, 700)


def test_the_entry_at_the_checkpoint_keeps_the_floor_of_allocation(five):
    five.checkpoint("run", 4, {}, A)
    five.compact("run", A)
    assert five.emit_durable(event(), A) == Accepted(5, 41)


def test_the_identity_of_a_deleted_event_is_kept_with_a_digest_of_its_content(five):
    five.checkpoint("run", 1, {}, A)
    five.compact("run", A)
    (kept,) = JournalDedup.objects.all()
    text = json.dumps(["sent", "0", "null"], separators=(",", ":"))
    assert (kept.run_id, kept.companion, kept.source_seq, kept.seq) == ("run", "", 0, 0)
    assert bytes(kept.source_hash) == sha256(b"shop").digest()
    assert bytes(kept.content_hash) == sha256(text.encode()).digest()


@pytest.mark.parametrize("fenced", [True, False])
def test_after_compaction_a_retry_is_still_a_duplicate_and_other_content_a_conflict(five, fenced):
    five.checkpoint("run", 3, {}, A)
    five.compact("run", A)
    emit = (lambda sent: five.emit_durable(sent, A)) if fenced else five.emit_durable_unfenced
    before = everything()
    assert emit(event(source_seq=20, payload=2)) == Duplicate(2, 20)
    assert emit(event(source_seq=20, payload="x", dedupe="identity")) == Duplicate(2, 20)
    with pytest.raises(IdempotencyConflict):
        emit(event(source_seq=20, payload="x"))
    assert everything() == before


def test_numbers_of_a_source_are_counted_on_from_deleted_ones(five):
    five.emit_durable(event(source_id="other"), A)
    five.checkpoint("run", 5, {}, A)
    five.compact("run", A)
    assert five.emit_durable(event(), A) == Accepted(6, 41)


def test_compacting_again_to_the_same_checkpoint_deletes_nothing(world, five):
    five.checkpoint("run", 3, {}, A)
    five.compact("run", A)
    world.clock.advance(1)
    before = everything()
    assert five.compact("run", A) == Compaction("run", "", 3, 0)
    assert five.compact("run", A, up_to=3) == Compaction("run", "", 3, 0)
    assert everything() == before


def test_older_checkpoints_are_deleted_and_newer_ones_kept(five):
    for seq in (1, 2, 4):
        five.checkpoint("run", seq, seq, A)
    assert five.compact("run", A, up_to=2) == Compaction("run", "", 2, 2)
    kept = JournalCheckpoint.objects.order_by("seq").values_list("seq", "compacted_at_ms")
    assert list(kept) == [(2, 0), (4, None)]
    assert five.compact("run", A) == Compaction("run", "", 4, 2)
    with pytest.raises(Compacted) as caught:
        five.entries("run", 2)
    assert caught.value.checkpoint_seq == 4


@pytest.mark.parametrize("up_to", [None, 2])
def test_without_a_checkpoint_nothing_is_compacted(five, up_to):
    five.checkpoint("run", 3, {}, A) if up_to else None
    before = everything()
    with pytest.raises(CheckpointInvalid):
        five.compact("run", A, up_to=up_to)
    assert everything() == before


@pytest.mark.parametrize("up_to", [-1, 1.0, True, "1", 2**53 - 1])
def test_the_place_to_compact_to_is_a_sequence(five, up_to):
    with pytest.raises(InvalidEvent, match="up_to must be an integer"):
        five.compact("run", A, up_to=up_to)


def test_a_stream_of_more_than_one_batch_is_compacted_whole(five, monkeypatch):
    monkeypatch.setattr(compacting, "ENTRIES_AT_ONCE", 2)
    five.checkpoint("run", 4, {}, A)
    assert five.compact("run", A).deleted == 4
    assert left() == [4]
    assert JournalDedup.objects.count() == 4


def test_a_compaction_touches_only_its_stream(world, five):
    world.active(A, "other")
    five.emit_durable(event(run_id="other"), A)
    five.emit_durable(event(companion="audit"), A)
    five.checkpoint("run", 4, {}, A)
    five.compact("run", A)
    assert (left("audit"), left("run-store")) == ([0], [0, 1])
    assert len(five.entries("other").entries) == 1


def test_a_companion_can_be_compacted_and_the_store_goes_on_writing_it(world, five):
    five.checkpoint("run", 1, {}, A, companion="run-store")
    assert five.compact("run", A, companion="run-store") == Compaction("run", "run-store", 1, 1)
    world.store.transition_owned("run", A, "completed")
    assert left("run-store") == [1, 2]
    assert left() == [0, 1, 2, 3, 4]


# --- readers --------------------------------------------------------------------------------


def test_a_live_reader_that_is_behind_keeps_what_it_needs(five):
    five.checkpoint("run", 3, {}, A)
    reader = five.follow("run")
    assert [next(reader).seq for _ in range(2)] == [0, 1]
    before = everything()
    with pytest.raises(ReaderBehind) as caught:
        five.compact("run", A)
    assert (caught.value.code, caught.value.checkpoint_seq) == ("reader_behind", 3)
    assert everything() == before
    assert next(reader).seq == 2
    assert five.compact("run", A).deleted == 3
    assert [next(reader).seq for _ in range(2)] == [3, 4]


def test_a_reader_that_left_keeps_nothing(five):
    five.checkpoint("run", 3, {}, A)
    reader = five.follow("run")
    next(reader)
    reader.close()
    assert five.compact("run", A).deleted == 3


@pytest.mark.parametrize("other", [{"companion": "run-store"}, {"run_id": "other"}])
def test_a_reader_of_another_stream_keeps_nothing(world, five, other):
    world.active(A, "other")
    five.emit_durable(event(run_id="other"), A)
    five.checkpoint("run", 3, {}, A)
    reader = five.follow(**{"run_id": "run", **other})
    next(reader)
    assert five.compact("run", A).deleted == 3
    reader.close()
