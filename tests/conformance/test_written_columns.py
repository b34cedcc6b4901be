"""Spec 4.3: each operation writes exactly these columns of the row and no others."""

from collections.abc import Callable
from typing import Any

import pytest

from django_runstore import Waiting
from tests.conformance.raw import update_raw
from tests.conformance.world import (
    NO_CLAIM,
    NO_OWNER,
    SUSPENDED,
    A,
    B,
    P,
    World,
    claim_columns,
    fresh_evidence,
    owner_columns,
)

# What no operation here touches: set to values that would show it.
DECORATION = {
    "handler": "report",
    "queue": "slow",
    "priority": 3,
    "concurrency_key": "k",
    "concurrency_limit": 2,
    "deadline_at_ms": 77_000,
    "code_version": "v1",
    "state_version": 4,
    "failure_count": 2,
    "recovery_count": 3,
    "progress_json": "1",
    "progressed_at_ms": 5,
    "result_json": "2",
    "error_json": "3",
    "waiting_reason": "approval",
    "waiting_wake_at_ms": 8,
    "waiting_token": "t",
    "waiting_request": "{}",
    "journal_seq": 6,
}


# The database's own doing.
DERIVED = {"revision", "revision_xid", "claim_order_ms"}


@pytest.fixture
def world(world: World) -> World:
    world.pending()
    update_raw("run", **DECORATION)
    world.clock.set(1_000)
    return world


