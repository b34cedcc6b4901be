"""Conformance notes, section H: rounds of one logical run."""

import math

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore import (
    InvalidRun,
    RunConstraint,
    RunDecodeFailed,
    RunNotFound,
    RunPersistenceFailed,
)
from django_runstore.outcomes import AlreadyRequested, CancelRequested, NotFound, Terminal
from tests.conformance.raw import (
    checks_off,
    failing_updates_of,
    silent_updates_of,
    update_raw,
)
from tests.conformance.world import A, World, tables


def requests(world: World, *run_ids: str) -> list[int | None]:
    return [world.store.get(run_id).cancel_requested_at_ms for run_id in run_ids]


def settle(world: World, run_id: str, status: str) -> None:
    world.reactivated(A, run_id)
    world.store.transition_owned(run_id, A, status)


def round_of(world: World, lineage: str, ordinal: int, run_id: str = "") -> str:
    run_id = run_id or f"{lineage}-{ordinal}"
    return world.pending(run_id, lineage_id=lineage, round_ordinal=ordinal)


@pytest.mark.conformance(100)
def test_a_lineage_is_asked_as_a_whole_or_not_at_all(world: World):
    first, second = round_of(world, "line", 0), round_of(world, "line", 1)
    with failing_updates_of(second), pytest.raises(RunConstraint):
        world.store.request_cancel_lineage(first, 100)
    assert requests(world, first, second) == [None, None]

    assert world.store.request_cancel_lineage(first, 200) == CancelRequested(200)
    assert requests(world, first, second) == [200, 200]


@pytest.mark.conformance(101)
@pytest.mark.parametrize("operation", ["lineage", "latest_round", "request_cancel_lineage"])
@pytest.mark.parametrize("run_id", ["", "\ud800", 1, None])
def test_an_id_that_is_no_text_is_refused(store, operation, run_id):
    with pytest.raises(InvalidRun) as caught:
        getattr(store, operation)(run_id)
    assert caught.value.operation == operation
    assert caught.value.detail["field"] == "run_id"


@pytest.mark.conformance(101)
@pytest.mark.parametrize("reading", [-1, 0.5, math.nan, math.inf, 2**53])
def test_a_time_that_is_no_timestamp_is_refused(world: World, reading):
    round_of(world, "line", 0)
    before = tables()
    with pytest.raises(InvalidRun):
        world.store.request_cancel_lineage("line-0", reading)
    assert tables() == before


@pytest.mark.conformance(102)
def test_earlier_requests_keep_their_time(world: World):
    world.pending("root")
    later = round_of(world, "root", 1)
    world.store.request_cancel(later, 100)
    assert world.store.request_cancel_lineage("root", 200) == CancelRequested(200)
    assert requests(world, later, "root") == [100, 200]


@pytest.mark.conformance(103)
def test_settled_rounds_are_passed_over(world: World):
    world.pending("root")
    settle(world, "root", "completed")
    after = round_of(world, "root", 1)
    assert world.store.request_cancel_lineage("root", 100) == CancelRequested(100)
    assert world.store.request_cancel_lineage(after, 200) == AlreadyRequested(100)
    assert requests(world, "root") == [None]
    assert world.store.get("root").status == "completed"
    assert world.store.request_cancel_lineage("nobody", 1) == NotFound()


@pytest.mark.conformance(104)
def test_a_root_without_lineage_columns_belongs_to_the_lineage_it_names(world: World):
    world.pending("root")
    second, third = round_of(world, "root", 1), round_of(world, "root", 2)
    world.pending("fork", parent_run_id="root", lineage_id="other", round_ordinal=0)
    world.pending("child", parent_run_id="root")
    for member in ("root", second, third):
        rounds = [row.run_id for row in world.store.lineage(member)]
        assert rounds == ["root", second, third]
        assert world.store.latest_round(member).run_id == third
    for alone in ("fork", "child"):
        assert [row.run_id for row in world.store.lineage(alone)] == [alone]
        assert world.store.latest_round(alone).run_id == alone


@pytest.mark.conformance(104)
def test_an_unknown_run_has_no_rounds(store):
    assert store.lineage("nobody") == ()
    with pytest.raises(RunNotFound) as caught:
        store.latest_round("nobody")
    assert str(caught.value) == ("not_found_row: RunStore.latest_round: run nobody was not found")


