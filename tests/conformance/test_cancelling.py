"""Conformance notes, section G: metadata, cancellation and its acknowledgement."""

import json
from dataclasses import replace

import pytest

from django_runstore import InvalidRun, RunDecodeFailed, RunPersistenceFailed
from django_runstore.models import Run
from django_runstore.outcomes import AlreadyRequested, CancelRequested, NotFound, Terminal
from django_runstore.snapshots import CancelAcknowledgement
from tests.conformance.raw import checks_off, silent_updates_of, update_raw
from tests.conformance.world import A, B, World, owner_columns, owner_json

TERMINAL = ("completed", "failed", "cancelled")


@pytest.mark.conformance(82)
def test_a_child_names_its_parent_and_neither_has_a_lineage(store):
    store.create("parent", "{}")
    store.create("child", "{}", parent_run_id="parent")
    parent, child = store.get("parent"), store.get("child")
    assert (child.parent_run_id, parent.parent_run_id) == ("parent", None)
    assert (child.lineage_id, parent.lineage_id) == (None, None)


@pytest.mark.conformance(83)
def test_parent_lineage_and_round_read_back(store):
    store.create("parent", "{}")
    store.create("x", "{}", parent_run_id="parent", lineage_id="line", round_ordinal=1)
    row = store.get("x")
    assert (row.parent_run_id, row.lineage_id, row.round_ordinal) == ("parent", "line", 1)


@pytest.mark.conformance(84)
def test_ancestry_is_walkable_in_sql(store):
    store.create("a", "{}")
    store.create("b", "{}", parent_run_id="a")
    store.create("c", "{}", parent_run_id="b")
    walked = Run.objects.raw(
        "WITH RECURSIVE line(run_id, parent_run_id, depth) AS ("
        "SELECT run_id, parent_run_id, 0 FROM runstore_run WHERE run_id = 'c' UNION ALL "
        "SELECT r.run_id, r.parent_run_id, depth + 1 FROM runstore_run r "
        "JOIN line ON r.run_id = line.parent_run_id) SELECT run_id FROM line ORDER BY depth"
    )
    assert [run.run_id for run in walked] == ["c", "b", "a"]


@pytest.mark.conformance(85)
def test_the_first_request_stands(world: World):
    world.pending()
    assert world.store.request_cancel("run", 500) == CancelRequested(500)
    assert world.store.request_cancel("run", 900) == AlreadyRequested(500)
    assert world.store.request_cancel("nobody", 1) == NotFound()
    assert world.store.get("run").cancel_requested_at_ms == 500


@pytest.mark.conformance(86)
@pytest.mark.parametrize("reading", [0, 1, 8_000_000_000_000, 2**53 - 1])
def test_the_time_of_a_request_is_not_compared_with_the_clock(world: World, reading):
    world.clock.set(11_000)
    world.pending()
    assert world.store.request_cancel("run", reading) == CancelRequested(reading)


@pytest.mark.conformance("D12")
def test_an_omitted_time_of_a_request_is_the_clocks(world: World):
    world.clock.set(11_000.7)
    world.pending()
    assert world.store.request_cancel("run") == CancelRequested(11_000)


@pytest.mark.conformance(93)
@pytest.mark.parametrize(
    "options",
    [
        {"parent_run_id": ""},
        {"lineage_id": "line"},
        {"round_ordinal": 0},
        {"lineage_id": "line", "round_ordinal": -1},
        {"lineage_id": "", "round_ordinal": 0},
    ],
)
def test_ancestry_that_says_half_of_it_is_refused(store, options):
    with pytest.raises(InvalidRun) as caught:
        store.create("x", "{}", **options)
    assert caught.value.detail == {
        "field": "options",
        "detail": "contains invalid ancestry or lineage",
    }
    assert not Run.objects.exists()


@pytest.mark.conformance(94)
def test_a_negative_time_of_a_request_is_refused(world: World):
    world.pending()
    with pytest.raises(InvalidRun):
        world.store.request_cancel("run", -1)
    assert world.store.get("run").cancel_requested_at_ms is None


