"""Every operation has an async twin: the same answers, outside atomic blocks."""

import asyncio
import inspect

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from django_runstore import InvalidRun, RunStore
from django_runstore.models import JournalEntry, Run
from django_runstore.outcomes import Claimed, FenceLost, NotFound, Updated
from tests.conformance.calls import CALLS, EVERY, TELLING_ALL
from tests.conformance.world import A, B, P, World, tables, unnumbered_tables

NAMES = sorted(CALLS)


@pytest.mark.parametrize("operation", sorted(EVERY))
def test_there_is_a_twin_with_the_same_signature(operation):
    twin, method = getattr(RunStore, f"a{operation}"), getattr(RunStore, operation)
    assert inspect.iscoroutinefunction(twin)
    assert inspect.signature(twin) == inspect.signature(method)
    assert twin.__name__ == f"a{operation}"


def test_every_public_operation_is_covered_here():
    public = {
        name
        for name, member in inspect.getmembers(RunStore, inspect.isfunction)
        if not name.startswith("_") and not inspect.iscoroutinefunction(member)
    }
    assert public == set(EVERY)


@pytest.mark.parametrize("operation", sorted(EVERY.keys() - TELLING_ALL))
def test_a_twin_answers_and_writes_what_its_operation_does(db, operation):
    results = []
    for prefix in ("", "a"):
        JournalEntry.unguarded.all().delete()
        Run.unguarded.all().delete()
        world = World()
        world.active(A)
        method = getattr(world.store, prefix + operation)
        arguments = EVERY[operation].arguments
        answer = async_to_sync(method)(**arguments) if prefix else method(**arguments)
        results.append((answer, unnumbered_tables()))
    assert results[0] == results[1]


@pytest.mark.parametrize("operation", NAMES)
def test_a_twin_raises_what_its_operation_raises(db, operation):
    (name, *_) = CALLS[operation].arguments
    with pytest.raises(InvalidRun) as caught:
        async_to_sync(getattr(World().store, f"a{operation}"))(
            **{**CALLS[operation].arguments, name: object()}
        )
    assert caught.value.operation == operation


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("operation", sorted(EVERY))
def test_a_twin_is_refused_inside_a_block_and_writes_nothing(operation):
    world = World()
    world.active(A)
    before = tables()
    arguments = EVERY[operation].arguments
    refusal = rf"^RunStore\.a{operation} was called inside an atomic block"
    with pytest.raises(RuntimeError, match=refusal), transaction.atomic():
        async_to_sync(getattr(world.store, f"a{operation}"))(**arguments)
    assert tables() == before


@pytest.mark.django_db(transaction=True)
def test_twins_can_be_awaited_side_by_side():
    world = World()
    world.pending()

    async def race():
        return await asyncio.gather(
            world.store.aclaim("run", P, A, 0),
            world.store.aclaim("run", P, B, 0),
            world.store.aheartbeat("nobody", A, 0),
        )

    first, second, third = async_to_sync(race)()
    assert {type(first), type(second)} == {Claimed, type(world.store.claim("run", P, A, 0))}
    assert third == NotFound()


def test_a_twin_works_inside_a_test_case(db):
    world = World()
    world.active(A)
    assert async_to_sync(world.store.aheartbeat)("run", A, 5) == Updated()
    assert async_to_sync(world.store.aheartbeat)("run", B, 5) == FenceLost()
    assert world.store.get("run").heartbeat_at_ms == 5


@pytest.mark.django_db(transaction=True)
def test_a_twin_that_reads_does_not_wait_for_a_writer(django_assert_num_queries):
    world = World()
    world.pending()
    with django_assert_num_queries(1):
        row = async_to_sync(world.store.aget)("run")
    assert row.run_id == "run"
