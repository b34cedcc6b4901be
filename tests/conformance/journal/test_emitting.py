"""Spec 8.1, 8.3 and 8.4: what is appended, where, and what a second event of the same is."""

import hashlib
import json

import pytest

from django_runstore import Journal
from django_runstore.durable import MAX_SAFE_INTEGER
from django_runstore.errors import FenceLostError, IdempotencyConflict, InvalidEvent
from django_runstore.models import JournalEntry, Run
from django_runstore.outcomes import Accepted, Duplicate
from django_runstore.snapshots import OwnedTransition, RunNote
from tests.conformance.journal.sample import event, everything
from tests.conformance.world import A, B, World


@pytest.fixture(autouse=True)
def owned(request: pytest.FixtureRequest) -> None:
    if "world" in request.fixturenames:
        request.getfixturevalue("world").active(A)


def test_an_entry_has_everything_of_its_event_and_its_place_and_time(world, journal):
    world.clock.set(700.9)
    receipt = journal.emit_durable(event(payload={"n": [1, "x"]}, meta={"by": "ada"}), A)
    assert receipt == Accepted(0, 0)
    (entry,) = journal.entries("run").entries
    assert (entry.run_id, entry.companion, entry.seq) == ("run", "", 0)
    assert (entry.source_id, entry.source_seq, entry.emitted_at_ms) == ("shop", 0, 700)
    assert (entry.event_type, entry.payload, entry.meta) == ("sent", {"n": [1, "x"]}, {"by": "ada"})
    assert entry.event_id == "runstore:event:3:run4:shop0"


def test_meta_is_null_unless_given(journal):
    journal.emit_durable(event(), A)
    assert JournalEntry.objects.get(companion="").meta_json == "null"


def test_contents_are_stored_with_sorted_keys_and_compact(journal):
    journal.emit_durable(event(payload={"b": {"d": 1, "c": 2.0}, "a": [float("nan")]}), A)
    entry = JournalEntry.objects.get(companion="")
    assert entry.payload_json == '{"a":[null],"b":{"c":2,"d":1}}'


def test_contents_are_redacted_before_they_are_stored(journal):
    journal.emit_durable(
        event(
            payload={"api_key": "s3cr3t", "url": "postgres://u:s3cr3t@h", "max_tokens": 5},
            meta=["Bearer s3cr3ts3cr3t"],
        ),
        A,
    )
    (entry,) = journal.entries("run").entries
    assert entry.payload == {
        "api_key": "[REDACTED]",
        "max_tokens": 5,
        "url": "postgres://u:[REDACTED]@h",
    }
    assert entry.meta == ["Bearer [REDACTED]"]


def test_a_circle_is_stored_as_a_word(journal):
    payload: dict = {}
    payload["self"] = payload
    journal.emit_durable(event(payload=payload), A)
    assert journal.entries("run").entries[0].payload == {"self": "[Circular]"}


def test_state_attempts_and_checkpoints_are_not_redacted(world, journal):
    secret = {"password": "s3cr3t"}
    world.store.transition_owned("run", A, "running", json.dumps(secret))
    journal.emit_durable(event(), A)
    journal.checkpoint("run", 0, secret, A)
    assert json.loads(world.store.get("run").state_json) == secret
    assert journal.latest_checkpoint("run").state == secret


# --- sequences ------------------------------------------------------------------------------


def test_a_stream_is_numbered_from_nought_and_each_source_in_it_too(journal):
    emitted = [journal.emit_durable(event(source_id=source), A) for source in "aabab"]
    assert emitted == [
        *(Accepted(0, 0), Accepted(1, 1), Accepted(2, 0), Accepted(3, 2), Accepted(4, 1)),
    ]


def test_every_run_has_sequences_of_its_own(world, journal):
    world.active(A, "other")
    journal.emit_durable(event(), A)
    assert journal.emit_durable(event(run_id="other"), A) == Accepted(0, 0)


def test_every_companion_has_sequences_of_its_own(journal):
    journal.emit_durable(event(), A)
    assert journal.emit_durable(event(companion="audit"), A) == Accepted(0, 0)
    assert journal.emit_durable(event(companion="audit"), A) == Accepted(1, 1)
    assert journal.emit_durable(event(companion="other"), A) == Accepted(0, 0)
    assert journal.emit_durable(event(), A) == Accepted(1, 1)
    assert [entry.companion for entry in journal.entries("run", companion="audit").entries] == [
        *("audit", "audit"),
    ]