@pytest.mark.conformance(96)
def test_an_update_that_vanishes_is_reported_and_not_taken_for_an_answer(world: World):
    world.pending()
    with silent_updates_of("run"), pytest.raises(RunPersistenceFailed) as caught:
        world.store.request_cancel("run", 1)
    assert str(caught.value) == (
        "persistence_failed: RunStore.request_cancel: "
        "guarded cancellation update missed a live unrequested row"
    )
    assert caught.value.detail == {"run_id": "run", "stage": "write-invariant"}
    assert world.store.get("run").cancel_requested_at_ms is None


@pytest.mark.conformance(97)
def test_an_unknown_status_is_not_judged(database_world: World):
    with checks_off():
        database_world.pending()
        update_raw("run", status="paused", cancel_requested_at_ms=5)
        with pytest.raises(RunDecodeFailed):
            database_world.store.request_cancel("run", 9)


@pytest.mark.conformance(98)
@pytest.mark.parametrize("status", TERMINAL)
def test_a_settled_run_is_terminal_each_time_and_records_nothing(world: World, status):
    world.active(A)
    world.store.transition_owned("run", A, status)
    assert world.store.request_cancel("run", 500) == Terminal(status)
    assert world.store.request_cancel("run", 600) == Terminal(status)
    assert world.store.get("run").cancel_requested_at_ms is None


@pytest.mark.conformance(98)
def test_a_cancelled_run_answers_its_status_and_keeps_its_request(world: World):
    world.active(A)
    world.store.request_cancel("run", 500)
    world.store.transition_owned("run", A, "cancelled")
    assert world.store.request_cancel("run", 900) == Terminal("cancelled")
    assert world.store.get("run").cancel_requested_at_ms == 500


@pytest.mark.conformance(99)
@pytest.mark.parametrize("status", ["pending", "running", "suspended"])
def test_every_live_run_can_be_asked_to_stop(world: World, status):
    if status == "pending":
        world.pending()
    else:
        world.active(A)
        world.store.transition_owned("run", A, status)
    assert world.store.request_cancel("run", 1) == CancelRequested(1)
    assert world.store.get("run").status == status


@pytest.mark.conformance(201)
def test_the_owner_acknowledges_a_request_and_the_first_time_stands(world: World):
    world.active(A)
    world.store.request_cancel("run", 1)
    assert world.store.acknowledge_cancel("run", A, 4) is True
    assert world.store.acknowledge_cancel("run", A, 9) is True
    assert world.store.get("run").cancel_acknowledgement == CancelAcknowledgement(4, A)


@pytest.mark.conformance("D3")
def test_the_acknowledgement_is_stored_under_snake_case_keys(world: World):
    world.active(A)
    world.store.request_cancel("run", 1)
    world.store.acknowledge_cancel("run", A, 8_000_000_000_000)
    stored = json.loads(world.columns()["cancel_acknowledgement_json"])
    assert stored == {"observed_at_ms": 8_000_000_000_000, "owner": owner_json(A)}


@pytest.mark.conformance(201)
def test_only_an_owner_with_a_request_has_something_to_acknowledge(world: World):
    acknowledge = world.store.acknowledge_cancel
    assert acknowledge("nobody", A, 1) is False
    world.pending("asked")
    world.store.request_cancel("asked", 1)
    assert acknowledge("asked", A, 1) is False
    world.active(A)
    assert acknowledge("run", A, 1) is False
    world.store.request_cancel("run", 1)
    assert acknowledge("run", B, 1) is False
    assert acknowledge("run", replace(A, nonce="an earlier life"), 1) is False
    world.store.transition_owned("run", A, "cancelled")
    assert acknowledge("run", A, 1) is False
    assert world.columns()["cancel_acknowledgement_json"] is None


@pytest.mark.conformance(201)
def test_an_acknowledgement_of_an_empty_id_is_refused(store):
    with pytest.raises(InvalidRun):
        store.acknowledge_cancel("", A, 1)


def test_an_acknowledgement_looks_at_the_row_and_not_at_the_lease(world: World):
    world.pending()
    update_raw("run", status="running", fence=1, **owner_columns(A, 0, 1))
    world.store.request_cancel("run", 1)
    assert world.store.acknowledge_cancel("run", A, 2) is True
