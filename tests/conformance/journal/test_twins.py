"""Every operation has an async twin: the same answers, outside atomic blocks."""

import inspect
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from django_runstore import Journal
from django_runstore.errors import InvalidEvent
from django_runstore.models import (
    JournalCheckpoint,
    JournalDedup,
    JournalEntry,
    JournalGeneration,
    Run,
)
from tests.conformance.journal.calls import CALLS
from tests.conformance.journal.sample import event, everything
from tests.conformance.world import A, World

# What is no operation, or is its own twin.
WITHOUT = {"when_committed", "follow", "afollow"}
OPERATIONS = {**CALLS, "transact": {"body": lambda: 7}}


def prepared() -> Journal:
    for table in (JournalEntry, JournalCheckpoint, JournalDedup, JournalGeneration, Run):
        table.unguarded.all().delete()
    world = World()
    world.active(A)
    journal = Journal(clock=world.clock, arbiter=world.arbiter)
    for _ in range(3):
        journal.emit_durable(event(), A)
    journal.checkpoint("run", 0, {}, A)
    return journal


# What the database numbers by itself.
NUMBERED = {"id", "revision", "revision_xid"}


def unnumbered(tables: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    return [[{k: row[k] for k in row if k not in NUMBERED} for row in table] for table in tables]


def test_every_public_operation_is_covered_here():
    public = {
        name
        for name, member in inspect.getmembers(Journal, inspect.isfunction)
        if not name.startswith("_") and not inspect.iscoroutinefunction(member)
    }
    assert public == set(OPERATIONS) | WITHOUT


@pytest.mark.parametrize("operation", OPERATIONS)
def test_there_is_a_twin_with_the_same_signature(operation):
    twin, method = getattr(Journal, f"a{operation}"), getattr(Journal, operation)
    assert inspect.iscoroutinefunction(twin)
    assert inspect.signature(twin) == inspect.signature(method)
    assert twin.__name__ == f"a{operation}"


def test_following_has_the_same_signature_either_way():
    follow, afollow = (inspect.signature(one) for one in (Journal.follow, Journal.afollow))
    assert follow.parameters == afollow.parameters


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_twin_answers_and_writes_what_its_operation_does(db, operation):
    results = []
    for prefix in ("", "a"):
        method = getattr(prepared(), prefix + operation)
        arguments = OPERATIONS[operation]
        answer = async_to_sync(method)(**arguments) if prefix else method(**arguments)
        results.append((answer, unnumbered(everything())))
    assert results[0] == results[1]


@pytest.mark.parametrize("operation", CALLS)
def test_a_twin_raises_what_its_operation_raises(db, operation):
    (name, *_) = CALLS[operation]
    with pytest.raises(InvalidEvent) as caught:
        async_to_sync(getattr(Journal(), f"a{operation}"))(**{**CALLS[operation], name: object()})
    assert caught.value.operation == operation


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_twin_is_refused_inside_a_block_and_writes_nothing(operation):
    journal = prepared()
    before = everything()
    refusal = rf"^Journal\.a{operation} was called inside an atomic block"
    with pytest.raises(RuntimeError, match=refusal), transaction.atomic():
        async_to_sync(getattr(journal, f"a{operation}"))(**OPERATIONS[operation])
    assert everything() == before