def test_a_lineage_that_is_no_run_has_rounds_but_cannot_be_asked_for(world: World):
    round_of(world, "line", 0)
    assert world.store.lineage("line") == ()


def test_rounds_of_one_ordinal_are_in_byte_order(world: World):
    world.pending("m")
    world.pending("Z", lineage_id="m", round_ordinal=0)
    world.pending("é", lineage_id="m", round_ordinal=1)
    world.pending("a", lineage_id="m", round_ordinal=2)
    assert [row.run_id for row in world.store.lineage("m")] == ["Z", "m", "é", "a"]


def test_the_latest_round_is_one_that_names_the_lineage(world: World):
    # Both are round 0 of "z"; the root comes later in the order of rounds.
    world.pending("z")
    world.pending("a", lineage_id="z", round_ordinal=0)
    assert [row.run_id for row in world.store.lineage("z")] == ["a", "z"]
    assert world.store.latest_round("z").run_id == "a"


@pytest.mark.conformance(105)
def test_a_run_named_like_somebody_elses_lineage_is_no_part_of_it(world: World):
    world.pending("shared-name", lineage_id="X", round_ordinal=0)
    world.pending("target", lineage_id="shared-name", round_ordinal=0)
    for alone in ("shared-name", "target"):
        assert [row.run_id for row in world.store.lineage(alone)] == [alone]
        assert world.store.latest_round(alone).run_id == alone
    assert world.store.request_cancel_lineage("target", 9) == CancelRequested(9)
    assert requests(world, "shared-name") == [None]


def statements_about_runs(world: World, run_id: str, reading: int) -> list[str]:
    """The statements of one request, without the one that takes SQLite's lock."""
    with CaptureQueriesContext(connection) as queries:
        world.store.request_cancel_lineage(run_id, reading)
    return [query["sql"] for query in queries if "cancel_requested_at_ms" in query["sql"]]


@pytest.mark.conformance(106)
def test_a_lineage_of_any_length_is_asked_in_one_statement(world: World):
    short = [round_of(world, "s", n) for n in range(2)]
    long = [round_of(world, "l", n) for n in range(1_000)]
    settle(world, short[0], "completed")
    settle(world, long[0], "completed")

    one = statements_about_runs(world, short[1], 100)
    other = statements_about_runs(world, long[999], 100)

    assert len(one) == len(other) == 1
    assert one[0].replace("s-1", "?") == other[0].replace("l-999", "?")
    assert "state_json" not in one[0]
    assert requests(world, long[0], long[1], long[999]) == [None, 100, 100]

    repeated = statements_about_runs(world, long[5], 200)
    assert len(repeated) == 2
    assert not any("state_json" in sql for sql in repeated)


@pytest.mark.conformance(107)
def test_a_lineage_that_ended_answers_how_its_last_round_ended(world: World):
    rounds = [round_of(world, "line", n) for n in range(3)]
    for run_id, status in zip(rounds, ("completed", "cancelled", "failed"), strict=True):
        settle(world, run_id, status)
    for member in rounds:
        assert world.store.request_cancel_lineage(member, 1) == Terminal("failed")


@pytest.mark.conformance(108)
def test_a_live_requested_round_beats_settled_ones(world: World):
    first, second = round_of(world, "line", 0), round_of(world, "line", 1)
    world.store.request_cancel(first, 50)
    settle(world, second, "cancelled")
    assert world.store.request_cancel_lineage(second, 99) == AlreadyRequested(50)


def test_of_several_requested_rounds_the_last_one_answers(world: World):
    first, second = round_of(world, "line", 0), round_of(world, "line", 1)
    world.store.request_cancel(first, 70)
    world.store.request_cancel(second, 50)
    assert world.store.request_cancel_lineage(first, 99) == AlreadyRequested(50)


@pytest.mark.conformance(109)
def test_a_silent_miss_of_a_live_round_is_reported(world: World):
    first = round_of(world, "line", 0)
    with silent_updates_of(first), pytest.raises(RunPersistenceFailed) as caught:
        world.store.request_cancel_lineage(first, 1)
    assert caught.value.detail == {"run_id": first, "stage": "write-invariant"}


@pytest.mark.conformance(109)
def test_an_unknown_status_in_a_lineage_is_not_judged(database_world: World):
    with checks_off():
        first = round_of(database_world, "line", 0)
        update_raw(first, status="paused")
        with pytest.raises(RunDecodeFailed):
            database_world.store.request_cancel_lineage(first, 1)
