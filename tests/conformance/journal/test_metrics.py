"""Counter and spans of the journal. Spec: run-store 11.1; the spans are this package's own."""

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from django_runstore import Journal, OwnerId
from django_runstore.errors import FenceLostError, IdempotencyConflict, InvalidEvent
from tests.conformance.journal.sample import event
from tests.conformance.world import A, B, World

WRITES = "runstore_journal_writes"
RUN = {"run_id": "run"}
OWNER = {"run_id": "run", "owner_host_id": "host-a"}

# Every operation, the attributes of its span, and its outcome.
CALLS: dict[str, tuple[Callable[[Any], object], dict[str, str], str]] = {
    "emit_durable": (lambda journal: journal.emit_durable(event(), A), OWNER, "accepted"),
    "emit_durable_unfenced": (
        lambda journal: journal.emit_durable_unfenced(event()),
        RUN,
        "accepted",
    ),
    "entries": (lambda journal: journal.entries("run"), RUN, "success"),
    "latest_checkpoint": (lambda journal: journal.latest_checkpoint("run"), RUN, "success"),
    "generation": (lambda journal: journal.generation("run"), RUN, "success"),
    "checkpoint": (lambda journal: journal.checkpoint("run", 0, {}, A), OWNER, "success"),
    "compact": (lambda journal: journal.compact("run", A), OWNER, "success"),
    "transact": (lambda journal: journal.transact(lambda: None), {}, "success"),
}

INVALID: dict[str, Callable[[Any], object]] = {
    "emit_durable": lambda journal: journal.emit_durable(event(), A, fence=-1),
    "emit_durable_unfenced": lambda journal: journal.emit_durable_unfenced(event(run_id="")),
    "entries": lambda journal: journal.entries("run", limit=0),
    "latest_checkpoint": lambda journal: journal.latest_checkpoint("run", companion="\0"),
    "generation": lambda journal: journal.generation(""),
    "checkpoint": lambda journal: journal.checkpoint("run", 0, {}, A, fence=-1),
    "compact": lambda journal: journal.compact("run", A, fence=-1),
}


@pytest.fixture
def journal(db, recorder):
    """A journal of a run that A owns, with one event and a checkpoint at it."""
    world = World()
    world.active(A)
    journal = Journal(clock=world.clock, arbiter=world.arbiter)
    journal.emit_durable(event(), A)
    journal.checkpoint("run", 0, {}, A)
    recorder.forget()
    return journal


@pytest.mark.parametrize("operation", CALLS)
def test_an_operation_has_one_span_with_its_attributes_and_outcome(journal, recorder, operation):
    call, attributes, outcome = CALLS[operation]
    call(journal)

    (span,) = recorder.spans
    assert span.name == f"Journal.{operation}"
    assert span.attributes == {**attributes, "outcome": outcome}


@pytest.mark.parametrize("operation", INVALID)
def test_invalid_input_leaves_nothing_but_the_outcome(journal, recorder, operation):
    with pytest.raises(InvalidEvent):
        INVALID[operation](journal)

    (span,) = recorder.spans
    assert span.attributes == {"outcome": "failure"}


def test_an_event_is_counted_under_its_receipt(journal, recorder):
    journal.emit_durable(event(source_seq=7), A)
    journal.emit_durable(event(source_seq=7), A)
    journal.emit_durable_unfenced(event(source_seq=7))
    async_to_sync(journal.aemit_durable_unfenced)(event(source_seq=8))

    assert recorder.counts == {
        (WRITES, "durable", "accepted"): 2,
        (WRITES, "durable", "duplicate"): 2,
    }


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda journal: journal.emit_durable(event(), B), FenceLostError),
        (lambda journal: journal.emit_durable_unfenced(event(event_type="")), InvalidEvent),
        (
            lambda journal: journal.emit_durable(event(source_seq=0, payload="other"), A),
            IdempotencyConflict,
        ),
    ],
)
def test_an_event_that_is_refused_is_one_failure(journal, recorder, call, error):
    with pytest.raises(error):
        call(journal)

    assert recorder.counts == {(WRITES, "durable", "failure"): 1}
    assert recorder.calls == 1


@pytest.mark.parametrize(
    "operation", sorted(CALLS.keys() - {"emit_durable", "emit_durable_unfenced"})
)
def test_nothing_else_is_counted(journal, recorder, operation):
    CALLS[operation][0](journal)

    assert recorder.counts == {}


def test_an_owner_that_no_run_can_have_is_not_told(journal, recorder):
    with pytest.raises(FenceLostError):
        journal.emit_durable(event(), OwnerId("h" * 100_000, 1, "nonce"))

    (span,) = recorder.spans
    assert span.attributes == {"run_id": "run", "outcome": "failure"}


def test_what_a_transaction_returns_is_not_taken_for_an_outcome(journal, recorder):
    class Answer:
        code = "hunter2"

    journal.transact(Answer)

    assert [span.attributes for span in recorder.spans] == [{"outcome": "success"}]


def test_following_has_no_span_and_tells_nothing_to_another(db, recorder):
    journal = Journal()
    journal.transact(lambda: journal.follow("run"))

    assert [span.attributes for span in recorder.spans] == [{"outcome": "success"}]


def test_ownership_facts_are_no_journal_writes(db, recorder):
    World().active(A)

    assert recorder.counted(WRITES) == {}
