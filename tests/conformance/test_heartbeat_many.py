"""heartbeat_many: one statement for all, and no wait for any."""

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from django_runstore import InvalidRun
from django_runstore.outcomes import FenceLost, NotFound, Unconfirmed, Updated
from tests.conformance.race import elsewhere_locked
from tests.conformance.raw import update_raw
from tests.conformance.world import SKEW, SUSPENDED, A, B, World


def test_each_run_has_its_own_answer(world: World):
    for run_id in ("mine", "put-back", "again"):
        world.active(A, run_id)
    world.active(B, "theirs")
    world.store.transition_owned("put-back", A, "suspended")
    world.store.transition_owned("again", A, "suspended")
    world.store.claim_and_own("again", SUSPENDED, A, 0)
    world.clock.set(900)
    answers = world.store.heartbeat_many(
        A, [("mine", 1), ("put-back", 1), ("again", 1), ("theirs", 1), ("nobody", 1)]
    )
    assert answers == {
        "mine": Updated(),
        "put-back": FenceLost(),
        "again": FenceLost(),
        "theirs": FenceLost(),
        "nobody": NotFound(),
    }
    stamps = [world.store.get(run).heartbeat_at_ms for run in ("mine", "again", "theirs")]
    assert stamps == [900, 0, 0]


def test_the_stamp_moves_forward_only(world: World):
    world.active(A)
    world.clock.set(250)
    stamps = []
    for reading in (200, 150, 250):
        assert world.store.heartbeat_many(A, [("run", 1)], reading) == {"run": Updated()}
        stamps.append(world.store.get("run").heartbeat_at_ms)
    assert stamps == [200, 200, 250]


def test_nothing_but_the_stamp_is_written(world: World):
    world.active(A)
    before = world.columns()
    world.store.heartbeat_many(A, [("run", 1)], 7)
    assert world.columns() == before | {"heartbeat_at_ms": 7}


def test_a_thiefs_pending_claim_does_not_stop_the_beat(world: World):
    seen = world.active(A)
    world.clock.set(31_000)
    world.steal(B, seen)
    assert world.store.heartbeat_many(A, [("run", 1)]) == {"run": Updated()}


def test_no_runs_are_no_answers(store, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert store.heartbeat_many(A, []) == {}


@pytest.mark.parametrize(
    "runs",
    [
        None,
        "run",
        {"run": 1},
        {("run", 1)},
        ["run"],
        [("run",)],
        [("run", 1, 2)],
        [("run", None)],
        [("run", -1)],
        [("run", 1.0)],
        [("run", True)],
        [("", 1)],
        [(1, "run")],
        [("run", 1), ("run", 2)],
    ],
)
def test_runs_that_are_no_pairs_are_refused(world: World, runs):
    world.active(A)
    before = world.columns()
    with pytest.raises(InvalidRun):
        world.store.heartbeat_many(A, runs, 5)
    assert world.columns() == before


def test_a_reading_beyond_the_skew_allowance_is_refused(world: World):
    world.active(A)
    with pytest.raises(InvalidRun):
        world.store.heartbeat_many(A, [("run", 1)], SKEW + 1)
    assert world.store.heartbeat_many(A, [("run", 1)], SKEW) == {"run": Updated()}


def statements(world: World, prefix: str, count: int) -> int:
    pairs = [(f"{prefix}-{number}", 1) for number in range(count)]
    for run_id, _ in pairs:
        world.active(A, run_id)
    with CaptureQueriesContext(connection) as queries:
        answers = world.store.heartbeat_many(A, pairs, 5)
    assert set(answers.values()) == {Updated()}
    return len(queries)


def test_a_hundred_runs_take_as_many_statements_as_one(database_world: World):
    one, hundred = statements(database_world, "one", 1), statements(database_world, "hundred", 100)
    assert one == hundred


def test_more_runs_than_one_statement_holds_are_all_beaten_for(database_world: World):
    world = database_world
    pairs = [(f"run-{number:04}", 1) for number in range(2_001)]
    for run_id in ("run-0000", "run-1000", "run-2000"):
        world.active(A, run_id)
    answers = world.store.heartbeat_many(A, pairs, 5)
    assert len(answers) == 2_001
    beaten = [run_id for run_id, answer in answers.items() if answer == Updated()]
    assert sorted(beaten) == ["run-0000", "run-1000", "run-2000"]


@pytest.mark.conformance("D9")
@pytest.mark.django_db(transaction=True)
@pytest.mark.postgres("SQLite has one lock for all rows")
def test_a_row_locked_by_an_open_transaction_does_not_stop_the_beat_of_the_others():
    world = World()
    for number in range(5):
        world.active(A, f"run-{number}")
    pairs = [(f"run-{number}", 1) for number in range(5)]
    with elsewhere_locked("run-2"):
        answers = world.store.heartbeat_many(A, pairs, 700)
    assert answers.pop("run-2") == Unconfirmed()
    assert set(answers.values()) == {Updated()}
    stamps = [world.store.get(run_id).heartbeat_at_ms for run_id, _ in pairs]
    assert stamps == [700, 700, 0, 700, 700]


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgres("SQLite has one lock for all rows")
def test_a_locked_row_of_somebody_else_is_lost_all_the_same():
    world = World()
    world.active(B)
    with elsewhere_locked("run"):
        assert world.store.heartbeat_many(A, [("run", 1)], 700) == {"run": FenceLost()}


@pytest.mark.django_db(transaction=True)
def test_a_child_being_created_does_not_hold_up_its_parents_beat():
    world = World()
    world.active(A, "parent")
    with transaction.atomic():
        world.pending("child", parent_run_id="parent")
        assert world.store.heartbeat_many(A, [("parent", 1)], 700) == {"parent": Updated()}


def test_a_row_without_an_owner_fence_is_lost(database_world: World):
    database_world.active(A)
    update_raw("run", owner_fence=None)
    assert database_world.store.heartbeat_many(A, [("run", 1)], 5) == {"run": FenceLost()}