def test_a_supplied_source_sequence_is_kept_and_counted_on_from(journal):
    assert journal.emit_durable(event(source_seq=40), A) == Accepted(0, 40)
    assert journal.emit_durable(event(), A) == Accepted(1, 41)
    assert journal.emit_durable(event(source_seq=7), A) == Accepted(2, 7)
    assert journal.emit_durable(event(), A) == Accepted(3, 42)


def test_a_sequence_that_was_handed_out_is_not_handed_out_again(journal):
    for _ in range(3):
        journal.emit_durable(event(), A)
    JournalEntry.unguarded.filter(companion="", seq__gt=0).delete()
    assert journal.emit_durable(event(), A).seq == 3


def test_notes_of_the_store_and_events_share_the_stream(world, journal):
    journal.emit_durable(event(), A)
    noted = OwnedTransition("run", 1, "running", note=RunNote("noted", {"n": 1}))
    world.store.transition_many(A, [noted])
    assert journal.emit_durable(event(), A).seq == 2
    assert [entry.event_type for entry in journal.entries("run").entries] == [
        *("sent", "noted", "sent"),
    ]


@pytest.mark.parametrize("companion", ["", "audit"])
def test_events_may_come_before_their_run_and_are_counted_on_from(world, journal, companion):
    early = event(run_id="early", companion=companion)
    assert journal.emit_durable_unfenced(early) == Accepted(0, 0)
    assert journal.emit_durable_unfenced(early) == Accepted(1, 1)
    world.active(A, "early")
    assert journal.emit_durable(early, A) == Accepted(2, 2)
    noted = OwnedTransition("early", 1, "suspended", note=RunNote("noted", {}))
    world.store.transition_many(A, [noted])
    expected = [0, 1, 2] if companion else [0, 1, 2, 3]
    page = journal.entries("early", companion=companion)
    assert [entry.seq for entry in page.entries] == expected


def test_a_note_of_a_run_whose_count_lags_behind_its_stream_is_appended(world, journal):
    # As after an event whose transaction was open while the run was created.
    noted = OwnedTransition("run", 1, "running", note=RunNote("noted", {}))
    for seq in (0, 1):
        JournalEntry.unguarded.create(
            run_id="run", seq=seq, source_id="s", source_hash=b"s", source_seq=seq,
            emitted_at_ms=0, event_type="t", payload_json="1",
        )  # fmt: skip
    world.store.transition_many(A, [noted])
    world.store.transition_many(A, [noted])
    assert journal.emit_durable(event(), A).seq == 4
    assert [entry.seq for entry in journal.entries("run").entries] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("compacted", [False, True])
def test_a_run_that_was_deleted_and_created_again_goes_on_counting(db, compacted):
    first = World()
    first.active(A)
    before = Journal(clock=first.clock, arbiter=first.arbiter)
    for _ in range(3):
        before.emit_durable(event(), A)
    if compacted:
        for seq, companion in ((2, ""), (1, "run-store")):
            before.checkpoint("run", seq, {}, A, companion=companion)
            before.compact("run", A, companion=companion)
    Run.unguarded.all().delete()

    second = World()
    second.active(B)
    noted = OwnedTransition("run", 1, "running", note=RunNote("noted", {}))
    second.store.transition_many(B, [noted])
    after = Journal(clock=second.clock, arbiter=second.arbiter)
    assert after.emit_durable(event(), B) == Accepted(4, 3)
    assert [entry.seq for entry in after.entries("run", 2).entries] == [3, 4]
    facts = after.entries("run", 1, companion="run-store").entries
    assert [entry.seq for entry in facts] == [2, 3]


@pytest.mark.parametrize("field", ["journal_seq", "source_seq"])
def test_the_greatest_sequence_that_has_a_next_one_is_the_last(journal, field):
    last = MAX_SAFE_INTEGER - 1
    if field == "source_seq":
        assert journal.emit_durable(event(source_seq=last), A) == Accepted(0, last)
    else:
        JournalEntry.unguarded.create(
            run_id="run", seq=last, source_id="s", source_hash=b"s", source_seq=0,
            emitted_at_ms=0, event_type="t", payload_json="1",
        )  # fmt: skip
    before = everything()
    with pytest.raises(InvalidEvent) as caught:
        journal.emit_durable(event(), A)
    assert str(caught.value) == (
        "invalid_event: Journal.emit_durable: "
        "journal sequence is outside the allocatable safe integer range"
    )
    assert everything() == before


# --- a second event of the same identity ------------------------------------------------------

EMITS = ("fenced", "unfenced")


@pytest.fixture(params=EMITS)
def emit(request, journal: Journal):
    if request.param == "fenced":
        return lambda sent: journal.emit_durable(sent, A)
    return journal.emit_durable_unfenced


