"""Conformance notes, sections B and G: transition_owned."""

import pytest

from django_runstore import InvalidRun, TransitionGuard
from django_runstore.outcomes import (
    CancelRequested,
    FenceLost,
    GuardFailed,
    NotFound,
    Transitioned,
)
from tests.conformance.raw import update_raw
from tests.conformance.world import (
    NO_CLAIM,
    NO_OWNER,
    SAFE,
    A,
    B,
    World,
    owner_columns,
    running,
    tables,
)

ABSENT, PRESENT = TransitionGuard("absent"), TransitionGuard("present")
TERMINAL = ("completed", "failed", "cancelled")


@pytest.mark.conformance(33)
def test_a_transition_of_a_missing_run_is_not_found(store):
    assert store.transition_owned("nobody", A, "completed") == NotFound()


@pytest.mark.conformance(34)
def test_a_save_replaces_the_state_only_when_one_is_given(world: World):
    world.active(A)
    assert world.store.transition_owned("run", A, "running", '{"n":1}') == Transitioned()
    assert world.store.get("run").state_json == '{"n":1}'
    assert world.store.transition_owned("run", A, "running") == Transitioned()
    row = world.store.get("run")
    assert (row.state_json, row.snapshot) == ('{"n":1}', running(A, 0))


@pytest.mark.conformance(34)
@pytest.mark.parametrize("status", ["running", "suspended", *TERMINAL])
def test_a_transition_by_a_stranger_is_fence_lost(world: World, status):
    world.active(A)
    before = world.columns()
    assert world.store.transition_owned("run", B, status, "[]") == FenceLost()
    assert world.columns() == before


@pytest.mark.conformance(35, 92)
@pytest.mark.parametrize("status", ["pending", "paused", "RUNNING", "", None, 1, b"running"])
def test_a_transition_to_no_legal_status_is_refused(world: World, status):
    world.active(A)
    before = world.columns()
    with pytest.raises(InvalidRun) as caught:
        world.store.transition_owned("run", A, status)
    assert caught.value.detail == {
        "field": "to_status",
        "detail": "violates the durable contract",
    }
    assert world.columns() == before


@pytest.mark.conformance(35)
def test_a_transition_with_a_state_that_is_no_json_is_refused(world: World):
    world.active(A)
    with pytest.raises(InvalidRun):
        world.store.transition_owned("run", A, "completed", "{")
    assert world.store.get("run").status == "running"


@pytest.mark.conformance(37)
@pytest.mark.parametrize("status", TERMINAL)
def test_settling_stamps_the_end_and_gives_up_everything(world: World, status):
    world.active(A)
    world.clock.set(7_000)
    assert world.store.transition_owned("run", A, status, '"done"') == Transitioned()
    columns = world.columns()
    assert columns["status"] == status
    assert columns["finished_at_ms"] == 7_000
    assert columns["started_at_ms"] == 0
    assert columns["state_json"] == '"done"'
    assert {name: columns[name] for name in NO_OWNER} == NO_OWNER
    assert {name: columns[name] for name in NO_CLAIM} == NO_CLAIM


def test_suspending_is_no_end(world: World):
    world.active(A)
    world.clock.set(7_000)
    world.store.transition_owned("run", A, "suspended")
    row = world.store.get("run")
    assert (row.finished_at_ms, row.available_at_ms) == (None, 7_000)


@pytest.mark.parametrize("at_ms", [None, 0, 9_000])
def test_a_suspended_run_is_available_when_it_is_said(world: World, at_ms):
    world.active(A)
    world.clock.set(7_000)
    moved = world.store.transition_owned("run", A, "suspended", fence=1, available_at_ms=at_ms)
    assert moved.code == "transitioned"
    assert world.store.get("run").available_at_ms == at_ms


@pytest.mark.parametrize("status", ["running", "completed"])
def test_when_a_run_is_available_is_said_of_suspended_ones_only(world: World, status):
    world.active(A)
    world.store.transition_owned("run", A, status, available_at_ms=9_000)
    assert world.store.get("run").available_at_ms == 0


