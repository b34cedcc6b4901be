"""What only two real connections can show of attempts: a displaced owner changes no byte."""

import threading
import time
from dataclasses import replace

import pytest
from django.db import connection, transaction

from django_runstore.attempts import AttemptPatch
from django_runstore.outcomes import (
    Activated,
    ExistingSame,
    FenceLost,
    Finished,
    Inserted,
    StateChanged,
    Transitioned,
    Updated,
)
from django_runstore.services import AttemptStore
from tests.conformance.attempts import DIGEST, FINISHED, ID, RUNNING, rows
from tests.conformance.race import DEADLINE_SECONDS, elsewhere_locked, race
from tests.conformance.world import A, B, World, fresh_evidence

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 8

# Writes of an owner, each with something of its own in every byte it would leave.
LATE = {
    "put": lambda store, n, fence: store.put(
        replace(RUNNING, attempt=n, meta=f"late {n}"), A, fence=fence
    ),
    "heartbeat": lambda store, n, fence: store.heartbeat(
        "run", DIGEST, 0, A, 1_000 + n, f"late {n}", fence=fence
    ),
    "finish": lambda store, n, fence: store.finish(
        replace(FINISHED, attempt=n, outcome=f"late {n}"), A, fence=fence
    ),
    "patch": lambda store, n, fence: store.patch(
        ID, AttemptPatch(error=f"late {n}"), A, fence=fence
    ),
}


@pytest.fixture
def world() -> World:
    return World()


def attempts_of(world: World, count: int) -> AttemptStore:
    """A store over a run of A's with so many attempts in progress, and a stale heartbeat."""
    world.active(A)
    store = AttemptStore()
    with transaction.atomic():
        for number in range(count):
            assert store.put(replace(RUNNING, attempt=number), A, fence=1) == Inserted()
    world.clock.set(31_000)
    return store


@pytest.mark.conformance(175)
@pytest.mark.parametrize("fence", [1, None], ids=["with its fence", "by identity"])
@pytest.mark.parametrize("write", LATE)
def test_nothing_changes_once_another_owns_the_run(world: World, write, fence):
    most = 500
    store = attempts_of(world, most if write == "finish" else 1)
    seen = world.store.get("run")
    evidence = fresh_evidence(A, B, 31_000)
    begun, taken_over = threading.Event(), threading.Event()

    def write_on() -> list:
        answers = []
        for number in range(1, most):
            answers.append(LATE[write](store, number, fence))
            begun.set()
            # A breath for the other: SQLite's lock goes to whoever asks at the right moment.
            if taken_over.wait(0.002) and answers[-10:] == [FenceLost()] * 10:
                break
        return answers

    def take_over() -> tuple:
        assert begun.wait(DEADLINE_SECONDS)
        answer = world.store.claim_and_own("run", seen, B, 31_000, evidence)
        found = rows()
        taken_over.set()
        return answer, found

    answers, (answer, found) = race(write_on, take_over)

    assert answer == Activated(2)
    made = len(answers) - answers.count(FenceLost())
    assert made >= 1
    assert answers.count(FenceLost()) >= 1, "the owner was never late"
    # Made writes first, then losses: there is no way back.
    assert FenceLost() not in answers[:made]
    assert rows() == found
    late = sum("late" in str(row) for row in found)
    assert late == (made if write in {"put", "finish"} else 1)


def test_a_late_finish_and_the_successors_exclude_each_other(world: World):
    store = AttemptStore()
    for number in range(ROUNDS):
        run_id = f"run-{number}"
        world.clock.set(0)
        seen = world.active(A, run_id)
        mine = replace(RUNNING, run_id=run_id)
        store.put(mine, A, fence=1)
        world.clock.set(31_000)
        evidence = fresh_evidence(A, B, 31_000)
        end = replace(FINISHED, run_id=run_id)

        def take_and_finish(run_id=run_id, seen=seen, evidence=evidence, end=end):
            world.store.claim_and_own(run_id, seen, B, 31_000, evidence)
            return store.finish(replace(end, outcome="b"), B, fence=2)

        old, new = race(
            lambda end=end: store.finish(replace(end, outcome="a"), A, fence=1), take_and_finish
        )
        if old == Finished():
            assert (new, store.get(mine).outcome) == (StateChanged(), "a")
        else:
            assert (old, new) == (FenceLost(), Finished())
            assert store.get(mine).outcome == "b"


def test_of_two_puts_of_one_attempt_one_is_stored(world: World):
    store = attempts_of(world, 0)
    for number in range(ROUNDS):
        attempt = replace(RUNNING, attempt=number)
        answers = race(
            lambda attempt=attempt: store.put(replace(attempt, meta="x"), A),
            lambda attempt=attempt: store.put(replace(attempt, meta="y"), A),
        )
        assert sorted(answer.code for answer in answers) == ["conflict", "inserted"]
        won = "xy"[answers.index(Inserted())]
        assert store.get(attempt).meta == won
    same = replace(RUNNING, attempt=ROUNDS)
    answers = race(*[lambda: store.put(same, A)] * 4)
    assert sorted(answer.code for answer in answers) == ["existing_same"] * 3 + ["inserted"]


def test_attempts_and_transitions_of_one_run_wait_for_each_other_and_never_lock_up(world: World):
    store = attempts_of(world, 1)

    def put_many() -> list:
        return [store.put(replace(RUNNING, attempt=n), A, fence=1) for n in range(1, 40)]

    def save_many() -> list:
        return [world.store.save_progress("run", A, fence=1, state_json=str(n)) for n in range(40)]

    def move_many() -> list:
        return [world.store.transition_owned("run", A, "running", fence=1) for _ in range(40)]

    puts, saves, moves, again = race(put_many, save_many, move_many, put_many)
    assert {*saves} == {Updated()}
    assert {*moves} == {Transitioned()}
    for pair in zip(puts, again, strict=True):
        assert set(pair) == {Inserted(), ExistingSame()}


@pytest.mark.postgres("SQLite has one writer: nobody waits for a row")
def test_a_put_waits_for_the_run_before_it_touches_an_attempt(world: World):
    store = attempts_of(world, 0)
    answers: list = []
    putting = threading.Thread(target=lambda: answers.extend(race(lambda: store.put(RUNNING, A))))
    with elsewhere_locked("run"):
        putting.start()
        wait_for_a_lock()
        assert rows() == []
    putting.join(DEADLINE_SECONDS)
    assert answers == [Inserted()]


def wait_for_a_lock() -> None:
    """Wait until a connection of this database waits for a lock."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    with connection.cursor() as cursor:
        while True:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                " AND datname = current_database()"
            )
            if cursor.fetchone() != (0,):
                return
            assert time.monotonic() < deadline
            time.sleep(0.02)
