"""Faults that other projects had, as small cases here: old reads and old executions."""

import pytest

from django_runstore import LivenessEvidence, OwnerId, RunConstraint, RunSnapshot
from django_runstore.models import JournalEntry
from django_runstore.outcomes import (
    Activated,
    Claimed,
    FenceLost,
    SnapshotChanged,
    Transitioned,
    Updated,
)
from django_runstore.snapshots import OwnedTransition
from tests.conformance.race import race
from tests.conformance.world import A, B, C, P, World, fresh_evidence, tables

pytestmark = pytest.mark.django_db(transaction=True)

STALE = 31_000


@pytest.fixture
def world() -> World:
    return World()


def elsewhere(action):
    """Act on a connection of one's own, as another process does."""
    (answer,) = race(action)
    return answer


def old_writes(world: World, owner: OwnerId, fence: int) -> list[object]:
    """Everything that an execution which lost its run may still try."""
    store = world.store
    moved = OwnedTransition("run", fence, "completed", state_json='"old"')
    return [
        store.heartbeat("run", owner, fence=fence),
        store.reconfirm("run", owner, fence=fence),
        store.heartbeat_many(owner, [("run", fence)])["run"],
        store.save_progress("run", owner, fence=fence, state_json='"old"'),
        store.transition_owned("run", owner, "running", '"old"', fence=fence),
        store.transition_owned("run", owner, "completed", '"old"', fence=fence),
        store.transition_many(owner, [moved])["run"],
    ]


# --- case 1: the displaced worker finishes after all ---------------------------------------


def test_case_1_a_frozen_owner_that_was_displaced_changes_nothing(world: World):
    seen = world.active(A)
    world.clock.set(STALE)
    evidence = fresh_evidence(A, B, STALE)
    assert elsewhere(lambda: world.store.claim_and_own("run", seen, B, STALE, evidence)) == (
        Activated(2)
    )
    before = tables()
    assert old_writes(world, A, fence=1) == [FenceLost()] * 7
    assert world.store.acknowledge_cancel("run", A, fence=1) is False
    assert tables() == before
    assert world.store.transition_owned("run", B, "completed", fence=2) == Transitioned()


# --- case 3: the rescuer acts on an old read -------------------------------------------------


@pytest.mark.parametrize("operation", ["steal", "claim_and_own"])
def test_case_3_a_run_completed_after_the_sweeper_read_it_stays_completed(world: World, operation):
    seen = world.active(A)
    world.clock.set(STALE)
    elsewhere(lambda: world.store.transition_owned("run", A, "completed", '"done"', fence=1))
    before = tables()
    assert sweep(world, operation, seen) == SnapshotChanged()
    assert tables() == before


@pytest.mark.parametrize("operation", ["steal", "claim_and_own"])
def test_case_3_a_run_that_another_took_after_the_sweeper_read_it_stays_with_it(
    world: World, operation
):
    seen = world.active(A)
    world.clock.set(STALE)
    evidence = fresh_evidence(A, C, STALE)
    elsewhere(lambda: world.store.claim_and_own("run", seen, C, STALE, evidence))
    world.clock.set(STALE * 3)
    before = tables()
    assert sweep(world, operation, seen) == SnapshotChanged()
    assert tables() == before


def sweep(world: World, operation: str, seen: RunSnapshot) -> object:
    """Act on a read that has grown old, with evidence of this moment."""
    evidence = LivenessEvidence(A, world.now, "same-host-pid-dead")
    return getattr(world.store, operation)("run", seen, B, world.now, evidence)


def test_case_3_a_claim_made_again_after_the_sweeper_read_it_is_not_cleared(world: World):
    first = world.claimed(A)
    world.clock.set(STALE)
    world.store.abandon_claim("run", A, first.claimed_at_ms)
    world.reclaimed(C)
    before = tables()
    evidence = fresh_evidence(A, B, STALE)
    answer = world.store.recover_claim("run", A, first.claimed_at_ms, B, STALE, evidence)
    assert answer.code == "claim_changed"
    assert tables() == before


# --- case 41: the same supervisor, twice ------------------------------------------------------


def test_case_41_an_old_execution_is_refused_after_put_back_and_reclaim_by_its_own_process(
    world: World,
):
    world.active(A)
    world.store.transition_owned("run", A, "suspended", '"put back"', fence=1)
    ((again),) = elsewhere(lambda: world.store.claim_many(A, 1))
    assert again.fence == 2
    before = tables()
    assert old_writes(world, A, fence=1) == [FenceLost()] * 7
    assert tables() == before
    assert world.store.heartbeat("run", A, fence=2) == Updated()
    assert world.store.transition_owned("run", A, "completed", '"new"', fence=2) == Transitioned()
    assert world.store.get("run").state_json == '"new"'


def test_case_41_a_neighbour_of_the_lost_run_is_not_touched(world: World):
    world.active(A, "neighbour")
    world.active(A)
    world.store.transition_owned("run", A, "suspended", fence=1)
    world.store.claim_and_own("run", world.store.get("run"), B)
    answers = world.store.transition_many(
        A, [OwnedTransition("run", 1, "failed"), OwnedTransition("neighbour", 1, "completed")]
    )
    assert answers == {"run": FenceLost(), "neighbour": Transitioned()}
    assert world.store.get("run").owner == B


def test_an_old_claim_of_the_same_process_cannot_be_spent_in_place_of_the_new_one(world: World):
    first = world.claimed(A)
    world.store.abandon_claim("run", A, first.claimed_at_ms)
    # In the very same millisecond, so that only the fence tells the two apart.
    second = world.reclaimed(A)
    assert (first, second) == (Claimed(0, 1), Claimed(0, 2))
    assert world.store.activate("run", A, 0, P, fence=1).code == "claim_lost"
    assert world.store.abandon_claim("run", A, 0, fence=1).code == "claim_lost"
    assert world.store.activate("run", A, 0, P, fence=2) == Activated(2)


# --- case 28: the journal cannot be written ---------------------------------------------------


def test_case_28_a_fact_that_the_database_refuses_undoes_the_whole_operation(world: World):
    world.active(A)
    (fact, *_) = JournalEntry.objects.filter(run_id="run").order_by("seq")
    # The place of the next fact is taken.
    JournalEntry.unguarded.create(
        run_id="run",
        companion=fact.companion,
        seq=2,
        source_id="somebody",
        source_hash=b"else",
        source_seq=0,
        emitted_at_ms=0,
        event_type="runstore.ownership.released",
        payload_json="{}",
    )
    before = tables()
    for settle in (
        lambda: world.store.transition_owned("run", A, "completed", '"done"', fence=1),
        lambda: world.store.transition_many(A, [OwnedTransition("run", 1, "completed")]),
    ):
        with pytest.raises(RunConstraint):
            settle()
        assert tables() == before
    assert world.store.heartbeat("run", A, fence=1) == Updated()
