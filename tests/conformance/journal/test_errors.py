"""Spec 8.9: one error per code that the durable channel can raise, and what they carry."""

import pickle
import traceback

import pytest

from django_runstore import Journal, JournalError, OwnerId, errors
from django_runstore.models import JournalEntry
from tests.conformance.journal.sample import event
from tests.conformance.world import A, B, World

# Spec 8.9 without the lossy channel, projections and the stub.
CODES = {
    "invalid_event": errors.InvalidEvent,
    "idempotency_conflict": errors.IdempotencyConflict,
    "sequence_conflict": errors.SequenceConflict,
    "fence_lost": errors.FenceLostError,
    "sink_failed": errors.SinkFailed,
    "read_failed": errors.ReadFailed,
    "decode_failed": errors.JournalDecodeFailed,
    "checkpoint_invalid": errors.CheckpointInvalid,
    "reader_behind": errors.ReaderBehind,
    "compacted": errors.Compacted,
}
SECRET = "s3cr3t"


def test_every_code_has_an_error_of_its_own():
    known = {kind.code: kind for kind in JournalError.__subclasses__()}
    assert known == CODES


@pytest.mark.parametrize("kind", CODES.values(), ids=CODES)
def test_an_error_names_code_service_operation_and_rule_and_survives_pickling(kind):
    error = kind("entries", "the rule", {"checkpoint_seq": 7})
    for one in (error, pickle.loads(pickle.dumps(error))):  # noqa: S301 - made a line above
        assert str(one) == f"{kind.code}: Journal.entries: the rule"
        assert (one.code, one.operation, one.checkpoint_seq) == (kind.code, "entries", 7)


def test_an_error_that_is_about_no_checkpoint_has_none():
    assert errors.InvalidEvent("entries", "the rule").checkpoint_seq is None


def fail_in_every_way(world: World) -> list[JournalError]:
    """Raise what can be raised with a payload full of what must not be told."""
    world.active(A)
    journal = Journal(clock=world.clock, arbiter=world.arbiter, max_entry_bytes=10_000)
    payload = {"note": SECRET * 100}
    journal.emit_durable(event(source_seq=0, payload=payload), A)
    journal.emit_durable(event(source_seq=1), A)
    journal.emit_durable(event(source_seq=2), A)
    journal.checkpoint("run", 2, payload, A)
    reader = journal.follow("run")
    next(reader)

    def raising(_: object) -> None:
        raise RuntimeError(SECRET)

    calls = [
        lambda: journal.emit_durable(event(payload=object.__new__(type(SECRET, (), {}))), A),
        lambda: journal.emit_durable(event(payload={SECRET: {1}}), A),
        lambda: journal.emit_durable(event(run_id=f"\0{SECRET}"), A),
        lambda: journal.emit_durable(event(payload=[SECRET] * 10_000), A),
        lambda: Journal(redactor=raising).emit_durable(event(payload=payload), A),
        lambda: journal.emit_durable(event(source_seq=0, payload=SECRET), A),
        lambda: journal.emit_durable(event(payload=SECRET), B),
        lambda: journal.emit_durable(event(payload=SECRET), OwnerId(SECRET * 1_000, 1, "n")),
        lambda: journal.checkpoint("run", 99, payload, A),
        lambda: journal.checkpoint("run", 1, {SECRET: {1}}, A),
        lambda: journal.compact("run", A),
        lambda: journal.entries("run", event_types=[f"\0{SECRET}"]),
    ]
    found = []
    for call in calls:
        with pytest.raises(JournalError) as caught:
            call()
        found.append(caught.value)
    reader.close()
    JournalEntry.unguarded.filter(companion="").update(payload_json="{" + SECRET)
    with pytest.raises(JournalError) as caught:
        journal.entries("run")
    return [*found, caught.value]


def test_no_error_tells_a_payload_a_rejected_value_or_a_redactors_words(database_world):
    for error in fail_in_every_way(database_world):
        told = "".join(traceback.format_exception(error)).replace(__file__, "")
        # The lines of this file name it; what an error says does not.
        said = f"{error} {error.args!r} {dict(error.detail)!r}"
        assert SECRET not in said
        assert "RuntimeError" not in told
        assert len(said) < 2_000
