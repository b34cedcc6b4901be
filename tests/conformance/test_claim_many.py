"""claim_many: who gets what, in which order, and past which rows."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore import InvalidRun
from django_runstore.arbiters import LocalArbiter
from django_runstore.models import JournalEntry, Run
from tests.conformance.race import elsewhere_locked
from tests.conformance.raw import checks_off, update_raw
from tests.conformance.world import (
    SAFE,
    SKEW,
    SUSPENDED,
    A,
    B,
    P,
    World,
    claim_columns,
    running,
)


def ids(claimed) -> list[str]:
    return [each.run.run_id for each in claimed]


def test_claimed_runs_are_owned_with_a_fence_and_their_state(world: World):
    world.pending("x", '{"n":1}')
    (claimed,) = world.store.claim_many(A, 5)
    assert claimed.fence == 1
    assert claimed.run.state_json == '{"n":1}'
    assert claimed.run == world.store.get("x")
    assert world.store.get("x").snapshot == running(A, 0)
    assert world.fact_names("x") == ["claimed", "activated"]
    assert world.store.heartbeat("x", A, 0, fence=claimed.fence).code == "updated"


def test_nothing_due_is_nothing_claimed(store):
    assert store.claim_many(A, 5) == ()


def test_the_highest_priority_and_then_the_longest_due_come_first(world: World):
    world.clock.set(100)
    for run_id, priority, available in (
        ("late", 0, 90),
        ("b", 0, 10),
        ("a", 0, 10),
        ("low", -5, 0),
        ("high", 7, 99),
    ):
        world.pending(run_id, priority=priority, available_at_ms=available)
    assert ids(world.store.claim_many(A, 2)) == ["high", "a"]
    assert ids(world.store.claim_many(A, 9)) == ["b", "late", "low"]


def test_a_step_of_priority_is_worth_a_minute_of_waiting(world: World):
    world.clock.set(1_000_000)
    world.pending("urgent", priority=3, available_at_ms=900_000)
    world.pending("older", available_at_ms=720_000 - 1)
    world.pending("younger", available_at_ms=720_000 + 1)
    assert ids(world.store.claim_many(A, 9)) == ["older", "urgent", "younger"]


@pytest.mark.parametrize("priority", [2**31 - 1, -(2**31)])
def test_the_extremes_of_priority_can_be_claimed(world: World, priority):
    world.pending("x", priority=priority)
    assert ids(world.store.claim_many(A, 9)) == ["x"]


@pytest.mark.parametrize(
    ("readable", "taken"),
    [
        ({"a": 2, "b": 2}, ["a1", "a2", "b1"]),
        ({"a": 1, "b": 3}, ["a1", "b1", "b3"]),
        ({"a": 0}, []),
        ({"c": 9}, []),
        ({}, []),
        (["a"], ["a1", "a2"]),
        (None, ["a1", "a2", "b1", "b3"]),
    ],
    ids=str,
)
def test_a_run_whose_state_is_too_new_stays_for_whoever_can_read_it(world: World, readable, taken):
    for name, version in (("a", 1), ("a", 2), ("b", 1), ("b", 3)):
        world.pending(f"{name}{version}", handler=name, state_version=version)
    assert ids(world.store.claim_many(A, 9, handlers=readable)) == taken


@pytest.mark.parametrize("readable", [{"a": -1}, {"a": None}, {"a": True}, {7: 1}], ids=str)
def test_what_a_claim_can_read_is_checked(store, readable):
    with pytest.raises(InvalidRun) as caught:
        store.claim_many(A, 9, handlers=readable)
    assert caught.value.detail["field"] == "handlers"


def test_ties_are_broken_in_byte_order(world: World):
    for run_id in ("b", "B", "é", "a"):
        world.pending(run_id)
    assert ids(world.store.claim_many(A, 9)) == ["B", "a", "b", "é"]


def test_a_run_is_claimable_from_its_time_on(world: World):
    world.pending("x", available_at_ms=50)
    assert world.store.claim_many(A, 1, now_ms=49) == ()
    assert ids(world.store.claim_many(A, 1, now_ms=50)) == ["x"]


@pytest.mark.parametrize("status", ["running", "completed", "failed", "cancelled"])
def test_only_pending_and_suspended_runs_are_claimed(world: World, status):
    world.active(A)
    world.store.transition_owned("run", A, status)
    assert world.store.claim_many(B, 1) == ()


def test_a_suspended_run_is_claimed_and_waits_for_nothing_any_more(database_world: World):
    world = database_world
    world.active(A)
    world.store.transition_owned("run", A, "suspended")
    waiting = {"waiting_reason": "sleep", "waiting_wake_at_ms": 5, "waiting_token": "t"}
    update_raw("run", waiting_request="{}", **waiting)
    (claimed,) = world.store.claim_many(B, 1)
    for row in (claimed.run, world.store.get("run")):
        assert row.waiting_reason is None
        assert (row.waiting_wake_at_ms, row.waiting_token, row.waiting_request) == (None,) * 3


def test_a_run_without_a_time_waits_for_a_signal(database_world: World):
    database_world.active(A)
    database_world.store.transition_owned("run", A, "suspended")
    update_raw("run", available_at_ms=None)
    assert database_world.store.claim_many(B, 1) == ()


def test_a_claimed_run_is_left_to_its_claimant(world: World):
    world.claimed(A)
    assert world.store.claim_many(B, 1) == ()


def test_only_the_named_queues_are_looked_at(world: World):
    for queue in ("a", "b", "c"):
        world.pending(f"in-{queue}", queue=queue)
    assert ids(world.store.claim_many(A, 9, queues=["a", "c"])) == ["in-a", "in-c"]
    assert world.store.claim_many(A, 9, queues=[]) == ()
    assert ids(world.store.claim_many(A, 9, queues=None)) == ["in-b"]


def test_a_run_of_an_unknown_handler_is_left_for_who_knows_it(world: World):
    world.pending("old", handler="old", priority=1)
    world.pending("new", handler="new")
    world.pending("none")
    before = Run.objects.filter(pk="new").values().get()
    assert ids(world.store.claim_many(A, 9, handlers={"old"})) == ["old"]
    assert world.store.claim_many(A, 9, handlers=frozenset()) == ()
    assert Run.objects.filter(pk="new").values().get() == before
    assert ids(world.store.claim_many(A, 9, handlers=[""])) == ["none"]


def test_a_row_that_cannot_be_read_does_not_block_those_behind_it(database_world: World):
    world = database_world
    with checks_off():
        for number in range(4):
            world.pending(f"run-{number}")
        for corrupt in ("run-0", "run-2"):
            update_raw(corrupt, state_json="{no json")
        assert ids(world.store.claim_many(A, 2)) == ["run-1", "run-3"]
        assert Run.objects.get(pk="run-0").status == "pending"


def test_a_limit_is_kept(world: World):
    for number in range(5):
        world.pending(f"run-{number}")
    assert ids(world.store.claim_many(A, 3)) == ["run-0", "run-1", "run-2"]


@pytest.mark.parametrize("limit", [0, -1, 1_001, 1.0, True, None, "1", SAFE])
def test_a_limit_out_of_range_is_refused(store, limit):
    with pytest.raises(InvalidRun) as caught:
        store.claim_many(A, limit)
    assert caught.value.detail["field"] == "limit"


@pytest.mark.parametrize("field", ["queues", "handlers"])
@pytest.mark.parametrize("names", ["default", b"x", {1: 1}, [1], ["\ud800"], [None], (0,)])
def test_names_that_are_no_texts_are_refused(store, field, names):
    with pytest.raises(InvalidRun) as caught:
        store.claim_many(A, 1, **{field: names})
    assert caught.value.detail["field"] == field


def test_a_reading_beyond_the_skew_allowance_is_refused(world: World):
    world.pending("x", available_at_ms=SKEW + 1)
    with pytest.raises(InvalidRun):
        world.store.claim_many(A, 1, now_ms=SKEW + 1)
    assert world.store.claim_many(A, 1, now_ms=SKEW) == ()


def test_the_version_of_the_code_is_recorded(world: World):
    world.pending()
    (claimed,) = world.store.claim_many(A, 1, code_version="2026.10")
    assert claimed.run.code_version == "2026.10"
    assert world.store.get("run").code_version == "2026.10"


def test_the_first_start_is_kept(world: World):
    world.active(A)
    world.store.transition_owned("run", A, "suspended")
    world.clock.set(400)
    (claimed,) = world.store.claim_many(B, 1)
    assert (claimed.run.started_at_ms, claimed.run.heartbeat_at_ms) == (0, 400)
    assert claimed.run == world.store.get("run")


def test_runs_with_different_histories_get_each_its_own_fence(world: World):
    world.pending("fresh")
    world.active(A, "used")
    world.store.transition_owned("used", A, "suspended")
    world.store.claim("used", SUSPENDED, A, 0)
    world.store.abandon_claim("used", A, 0)
    claimed = {each.run.run_id: each.fence for each in world.store.claim_many(B, 9)}
    assert claimed == {"fresh": 1, "used": 3}
    for run_id, fence in claimed.items():
        row = world.store.get(run_id)
        assert (row.fence, row.owner_fence) == (fence, fence)


def test_an_arbiter_that_disagrees_is_obeyed(db):
    world = World(LocalArbiter())
    world.pending("a")
    world.pending("b")
    world.store.claim("a", P, A, 0)
    update_raw("a", **dict.fromkeys(claim_columns(A, 0)))
    assert ids(world.store.claim_many(B, 9)) == ["b"]


def statements(world: World, prefix: str, count: int) -> int:
    for number in range(count):
        world.pending(f"{prefix}-{number}", queue=prefix)
    with CaptureQueriesContext(connection) as queries:
        assert len(world.store.claim_many(A, 100, queues=[prefix])) == count
    return len(queries)


@pytest.mark.postgres("SQLite bounds the parameters of one statement")
def test_a_hundred_runs_take_as_many_statements_as_one(database_world: World):
    one, hundred = statements(database_world, "one", 1), statements(database_world, "hundred", 100)
    assert one == hundred
    # The savepoint of the test's transaction, its release, and one each to find, to own and
    # to append.
    assert one == 5


@pytest.mark.sqlite("bounds the parameters of one statement")
def test_a_hundred_runs_take_one_statement_more_per_full_batch_of_facts(database_world: World):
    fields = [field for field in JournalEntry._meta.concrete_fields if not field.generated]
    batch = connection.ops.bulk_batch_size(fields[1:], range(200))
    batches = -(-200 // batch)
    one, hundred = statements(database_world, "one", 1), statements(database_world, "hundred", 100)
    assert hundred - one == batches - 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgres("SQLite has one lock for all rows")
def test_a_row_that_somebody_has_locked_is_passed_over():
    world = World()
    for number in range(3):
        world.pending(f"run-{number}")
    with elsewhere_locked("run-0", "run-1"):
        assert ids(world.store.claim_many(A, 9)) == ["run-2"]
    assert ids(world.store.claim_many(A, 9)) == ["run-0", "run-1"]