@pytest.fixture
def written(world: World) -> Callable[..., dict[str, Any]]:
    """
    Run an operation, check its outcome, and give the columns that it changed.

    Unless it is a beat or progress it is one change, in one update of the row, and the
    database has stamped the row so.
    """

    def run(operation: Callable[[], Any], code: str, *, is_change: bool = True) -> dict[str, Any]:
        before, counted = world.columns(), world.store.revision()
        assert operation().code == code
        after = world.columns()
        assert world.store.revision() == counted + is_change
        assert after["revision"] == (counted + 1 if is_change else before["revision"])
        return difference(before, after)

    return run


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What an operation wrote."""
    return {
        name: after[name] for name in after if after[name] != before[name] and name not in DERIVED
    }


def own(world: World) -> None:
    assert world.store.claim_and_own("run", P, A, 1_000).code == "activated"


def own_and_go_stale(world: World):
    own(world)
    world.clock.set(32_000)
    return world.store.get("run")


def changed(*parts: dict[str, object], **columns: object) -> dict[str, object]:
    return {name: value for part in (*parts, columns) for name, value in part.items()}


def test_claim(world: World, written):
    columns = written(lambda: world.store.claim("run", P, A, 900), "claimed")
    assert columns == changed(claim_columns(A, 900), fence=1, ownership_seq=1)


def test_claim_and_own_of_a_pending_run(world: World, written):
    columns = written(lambda: world.store.claim_and_own("run", P, A, 900), "activated")
    assert columns == changed(
        owner_columns(A, 900, 1),
        status="running",
        started_at_ms=900,
        started_at=columns["started_at"],
        fence=1,
        ownership_seq=2,
    )


def test_claim_and_own_of_a_suspended_run(world: World, written):
    own(world)
    world.store.transition_owned("run", A, "suspended")
    world.clock.set(2_000)
    columns = written(lambda: world.store.claim_and_own("run", SUSPENDED, B, 2_000), "activated")
    assert columns == changed(
        owner_columns(B, 2_000, 2), status="running", fence=2, ownership_seq=5
    )


def test_claim_and_own_of_ones_own_stale_run(world: World, written):
    seen = own_and_go_stale(world)
    columns = written(lambda: world.store.claim_and_own("run", seen, A, 32_000), "activated")
    assert columns == {
        "heartbeat_at_ms": 32_000,
        "owner_fence": 2,
        "fence": 2,
        "ownership_seq": 5,
    }


def test_claim_and_own_of_a_dead_owners_run(world: World, written):
    seen = own_and_go_stale(world)
    evidence = fresh_evidence(A, B, 32_000)
    columns = written(
        lambda: world.store.claim_and_own("run", seen, B, 32_000, evidence), "activated"
    )
    # Both run on one host, so the host column does not change.
    expected = changed(owner_columns(B, 32_000, 2), fence=2, ownership_seq=4)
    del expected["owner_host_id"]
    assert columns == expected


def test_activate(world: World, written):
    world.store.claim("run", P, A, 900)
    columns = written(lambda: world.store.activate("run", A, 900, P), "activated")
    assert columns == changed(
        owner_columns(A, 1_000, 1),
        NO_CLAIM,
        status="running",
        started_at_ms=1_000,
        started_at=columns["started_at"],
        ownership_seq=2,
    )


def test_activate_of_a_changed_run(world: World, written):
    world.store.claim("run", P, A, 900)
    columns = written(lambda: world.store.activate("run", A, 900, SUSPENDED), "snapshot_changed")
    assert columns == changed(NO_CLAIM, ownership_seq=2)


def test_abandon_claim(world: World, written):
    world.store.claim("run", P, A, 900)
    columns = written(lambda: world.store.abandon_claim("run", A, 900), "abandoned")
    assert columns == changed(NO_CLAIM, ownership_seq=2)


def test_recover_claim(world: World, written):
    world.store.claim("run", P, A, 900)
    world.clock.set(32_000)
    evidence = fresh_evidence(A, B, 32_000)
    columns = written(
        lambda: world.store.recover_claim("run", A, 900, B, 32_000, evidence), "recovered"
    )
    assert columns == changed(NO_CLAIM, ownership_seq=2)


def test_steal(world: World, written):
    seen = own_and_go_stale(world)
    columns = written(lambda: world.steal(B, seen), "claimed")
    assert columns == changed(claim_columns(B, 32_000), fence=2, ownership_seq=3)


@pytest.mark.parametrize("operation", ["heartbeat", "reconfirm"])
def test_a_beat(world: World, written, operation):
    own(world)
    columns = written(
        lambda: getattr(world.store, operation)("run", A, 1_500), "updated", is_change=False
    )
    assert columns == {"heartbeat_at_ms": 1_500}


def test_a_save(world: World, written):
    own(world)
    columns = written(
        lambda: world.store.transition_owned("run", A, "running", "[1]"), "transitioned"
    )
    assert columns == {"state_json": "[1]"}


def test_a_suspension(world: World, written):
    own(world)
    world.clock.set(3_000)
    columns = written(lambda: world.store.transition_owned("run", A, "suspended"), "transitioned")
    assert columns == changed(NO_OWNER, status="suspended", available_at_ms=3_000, ownership_seq=3)


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_settlement(world: World, written, status):
    own(world)
    world.clock.set(3_000)
    columns = written(lambda: world.store.transition_owned("run", A, status, "[2]"), "transitioned")
    # What an earlier execution failed with is no error of a run that went well.
    error = {"error_json": None} if status == "completed" else {}
    assert columns == changed(
        NO_OWNER,
        error,
        status=status,
        finished_at_ms=3_000,
        finished_at=columns["finished_at"],
        state_json="[2]",
        ownership_seq=3,
    )


def test_a_request(world: World, written):
    columns = written(lambda: world.store.request_cancel("run", 5), "cancel_requested")
    assert columns == {"cancel_requested_at_ms": 5}


def test_a_request_of_a_lineage(world: World, written):
    columns = written(lambda: world.store.request_cancel_lineage("run", 5), "cancel_requested")
    assert columns == {"cancel_requested_at_ms": 5}


def test_save_progress(world: World, written):
    own(world)
    columns = written(
        lambda: world.store.save_progress(
            "run", A, fence=1, progress_json='{"done":1}', state_json="[3]", now_ms=1_100
        ),
        "updated",
    )
    assert columns == {
        "progress_json": '{"done":1}',
        "state_json": "[3]",
        "progressed_at_ms": 1_100,
        "recovery_count": 0,
    }


def test_progress_alone(world: World, written):
    own(world)
    world.store.save_progress("run", A, fence=1, progress_json="1")
    columns = written(
        lambda: world.store.save_progress("run", A, fence=1, progress_json='"half"', now_ms=1_200),
        "updated",
        is_change=False,
    )
    assert columns == {"progress_json": '"half"', "progressed_at_ms": 1_200}


def test_park(world: World, written):
    own(world)
    columns = written(
        lambda: world.store.park("run", Waiting("signal", None, None, "[]"), A, fence=1), "parked"
    )
    assert columns == {
        "waiting_reason": "signal",
        "waiting_wake_at_ms": None,
        "waiting_token": None,
        "waiting_request": "[]",
    }


NOT_WAITING = {
    "waiting_reason": None,
    "waiting_wake_at_ms": None,
    "waiting_token": None,
    "waiting_request": None,
}


@pytest.mark.parametrize(
    ("available_at_ms", "written_at_ms"),
    [(None, 7_000), (9_000, 7_000), (7_000, None), (6_999, None)],
)
def test_wake_of_a_suspended_run(world: World, written, available_at_ms, written_at_ms):
    own(world)
    world.store.transition_owned("run", A, "suspended", available_at_ms=available_at_ms)
    world.clock.set(7_000)
    columns = written(lambda: world.store.wake("run"), "woken")
    available = {} if written_at_ms is None else {"available_at_ms": written_at_ms}
    assert columns == changed(NOT_WAITING, available)


def test_wake_of_a_running_run(world: World, written):
    own(world)
    assert written(lambda: world.store.wake("run"), "woken") == NOT_WAITING


def test_claim_many(world: World):
    before = world.columns()
    (claimed,) = world.store.claim_many(A, 1, code_version="v2")
    after = world.columns()
    columns = difference(before, after)
    assert after["revision"] == before["revision"] + 1
    assert claimed.fence == 1
    assert columns == changed(
        owner_columns(A, 1_000, 1),
        status="running",
        started_at_ms=1_000,
        started_at=columns["started_at"],
        fence=1,
        ownership_seq=2,
        code_version="v2",
        **NOT_WAITING,
    )
    assert claimed.run == world.store.get("run")


@pytest.mark.parametrize("operation", ["claim_and_own", "activate", "claim_many"])
def test_becoming_owned_clears_an_end_that_another_program_wrote(world: World, operation):
    update_raw("run", finished_at_ms=3)
    if operation == "claim_many":
        assert len(world.store.claim_many(A, 1)) == 1
    elif operation == "claim_and_own":
        own(world)
    else:
        world.store.claim("run", P, A, 1_000)
        world.store.activate("run", A, 1_000, P)
    row = world.store.get("run")
    assert (row.status, row.finished_at_ms) == ("running", None)


@pytest.mark.parametrize("status", ["running", "suspended"])
def test_going_on_clears_an_end_that_another_program_wrote(world: World, status):
    own(world)
    update_raw("run", finished_at_ms=3)
    world.store.transition_owned("run", A, status)
    assert world.store.get("run").finished_at_ms is None
