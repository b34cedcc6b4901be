"""Parking, waking and taking runs at one moment, on connections of one's own."""

import pytest
from django.db import transaction

from django_runstore import Waiting
from django_runstore.outcomes import FenceLost, NotWaiting, Parked, Woken
from tests.conformance.race import race
from tests.conformance.world import A, B, World, fresh_evidence

pytestmark = [
    pytest.mark.django_db(transaction=True),
    # A race has to be run several times to be lost either way.
    pytest.mark.parametrize("attempt", range(8)),
]

SIGNAL = Waiting("approval", None, "t-1", "{}")
DUE = Waiting("timer", 0)


def park_and_suspend(world: World, waiting: Waiting) -> None:
    with transaction.atomic():
        assert world.store.park("run", waiting, A) == Parked()
        world.store.transition_owned("run", A, "suspended", available_at_ms=waiting.wake_at_ms)


@pytest.fixture
def world() -> World:
    world = World()
    world.active(A)
    return world


def test_of_two_who_wake_at_once_one_has_woken_it(world: World, attempt):
    park_and_suspend(world, SIGNAL)
    answers = race(lambda: world.store.wake("run"), lambda: world.store.wake("run"))
    assert {type(answer) for answer in answers} == {Woken, NotWaiting}


def test_a_run_woken_while_it_is_parked_and_suspended_is_not_lost(world: World, attempt):
    _, woken = race(lambda: park_and_suspend(world, SIGNAL), lambda: world.store.wake("run"))
    row = world.store.get("run")
    # Either it came first and found nobody waiting, or it found the whole of it.
    assert row.status == "suspended"
    assert (row.available_at_ms, row.waiting_reason) == (
        (0, None) if woken == Woken() else (None, "approval")
    )


def test_a_run_woken_while_it_is_claimed_has_one_owner_and_waits_no_more(world: World, attempt):
    park_and_suspend(world, DUE)
    claimed, woken = race(lambda: world.store.claim_many(B, 10), lambda: world.store.wake("run"))
    # A row that the other holds is passed over; the next look finds it.
    claimed = claimed or world.store.claim_many(B, 10)
    assert [each.run.run_id for each in claimed] == ["run"]
    assert woken in (Woken(), NotWaiting())
    assert world.store.waiting("run") is None
    assert world.store.get("run").owner == B


def test_an_owner_and_the_one_who_takes_over_do_not_both_park(world: World, attempt):
    seen = world.store.get("run")
    world.clock.set(31_000)
    evidence = fresh_evidence(A, B, 31_000)
    parked_as, taken = race(
        lambda: world.store.park("run", SIGNAL, A, fence=1),
        lambda: world.store.claim_and_own("run", seen, B, 31_000, evidence),
    )
    assert taken.code == "activated"
    assert world.store.waiting("run") == (SIGNAL if parked_as == Parked() else None)
    assert world.store.park("run", DUE, A, fence=1) == FenceLost()
    assert world.store.park("run", DUE, B, fence=2) == Parked()
