"""An async twin goes through the same door: counted once, also when it is cancelled."""

import asyncio

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import transaction

from django_runstore.models import JournalEntry, Run
from django_runstore.services.twin import joins_a_block
from tests.conformance.calls import CALLS, SINGLE
from tests.conformance.test_metrics import UNCOUNTED
from tests.conformance.world import A, P, World
from tests.services.slow_arbiter import PATIENCE_S, SlowArbiter


@pytest.mark.parametrize("operation", sorted(SINGLE.keys() - UNCOUNTED))
def test_a_twin_is_counted_exactly_once(db, recorder, operation):
    world = World()
    world.active(A)
    recorder.forget()
    async_to_sync(getattr(world.store, f"a{operation}"))(**CALLS[operation].arguments)

    assert recorder.calls == 1
    assert sum(recorder.counts.values()) == 1


@pytest.mark.parametrize("operation", sorted(CALLS))
def test_a_twin_tells_what_its_operation_tells(db, recorder, operation):
    told = []
    for prefix in ("", "a"):
        JournalEntry.unguarded.all().delete()
        Run.unguarded.all().delete()
        world = World()
        world.active(A)
        recorder.forget()
        method = getattr(world.store, prefix + operation)
        arguments = CALLS[operation].arguments
        _ = async_to_sync(method)(**arguments) if prefix else method(**arguments)
        (span,) = recorder.spans
        told.append((span.name, span.attributes, dict(recorder.counts)))

    assert told[0] == told[1]


@pytest.mark.django_db(transaction=True)
def test_a_twin_that_is_refused_inside_a_block_is_a_failure(recorder):
    with pytest.raises(RuntimeError), transaction.atomic():
        async_to_sync(World().store.aheartbeat)("run", A, 0)

    assert recorder.heartbeats() == {"failure": 1}


@pytest.mark.django_db(transaction=True)
def test_a_twin_cancelled_under_way_is_one_interrupt_though_its_thread_commits(recorder):
    arbiter = SlowArbiter()
    world = World(arbiter)
    world.pending()
    recorder.forget()

    async def cancel_under_way() -> None:
        claim = asyncio.create_task(world.store.aclaim("run", P, A, 0))
        assert await asyncio.to_thread(arbiter.asked.wait, PATIENCE_S)
        claim.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claim
        assert recorder.claims() == {("claim", "interrupt"): 1}
        arbiter.released.set()
        # The thread takes the next call when it is done with the cancelled one.
        await sync_to_async(lambda: None, thread_sensitive=True)()

    async_to_sync(cancel_under_way)()

    assert world.store.get("run").claim == A
    assert recorder.claims() == {("claim", "interrupt"): 1}
    claim, _get = recorder.spans
    assert claim.attributes == {
        "run_id": "run",
        "claimant_host_id": "host-a",
        "outcome": "interrupt",
    }


@pytest.mark.django_db(transaction=True)
def test_a_twin_cancelled_in_the_queue_is_one_interrupt_and_writes_nothing(recorder):
    arbiter = SlowArbiter()
    world = World(arbiter)
    world.pending("first")
    world.pending("second")
    recorder.forget()

    async def cancel_in_the_queue() -> None:
        first = asyncio.create_task(world.store.aclaim("first", P, A, 0))
        assert await asyncio.to_thread(arbiter.asked.wait, PATIENCE_S)
        second = asyncio.create_task(world.store.aclaim("second", P, A, 0))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        arbiter.released.set()
        await first
        await sync_to_async(lambda: None, thread_sensitive=True)()

    async_to_sync(cancel_in_the_queue)()

    assert world.store.get("second").claim is None
    assert recorder.claims() == {("claim", "interrupt"): 1, ("claim", "claimed"): 1}


@pytest.mark.django_db(transaction=True)
def test_twins_side_by_side_keep_their_notes_apart(recorder):
    async def three() -> None:
        store = World().store
        await asyncio.gather(*(store.aheartbeat(f"run-{number}", A, 0) for number in range(3)))

    async_to_sync(three)()

    told = {span.attributes["run_id"] for span in recorder.spans}
    assert told == {"run-0", "run-1", "run-2"}
    assert recorder.heartbeats() == {"not_found": 3}


def test_whether_a_block_is_open_is_known_without_asking_the_database(
    db, django_assert_num_queries
):
    with django_assert_num_queries(0):
        assert not joins_a_block("default")
    with transaction.atomic(), django_assert_num_queries(0):
        assert joins_a_block("default")


@pytest.mark.parametrize("is_broken", [False, True])
def test_asking_for_an_open_block_leaves_it_as_it_is(db, is_broken):
    with transaction.atomic():
        transaction.set_rollback(is_broken)
        assert joins_a_block("default")
        assert transaction.get_rollback() == is_broken
        transaction.set_rollback(True)
