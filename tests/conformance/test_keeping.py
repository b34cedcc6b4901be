"""Conformance notes, sections B and S: heartbeat and reconfirm."""

import math

import pytest

from django_runstore import InvalidRun
from django_runstore.arbiters import LocalArbiter
from django_runstore.outcomes import FenceLost, NotFound, Updated
from tests.conformance.raw import update_raw
from tests.conformance.world import SKEW, A, B, World, owner_columns

BOTH = pytest.mark.parametrize("operation", ["heartbeat", "reconfirm"])


@BOTH
@pytest.mark.conformance(33, 42)
def test_a_missing_run_is_not_found(store, operation):
    assert getattr(store, operation)("nobody", A, 0) == NotFound()


@BOTH
@pytest.mark.conformance(42)
def test_an_owner_that_suspended_its_run_has_lost_it(world: World, operation):
    world.active(A)
    world.store.transition_owned("run", A, "suspended")
    assert getattr(world.store, operation)("run", A, 0) == FenceLost()


@BOTH
def test_a_stranger_has_no_run_to_keep(world: World, operation):
    world.active(A)
    assert getattr(world.store, operation)("run", B, 0) == FenceLost()


@BOTH
def test_a_claim_is_not_ownership(world: World, operation):
    world.claimed(A)
    assert getattr(world.store, operation)("run", A, 0) == FenceLost()


@BOTH
@pytest.mark.conformance(207)
def test_the_stamp_moves_forward_only(world: World, operation):
    world.active(A)
    world.clock.set(250)
    stamps = []
    for reading in (200, 150, 250):
        assert getattr(world.store, operation)("run", A, reading) == Updated()
        stamps.append(world.store.get("run").heartbeat_at_ms)
    assert stamps == [200, 200, 250]


@BOTH
@pytest.mark.conformance(208)
@pytest.mark.parametrize("reading", [-1, 1.5, math.nan, math.inf, 1.0, True, "1", 2**53])
def test_a_reading_that_is_no_timestamp_is_refused(world: World, operation, reading):
    world.active(A)
    before = world.columns()
    with pytest.raises(InvalidRun) as caught:
        getattr(world.store, operation)("run", A, reading)
    assert caught.value.operation == operation
    assert caught.value.detail == {
        "field": "now_ms",
        "detail": "must be a non-negative safe integer",
    }
    assert world.columns() == before


@BOTH
@pytest.mark.conformance(209)
def test_a_reading_may_lead_the_clock_by_exactly_the_skew_allowance(world: World, operation):
    world.active(A)
    assert getattr(world.store, operation)("run", A, SKEW) == Updated()
    assert world.store.get("run").heartbeat_at_ms == SKEW


@BOTH
@pytest.mark.conformance(209)
def test_a_reading_one_past_the_skew_allowance_is_refused(world: World, operation):
    world.active(A)
    with pytest.raises(InvalidRun):
        getattr(world.store, operation)("run", A, SKEW + 1)
    assert world.store.get("run").heartbeat_at_ms == 0


@BOTH
@pytest.mark.conformance("D12")
def test_an_omitted_reading_is_the_clocks(world: World, operation):
    world.active(A)
    world.clock.set(777.9)
    assert getattr(world.store, operation)("run", A) == Updated()
    assert world.store.get("run").heartbeat_at_ms == 777


@BOTH
def test_a_stale_lease_nobody_has_claimed_is_renewed(world: World, operation):
    world.active(A)
    world.clock.set(100_000)
    assert getattr(world.store, operation)("run", A, 100_000) == Updated()


def test_a_heartbeat_succeeds_while_a_thiefs_claim_is_pending(world: World):
    seen = world.active(A)
    world.clock.advance(31_000)
    world.steal(B, seen)
    assert world.store.heartbeat("run", A, 31_000) == Updated()


def test_a_reconfirmation_is_lost_once_a_thief_has_claimed(world: World):
    seen = world.active(A)
    world.clock.advance(31_000)
    stolen = world.steal(B, seen)
    before = world.columns()
    assert world.store.reconfirm("run", A, 31_000) == FenceLost()
    assert world.columns() == before
    world.store.activate("run", B, stolen.claimed_at_ms, seen)
    assert world.store.reconfirm("run", A, 31_000) == FenceLost()
    assert world.store.reconfirm("run", B, 31_000) == Updated()


def test_a_reconfirmation_is_possible_again_after_the_thief_gave_up(world: World):
    seen = world.active(A)
    world.clock.advance(31_000)
    stolen = world.steal(B, seen)
    world.store.abandon_claim("run", B, stolen.claimed_at_ms)
    assert world.store.reconfirm("run", A, 31_000) == Updated()


@pytest.mark.conformance("D1")
@BOTH
def test_a_run_made_running_by_sql_is_owned(database_world: World, operation):
    database_world.pending()
    update_raw("run", status="running", fence=1, **owner_columns(A, 0, 1))
    assert getattr(database_world.store, operation)("run", A, 0, fence=1) == Updated()


def test_a_lease_that_renews_over_a_row_of_another_owner_is_lost(db):
    # Only an arbiter with a memory of its own can disagree with the row.
    world = World(LocalArbiter())
    world.active(A)
    update_raw("run", **owner_columns(B, 0, 1))
    assert world.store.heartbeat("run", A, 0) == FenceLost()
    assert world.store.get("run").owner == B
