"""Concurrency keys: how many runs of one key are live at once, whoever claims them."""

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from django_runstore import InvalidRun
from django_runstore.db.concurrency import lock_keys
from django_runstore.outcomes import Transitioned
from django_runstore.snapshots import OwnedTransition
from tests.conformance.race import DEADLINE_SECONDS, race
from tests.conformance.raw import update_raw
from tests.conformance.world import A, B, P, World


def keyed(world: World, number: int, key: str = "k", limit: int = 1) -> list[str]:
    names = [f"{key}-{each}" for each in range(number)]
    for run_id in names:
        world.pending(run_id, concurrency_key=key, concurrency_limit=limit)
    return names


def ids(claimed) -> list[str]:
    return [each.run.run_id for each in claimed]


@pytest.mark.parametrize("limit", [1, 3])
def test_one_claim_takes_no_more_than_the_limit(world: World, limit):
    names = keyed(world, 9, limit=limit)
    assert ids(world.store.claim_many(A, 9)) == names[:limit]
    assert world.store.claim_many(B, 9) == ()


def test_a_claim_goes_past_all_that_is_held_back_to_what_is_free(world: World):
    keyed(world, 30, "a", limit=2)
    keyed(world, 30, "b")
    world.pending("free")
    assert ids(world.store.claim_many(A, 4)) == ["a-0", "a-1", "b-0", "free"]


def test_runs_without_a_key_know_no_limit(world: World):
    for number in range(3):
        world.pending(f"run-{number}", concurrency_limit=1)
    assert len(world.store.claim_many(A, 9)) == 3


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "suspended"])
def test_a_place_is_free_with_the_write_that_gives_the_run_up(world: World, status):
    names = keyed(world, 2)
    (first,) = world.store.claim_many(A, 9)
    assert world.store.claim_many(B, 9) == ()
    left = OwnedTransition(names[0], first.fence, status, available_at_ms=10**12)
    assert world.store.transition_many(A, [left]) == {names[0]: Transitioned()}
    assert ids(world.store.claim_many(B, 9)) == [names[1]]


def test_what_somebody_has_claimed_and_not_begun_takes_a_place(world: World):
    names = keyed(world, 2)
    world.store.claim(names[1], P, B, 0)
    assert world.store.claim_many(A, 9) == ()
    world.store.abandon_claim(names[1], B, 0)
    assert ids(world.store.claim_many(A, 9)) == [names[0]]


def test_a_stolen_run_takes_one_place_and_not_two(database_world: World):
    names = keyed(database_world, 3, limit=2)
    database_world.store.claim_many(A, 1)
    update_raw(names[0], claim_host_id="h", claim_pid=1, claim_nonce="n", claimed_at_ms=0)
    assert ids(database_world.store.claim_many(B, 9)) == [names[1]]


def test_each_run_keeps_to_the_limit_that_it_came_with(world: World):
    keyed(world, 3, limit=3)
    world.store.claim_many(A, 2)
    world.pending("new", concurrency_key="k", concurrency_limit=2, priority=9)
    assert world.store.claim_many(B, 9) == ()
    ended = OwnedTransition("k-0", 1, "completed")
    assert world.store.transition_many(A, [ended]) == {"k-0": Transitioned()}
    assert ids(world.store.claim_many(B, 9)) == ["new", "k-2"]


def test_a_claim_of_a_certain_run_asks_for_no_limit(world: World):
    names = keyed(world, 2)
    world.store.claim_many(A, 1)
    assert world.store.claim_and_own(names[1], P, B, 0).code == "activated"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("concurrency_key", None),
        ("concurrency_key", 7),
        ("concurrency_key", "a\0"),
        ("concurrency_key", "x" * 513),
        ("concurrency_limit", 0),
        ("concurrency_limit", True),
        ("concurrency_limit", 2**31),
    ],
)
def test_a_key_and_a_limit_are_checked(store, field, value):
    with pytest.raises(InvalidRun) as caught:
        store.create("x", "{}", **{field: value})
    assert caught.value.detail["field"] == field


def test_runs_without_keys_cost_no_statement_more(world: World):
    world.pending("run")
    with CaptureQueriesContext(connection) as queries:
        world.store.claim_many(A, 9)
    asked = [query["sql"] for query in queries]
    assert not any("advisory" in sql or "AS live WHERE" in sql for sql in asked)


@pytest.mark.postgres("has one lock per key")
@pytest.mark.django_db(transaction=True)
def test_a_key_that_somebody_is_claiming_under_is_left_alone_and_not_waited_for():
    world = World()
    keyed(world, 2, "busy")
    keyed(world, 2, "quiet")

    def hold() -> list[str]:
        with transaction.atomic():
            assert lock_keys("default", ["busy"]) == {"busy"}
            (claimed,) = race(lambda: World().store.claim_many(A, 9))
            return ids(claimed)

    assert hold() == ["quiet-0"]
    assert ids(world.store.claim_many(A, 9)) == ["busy-0"]


@pytest.mark.postgres("has isolation levels")
@pytest.mark.django_db(transaction=True)
def test_a_stricter_isolation_level_leaves_keyed_runs_alone():
    world = World()
    keyed(world, 1)
    world.pending("free")
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert ids(world.store.claim_many(A, 9)) == ["free"]
    assert ids(world.store.claim_many(A, 9)) == ["k-0"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(2 * DEADLINE_SECONDS)
@pytest.mark.parametrize("limit", [1, 3])
def test_many_claimers_never_exceed_the_limit(limit):
    keyed(World(), 40, "a", limit=limit)
    keyed(World(), 20, "b", limit=limit)

    def work(number: int) -> tuple[int, int]:
        world, most, done = World(), 0, 0
        owner = A if number % 2 else B
        while left(world):
            claimed = world.store.claim_many(owner, 4)
            most = max(most, *most_live(), 0)
            ended = [OwnedTransition(each.run.run_id, each.fence, "completed") for each in claimed]
            answers = world.store.transition_many(owner, ended)
            assert set(answers.values()) <= {Transitioned()}
            done += len(answers)
        return most, done

    results = race(*(lambda number=number: work(number) for number in range(4)))
    assert sum(done for _, done in results) == 60
    assert max(most for most, _ in results) <= limit
    assert any(most for most, _ in results)


def left(world: World) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM runstore_run WHERE status <> 'completed'")
        return cursor.fetchone() != (0,)


def most_live() -> list[int]:
    """How many runs of each key are live, in one look."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COUNT(*) FROM runstore_run WHERE status = 'running' GROUP BY concurrency_key"
        )
        return [count for (count,) in cursor.fetchall()]
