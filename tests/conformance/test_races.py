"""Conformance notes 13, 16 and 95, and what else only two real connections can show."""

from collections import Counter

import pytest

from django_runstore import OwnerId, TransitionGuard
from django_runstore.outcomes import (
    Activated,
    AlreadyClaimed,
    AlreadyRequested,
    CancelRequested,
    Claimed,
    FenceLost,
    GuardFailed,
    HeartbeatFresh,
    SnapshotChanged,
    Transitioned,
    Updated,
)
from tests.conformance.race import race
from tests.conformance.world import A, B, P, World, fresh_evidence, tables

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 8


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.conformance(13)
def test_of_two_claims_of_one_snapshot_one_wins(world: World):
    for number in range(ROUNDS):
        run_id = world.pending(f"run-{number}")
        answers = race(
            lambda run_id=run_id: world.store.claim(run_id, P, A, 0),
            lambda run_id=run_id: world.store.claim(run_id, P, B, 0),
        )
        winners = [answer for answer in answers if isinstance(answer, Claimed)]
        (loser,) = [answer for answer in answers if not isinstance(answer, Claimed)]
        assert winners == [Claimed(0, fence=1)]
        assert loser in (AlreadyClaimed(), SnapshotChanged())
        assert world.fact_names(run_id) == ["claimed"]


@pytest.mark.conformance(16)
def test_of_two_claim_and_owns_of_one_snapshot_one_wins(world: World):
    for number in range(ROUNDS):
        run_id = world.pending(f"run-{number}")
        answers = race(
            lambda run_id=run_id: world.store.claim_and_own(run_id, P, A, 0),
            lambda run_id=run_id: world.store.claim_and_own(run_id, P, B, 0),
        )
        won = [isinstance(answer, Activated) for answer in answers]
        assert sorted(won) == [False, True]
        assert answers[won.index(False)] in (HeartbeatFresh(), SnapshotChanged())
        assert world.store.get(run_id).owner == (A, B)[won.index(True)]
        assert world.fact_names(run_id) == ["claimed", "activated"]


@pytest.mark.conformance(95)
def test_of_three_requests_one_is_recorded(world: World):
    for number in range(ROUNDS):
        run_id = world.pending(f"run-{number}")
        answers = race(
            *(
                lambda run_id=run_id, at=at: world.store.request_cancel(run_id, at)
                for at in (100, 200, 300)
            )
        )
        (winner,) = [answer for answer in answers if isinstance(answer, CancelRequested)]
        losers = [answer for answer in answers if answer is not winner]
        assert losers == [AlreadyRequested(winner.requested_at_ms)] * 2
        assert world.store.get(run_id).cancel_requested_at_ms == winner.requested_at_ms


def test_completion_and_cancellation_exclude_each_other(world: World):
    for number in range(ROUNDS):
        run_id = f"run-{number}"
        world.active(A, run_id)
        requested, completed = race(
            lambda run_id=run_id: world.store.request_cancel(run_id, 1),
            lambda run_id=run_id: world.store.transition_owned(
                run_id, A, "completed", None, TransitionGuard("absent")
            ),
        )
        row = world.store.get(run_id)
        if completed == Transitioned():
            assert requested.code == "terminal"
            assert (row.status, row.cancel_requested_at_ms) == ("completed", None)
        else:
            assert completed == GuardFailed()
            assert requested == CancelRequested(1)
            assert (row.status, row.cancel_requested_at_ms) == ("running", 1)


def test_a_beat_and_a_takeover_exclude_each_other(world: World):
    for number in range(ROUNDS):
        run_id = f"run-{number}"
        world.clock.set(0)
        seen = world.active(A, run_id)
        world.clock.set(31_000)
        evidence = fresh_evidence(A, B, 31_000)
        beat, taken = race(
            lambda run_id=run_id: world.store.heartbeat(run_id, A, 31_000),
            lambda run_id=run_id, seen=seen, evidence=evidence: world.store.claim_and_own(
                run_id, seen, B, 31_000, evidence
            ),
        )
        owner = world.store.get(run_id).owner
        if isinstance(taken, Activated):
            assert (beat, owner) == (FenceLost(), B)
        else:
            assert taken == HeartbeatFresh()
            assert (beat, owner) == (Updated(), A)


def test_supervisors_that_claim_side_by_side_share_the_runs_out(world: World):
    for number in range(40):
        world.pending(f"run-{number:02}")
    owners = [OwnerId("host-a", 200 + n, f"supervisor-{n}") for n in range(4)]
    claims = race(*(lambda owner=owner: claim_everything(world, owner) for owner in owners))
    counts = Counter(run_id for claimed in claims for run_id in claimed)
    assert counts == {f"run-{number:02}": 1 for number in range(40)}
    for owner, claimed in zip(owners, claims, strict=True):
        assert {world.store.get(run_id).owner for run_id in claimed} <= {owner}
    _, entries = tables()
    assert len(entries) == 2 * 40


def claim_everything(world: World, owner: OwnerId) -> list[str]:
    claimed: list[str] = []
    while batch := world.store.claim_many(owner, 3):
        claimed += [each.run.run_id for each in batch]
    return claimed


def test_no_save_of_many_is_lost(world: World):
    world.active(A)
    writers = [
        lambda n=n: [
            world.store.save_progress("run", A, fence=1, progress_json=f"[{n}]"),
            world.store.heartbeat("run", A, n),
            world.store.request_cancel("run", n),
        ]
        for n in range(6)
    ]
    answers = race(*writers)
    assert all(answer[:2] == [Updated(), Updated()] for answer in answers)
    row = world.store.get("run")
    assert row.heartbeat_at_ms == 5
    assert sum(isinstance(answer[2], CancelRequested) for answer in answers) == 1