@pytest.mark.parametrize("at_ms", [-1, 1.0, True, "9", SAFE + 1])
def test_a_time_that_is_none_is_refused(world: World, at_ms):
    world.active(A)
    before = tables()
    with pytest.raises(InvalidRun) as caught:
        world.store.transition_owned("run", A, "suspended", available_at_ms=at_ms)
    assert caught.value.detail["field"] == "available_at_ms"
    assert tables() == before


@pytest.mark.parametrize("status", ["running", "suspended", *TERMINAL])
@pytest.mark.parametrize("settled", TERMINAL)
def test_nothing_leaves_a_terminal_status(world: World, settled, status):
    world.active(A)
    world.store.transition_owned("run", A, settled)
    before = world.columns()
    assert world.store.transition_owned("run", A, status) == FenceLost()
    assert world.columns() == before


def test_a_stale_owner_whose_run_nobody_took_may_still_settle(world: World):
    world.active(A)
    world.clock.set(1_000_000)
    assert world.store.transition_owned("run", A, "completed") == Transitioned()


def test_a_transition_touches_neither_request_nor_acknowledgement_nor_waiting(
    database_world: World,
):
    world = database_world
    world.active(A)
    world.store.request_cancel("run", 5)
    world.store.acknowledge_cancel("run", A, 6)
    waiting = {
        "waiting_reason": "approval",
        "waiting_wake_at_ms": 9,
        "waiting_token": "t",
        "waiting_request": "{}",
    }
    update_raw("run", **waiting)
    kept = ("cancel_requested_at_ms", "cancel_acknowledgement_json", *waiting)
    before = {name: world.columns()[name] for name in kept}
    world.store.transition_owned("run", A, "suspended")
    assert {name: world.columns()[name] for name in kept} == before


@pytest.mark.conformance(87)
def test_completion_under_absent_fails_once_cancellation_is_requested(world: World):
    world.active(A)
    world.store.request_cancel("run", 1)
    before = world.columns()
    assert world.store.transition_owned("run", A, "completed", "[]", ABSENT) == GuardFailed()
    assert world.columns() == before


@pytest.mark.conformance(87)
def test_completion_under_absent_succeeds_without_a_request(world: World):
    world.active(A)
    assert world.store.transition_owned("run", A, "completed", None, ABSENT) == Transitioned()


@pytest.mark.conformance(88)
def test_cancellation_under_present_needs_a_request(world: World):
    world.active(A)
    settle = world.store.transition_owned
    assert settle("run", A, "cancelled", None, PRESENT) == GuardFailed()
    assert world.store.request_cancel("run", 1) == CancelRequested(1)
    assert settle("run", A, "cancelled", None, PRESENT) == Transitioned()
    assert world.store.get("run").status == "cancelled"


@pytest.mark.conformance(89)
def test_the_fence_is_judged_before_the_guard(world: World):
    world.active(A)
    assert world.store.transition_owned("run", B, "completed", None, PRESENT) == FenceLost()
    assert world.store.transition_owned("nobody", A, "completed", None, PRESENT) == NotFound()


@pytest.mark.conformance(90)
def test_a_guarded_save_is_how_an_owner_learns_of_a_request(world: World):
    world.active(A)
    save = world.store.transition_owned
    assert save("run", A, "running", None, ABSENT) == Transitioned()
    world.store.request_cancel("run", 1)
    assert save("run", A, "running", None, ABSENT) == GuardFailed()


@pytest.mark.conformance(80)
def test_an_empty_guard_is_no_condition(world: World):
    world.active(A)
    world.store.request_cancel("run", 1)
    assert world.store.transition_owned("run", A, "running", None, TransitionGuard()).code == (
        "transitioned"
    )


@pytest.mark.conformance("D1")
def test_a_run_made_running_by_sql_can_be_settled_by_its_owner(database_world: World):
    database_world.pending()
    update_raw("run", status="running", fence=1, **owner_columns(A, 0, 1))
    assert database_world.store.transition_owned("run", A, "completed") == Transitioned()
