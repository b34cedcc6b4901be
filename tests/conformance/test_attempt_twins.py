"""Every attempt operation has an async twin: the same answers, outside atomic blocks."""

import inspect

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from django_runstore.errors import InvalidAttempt
from django_runstore.models import Attempt
from django_runstore.services import AttemptStore
from tests.conformance.attempts import OPERATIONS, RUNNING, opened, rows, started
from tests.conformance.world import A


@pytest.mark.parametrize("operation", OPERATIONS)
def test_there_is_a_twin_with_the_same_signature(operation):
    twin, method = getattr(AttemptStore, f"a{operation}"), getattr(AttemptStore, operation)
    assert inspect.iscoroutinefunction(twin)
    assert inspect.signature(twin) == inspect.signature(method)
    assert twin.__name__ == f"a{operation}"


def test_every_public_operation_is_covered_here():
    public = {
        name
        for name, member in inspect.getmembers(AttemptStore, inspect.isfunction)
        if not name.startswith("_") and not inspect.iscoroutinefunction(member)
    }
    assert public == set(OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_twin_answers_and_writes_what_its_operation_does(db, operation):
    store, results = opened(), []
    for prefix in ("", "a"):
        Attempt.unguarded.all().delete()
        store.put(RUNNING, A)
        method = getattr(store, prefix + operation)
        arguments = OPERATIONS[operation].arguments
        answer = async_to_sync(method)(**arguments) if prefix else method(**arguments)
        results.append((answer, rows()))
    assert results[0] == results[1]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_twin_raises_what_its_operation_raises(db, operation):
    (name, *_) = OPERATIONS[operation].arguments
    with pytest.raises(InvalidAttempt) as caught:
        async_to_sync(getattr(started(), f"a{operation}"))(
            **{**OPERATIONS[operation].arguments, name: object()}
        )
    assert caught.value.operation == operation


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_twin_is_refused_inside_a_block_and_writes_nothing(operation):
    store = started()
    before = rows()
    refusal = rf"^AttemptStore\.a{operation} was called inside an atomic block"
    with pytest.raises(RuntimeError, match=refusal), transaction.atomic():
        async_to_sync(getattr(store, f"a{operation}"))(**OPERATIONS[operation].arguments)
    assert rows() == before
