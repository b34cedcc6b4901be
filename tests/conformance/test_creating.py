"""Conformance notes, section B: create and get."""

import pytest

from django_runstore import InvalidRun, RunConstraint, RunNotFound, RunRow, RunStatus
from django_runstore.errors import DatabaseFailure
from tests.conformance.world import World


@pytest.mark.conformance(7, "D10")
def test_a_created_run_reads_back_in_every_field(store):
    store.create("x", '{"cursor":1}')
    assert store.get("x") == RunRow(
        run_id="x",
        status=RunStatus.PENDING,
        created_at_ms=0,
        started_at_ms=None,
        finished_at_ms=None,
        owner=None,
        heartbeat_at_ms=None,
        claim=None,
        claimed_at_ms=None,
        parent_run_id=None,
        cancel_requested_at_ms=None,
        lineage_id=None,
        round_ordinal=None,
        state_json='{"cursor":1}',
        fence=0,
        owner_fence=None,
        handler="",
        queue="default",
        priority=0,
        concurrency_key="",
        concurrency_limit=1,
        available_at_ms=0,
        deadline_at_ms=None,
        code_version="",
        state_version=0,
        failure_count=0,
        recovery_count=0,
        progress_json=None,
        progressed_at_ms=None,
        result_json=None,
        error_json=None,
        cancel_acknowledgement=None,
        waiting_reason=None,
        waiting_wake_at_ms=None,
        waiting_token=None,
        waiting_request=None,
    )


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(' {"a" : 1,\n"a":2 } ', id="spaces and a repeated key"),
        pytest.param("null", id="null at the root"),
        pytest.param('"\\u0000"', id="an escaped NUL"),
        pytest.param("1.0", id="a float"),
        pytest.param("12345678901234567890123456789", id="a long integer"),
        pytest.param('{"ключ":"字😀"}', id="other scripts"),
        pytest.param("[" * 129 + "]" * 129, id="129 nested lists ending empty"),
        pytest.param('{"token":"hunter2","__proto__":{}}', id="credentials and reserved names"),
    ],
)
def test_state_comes_back_byte_for_byte(store, state):
    store.create("x", state)
    assert store.get("x").state_json == state


@pytest.mark.conformance(8)
def test_an_empty_id_is_refused(store):
    with pytest.raises(InvalidRun) as caught:
        store.create("", "{}")
    assert caught.value.detail["field"] == "run_id"


@pytest.mark.conformance(8)
@pytest.mark.parametrize(
    "state", ["", "{", "not json", "NaN", "[1,]", "1e400", "[" * 130 + "]" * 130]
)
def test_state_that_is_not_admitted_json_is_refused(store, state):
    with pytest.raises(InvalidRun) as caught:
        store.create("x", state)
    assert caught.value.detail["state_json_length"] == len(state)


@pytest.mark.conformance(9)
def test_a_second_run_of_one_id_is_refused_by_constraint(store):
    store.create("x", "{}")
    with pytest.raises(RunConstraint) as caught:
        store.create("x", "[]")
    assert str(caught.value) == "constraint: RunStore.create: database operation failed"
    assert caught.value.detail == {"category": "constraint", "cause": "constraint"}
    assert isinstance(caught.value.__cause__, DatabaseFailure)
    assert store.get("x").state_json == "{}"


def test_an_unknown_parent_is_refused_by_constraint_at_once(store):
    with pytest.raises(RunConstraint):
        store.create("x", "{}", parent_run_id="nobody")
    with pytest.raises(RunNotFound):
        store.get("x")


def test_a_second_run_of_one_round_is_refused_by_constraint(store):
    store.create("x", "{}", lineage_id="line", round_ordinal=0)
    with pytest.raises(RunConstraint):
        store.create("y", "{}", lineage_id="line", round_ordinal=0)


@pytest.mark.conformance(10)
def test_an_unknown_run_is_not_found(store):
    with pytest.raises(RunNotFound) as caught:
        store.get("nobody")
    assert str(caught.value) == "not_found_row: RunStore.get: run nobody was not found"
    assert caught.value.detail == {"run_id": "nobody"}
    assert caught.value.code == "not_found_row"


def test_a_run_is_available_at_once_unless_it_is_delayed(world: World):
    world.clock.set(1_000)
    world.pending("now")
    world.pending("later", available_at_ms=5_000)
    assert world.store.get("now").available_at_ms == 1_000
    assert world.store.get("later").available_at_ms == 5_000


def test_a_run_is_available_at_its_deadline_at_the_latest(world: World):
    # Whoever claims it then fails it.
    world.clock.set(1_000)
    world.pending("sooner", available_at_ms=5_000, deadline_at_ms=3_000)
    world.pending("later", available_at_ms=5_000, deadline_at_ms=9_000)
    world.pending("now", deadline_at_ms=9_000)
    rows = [world.store.get(run_id) for run_id in ("sooner", "later", "now")]
    assert [row.available_at_ms for row in rows] == [3_000, 5_000, 1_000]
    assert [row.deadline_at_ms for row in rows] == [3_000, 9_000, 9_000]


def test_the_options_of_create_are_stored(store):
    store.create("x", "{}", handler="report", queue="slow", priority=-7)
    row = store.get("x")
    assert (row.handler, row.queue, row.priority) == ("report", "slow", -7)


@pytest.mark.conformance("D2")
def test_no_run_id_is_reserved_for_companion_streams(world: World):
    reserved = "flows.companion/run-store/" + "0" * 64
    world.pending(reserved)
    assert world.store.get(reserved).run_id == reserved


@pytest.mark.parametrize("queue", ["", "q" * 513, "字" * 171, None, 1, "\ud800"])
def test_a_queue_is_text_that_fits_into_an_index_beside_a_run_id(store, queue):
    with pytest.raises(InvalidRun) as caught:
        store.create("x", "{}", queue=queue)
    assert caught.value.detail == {
        "field": "queue",
        "detail": "must be well-formed durable text of at most 512 bytes",
    }


@pytest.mark.parametrize("priority", [-(2**31) - 1, 2**31, 1.0, True, None, "1"])
def test_a_priority_is_a_32_bit_integer(store, priority):
    with pytest.raises(InvalidRun) as caught:
        store.create("x", "{}", priority=priority)
    assert caught.value.detail["field"] == "priority"


def test_the_extremes_of_a_priority_are_admitted(store):
    for number, priority in enumerate((-(2**31), 2**31 - 1)):
        store.create(f"x-{number}", "{}", priority=priority)
        assert store.get(f"x-{number}").priority == priority