def test_an_exact_retry_is_a_duplicate_with_the_original_sequence(journal, emit):
    sent = event(source_seq=9, payload={"a": 1, "b": 1.0}, meta=[1])
    assert emit(sent) == Accepted(0, 9)
    emit(event())
    before = everything()
    again = event(source_seq=9, payload={"b": 1, "a": 1}, meta=(1,))
    assert emit(again) == Duplicate(0, 9)
    assert emit(again).status == "committed"
    assert everything() == before


def test_what_is_redacted_alike_is_the_same_content(emit):
    assert emit(event(source_seq=9, payload={"token": "one"})) == Accepted(0, 9)
    assert emit(event(source_seq=9, payload={"token": "other"})) == Duplicate(0, 9)


@pytest.mark.parametrize(
    "other",
    [{"event_type": "lost"}, {"payload": {"n": 2}}, {"meta": {}}],
    ids=lambda one: next(iter(one)),
)
def test_other_content_under_the_same_identity_is_a_conflict(emit, other):
    emit(event(source_seq=9))
    before = everything()
    with pytest.raises(IdempotencyConflict) as caught:
        emit(event(source_seq=9, **other))
    message = "source event shop:9 for run run was reused with different content"
    assert caught.value.code == "idempotency_conflict"
    assert str(caught.value).endswith(f": {message}")
    assert everything() == before


def test_by_identity_any_second_event_is_a_duplicate(emit):
    emit(event(source_seq=9))
    other = event(source_seq=9, dedupe="identity", payload="other", event_type="lost")
    assert emit(other) == Duplicate(0, 9)


@pytest.mark.parametrize("other", [{"source_id": "b"}, {"companion": "c"}, {"run_id": "r"}])
def test_the_same_number_of_another_source_stream_or_run_is_another_event(journal, emit, other):
    emit(event(source_seq=9))
    assert journal.emit_durable_unfenced(event(source_seq=9, **other)).code == "accepted"


def test_events_without_a_number_are_never_duplicates(emit):
    assert [emit(event()).code for _ in range(3)] == ["accepted"] * 3


def test_an_unfenced_event_needs_no_owner_and_no_run(world, journal):
    world.store.transition_owned("run", A, "completed")
    assert journal.emit_durable_unfenced(event()) == Accepted(0, 0)
    assert journal.emit_durable_unfenced(event(run_id="never")) == Accepted(0, 0)
    with pytest.raises(FenceLostError):
        journal.emit_durable(event(run_id="never"), A)


# --- the bounds of an entry --------------------------------------------------------------------


def test_the_bound_of_an_entry_counts_the_bytes_of_payload_and_meta(world):
    journal = Journal(clock=world.clock, arbiter=world.arbiter, max_entry_bytes=10)
    # Twice 2 bytes and two quotes make 6, and null 4.
    assert journal.emit_durable(event(payload="ää"), A) == Accepted(0, 0)
    before = everything()
    with pytest.raises(InvalidEvent) as caught:
        journal.emit_durable(event(payload="äää"), A)
    message = "event is 12 bytes, over the 10-byte max_entry_bytes bound"
    assert str(caught.value) == f"invalid_event: Journal.emit_durable: {message}"
    assert everything() == before


def test_ids_of_the_greatest_length_fit_into_the_indexes(journal):
    # As incompressible as hexadecimal digits are, and two bytes a piece where that is allowed.
    noise = "".join(hashlib.sha512(bytes([n])).hexdigest() for n in range(8))
    wide = {"run_id": noise.translate({ord(c): ord(c) + 0x400 for c in "0123456789abcdef"})}
    sent = event(**wide, source_id=noise, event_type=noise, companion=noise[:512], source_seq=1)
    assert len(wide["run_id"].encode()) == 2 * len(wide["run_id"]) == 2 * 1024
    assert journal.emit_durable_unfenced(sent) == Accepted(0, 1)
    assert journal.emit_durable_unfenced(sent) == Duplicate(0, 1)


@pytest.mark.parametrize("option", [0, -1, 1.5, True, "1", 2**53])
def test_a_journal_with_an_impossible_bound_cannot_be_built(option):
    with pytest.raises(InvalidEvent):
        Journal(max_entry_bytes=option)


@pytest.mark.parametrize("redactor", ["shop.redact", 1, {}])
def test_a_journal_with_an_impossible_redactor_cannot_be_built(redactor):
    with pytest.raises(InvalidEvent):
        Journal(redactor=redactor)
