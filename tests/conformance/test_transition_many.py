"""transition_many and save_progress: what an executor writes, each under its fence."""

import json

import pytest

from django_runstore import InvalidRun, TransitionGuard
from django_runstore.models import JournalEntry
from django_runstore.outcomes import (
    FenceLost,
    GuardFailed,
    NotFound,
    Transitioned,
    Updated,
    Woken,
)
from django_runstore.snapshots import OwnedTransition, RunNote, Waiting
from tests.conformance.raw import update_raw
from tests.conformance.world import SKEW, A, B, World, running, tables

NOTE = RunNote("runstore.worker.lost", {"exit_status": -9, "signal": "SIGKILL", "core": None})


def move(run_id: str = "run", to_status: str = "completed", **more) -> OwnedTransition:
    return OwnedTransition(run_id=run_id, fence=more.pop("fence", 1), to_status=to_status, **more)


def test_each_transition_is_judged_by_its_own_fence(world: World):
    for run_id in ("done", "lost", "asked"):
        world.active(A, run_id)
    world.active(B, "theirs")
    world.store.request_cancel("asked", 1)
    answers = world.store.transition_many(
        A,
        [
            move("done"),
            move("lost", fence=2),
            move("asked", guard=TransitionGuard("absent")),
            move("theirs"),
            move("nobody"),
        ],
    )
    assert answers == {
        "done": Transitioned(),
        "lost": FenceLost(),
        "asked": GuardFailed(),
        "theirs": FenceLost(),
        "nobody": NotFound(),
    }
    statuses = [world.store.get(run).status for run in ("done", "lost", "asked", "theirs")]
    assert statuses == ["completed", "running", "running", "running"]


def test_results_and_errors_are_stored_with_the_settlement(world: World):
    for run_id in ("good", "bad"):
        world.active(A, run_id)
    world.clock.set(50)
    world.store.transition_many(
        A,
        [
            move("good", result_json='{"rows":3}', state_json='"end"'),
            move("bad", "failed", error_json='{"type":"E"}'),
        ],
    )
    good, bad = world.store.get("good"), world.store.get("bad")
    assert (good.result_json, good.error_json, good.state_json) == ('{"rows":3}', None, '"end"')
    assert (bad.result_json, bad.error_json, bad.state_json) == (None, '{"type":"E"}', "{}")
    assert (good.finished_at_ms, bad.finished_at_ms) == (50, 50)


def test_a_run_is_put_back_for_later_and_counted(world: World):
    world.active(A)
    update_raw("run", failure_count=2, recovery_count=4)
    world.store.transition_many(
        A, [move("run", "suspended", available_at_ms=9_000, counts_failure=True)]
    )
    row = world.store.get("run")
    assert (row.available_at_ms, row.failure_count, row.recovery_count) == (9_000, 3, 4)


def test_a_run_put_back_is_available_now_and_counts_nothing(world: World):
    world.active(A)
    world.clock.set(70)
    world.store.transition_many(A, [move("run", "suspended")])
    row = world.store.get("run")
    assert (row.available_at_ms, row.failure_count, row.recovery_count) == (70, 0, 0)


def test_a_run_can_be_given_up_until_somebody_wakes_it(world: World):
    world.active(A)
    world.store.transition_many(A, [move("run", "suspended", available_at_ms=None)])
    assert world.store.get("run").available_at_ms is None


def test_a_lost_worker_is_counted_and_noted_in_the_runs_own_stream(world: World):
    world.active(A)
    world.clock.set(70)
    world.store.transition_many(A, [move("run", "suspended", counts_recovery=True, note=NOTE)])
    assert world.store.get("run").recovery_count == 1
    (entry,) = JournalEntry.objects.filter(companion="")
    assert (entry.run_id, entry.seq, entry.source_id) == ("run", 0, "runstore.supervisor")
    assert (entry.event_type, entry.emitted_at_ms) == ("runstore.worker.lost", 70)
    assert json.loads(entry.payload_json) == NOTE.payload
    assert world.fact_names() == ["claimed", "activated", "released"]
    assert world.columns()["journal_seq"] == 1


@pytest.mark.parametrize("lost", [{"fence": 2}, {"guard": TransitionGuard("present")}])
def test_a_refused_transition_leaves_no_note(world: World, lost):
    world.active(A)
    before = tables()
    world.store.transition_many(A, [move("run", "suspended", note=NOTE, **lost)])
    assert tables() == before


def test_no_transitions_are_no_answers(store, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert store.transition_many(A, []) == {}


@pytest.mark.parametrize(
    "bad",
    [
        move(""),
        move(to_status="pending"),
        move(to_status="paused"),
        move(fence=None),
        move(fence=-1),
        move(fence=1.0),
        move(state_json="{"),
        move(result_json="{"),
        move(error_json=1),
        move(guard="absent"),
        move(available_at_ms=-1),
        move(counts_failure=1),
        move(counts_recovery="yes"),
        move(note="lost"),
        move(waiting="approval"),
        move(waiting=Waiting("")),
        move(note=RunNote("", {})),
        move(note=RunNote("x", {"n": 1.5})),
        move(note=RunNote("x", {"n": "x" * 3_000})),
        move(note=object.__new__(RunNote)),
        object.__new__(OwnedTransition),
        ("run", 1, "completed"),
        None,
    ],
)
def test_a_bad_line_refuses_the_whole_batch(world: World, bad):
    world.active(A)
    world.active(A, "good")
    before = tables()
    with pytest.raises(InvalidRun):
        world.store.transition_many(A, [move("good"), bad])
    assert tables() == before


def test_two_transitions_of_one_run_are_refused(world: World):
    world.active(A)
    with pytest.raises(InvalidRun):
        world.store.transition_many(A, [move(to_status="running"), move()])
    assert world.store.get("run").snapshot == running(A, 0)


def test_progress_is_saved_under_the_fence(world: World):
    world.active(A)
    update_raw("run", recovery_count=4)
    world.clock.set(60)
    outcome = world.store.save_progress("run", A, fence=1, progress_json='{"done":0.5}')
    assert outcome == Updated()
    row = world.store.get("run")
    assert (row.progress_json, row.progressed_at_ms) == ('{"done":0.5}', 60)
    assert (row.recovery_count, row.state_json, row.heartbeat_at_ms) == (0, "{}", 0)


def test_progress_without_words_keeps_those_that_are_there(world: World):
    world.active(A)
    world.store.save_progress("run", A, fence=1, progress_json="1", state_json="2")
    world.store.save_progress("run", A, fence=1)
    row = world.store.get("run")
    assert (row.progress_json, row.state_json) == ("1", "2")


def test_progress_of_a_run_one_does_not_own_is_lost(world: World):
    save = world.store.save_progress
    assert save("nobody", A, fence=1) == NotFound()
    world.active(A)
    before = world.columns()
    assert save("run", B, fence=1, progress_json="1") == FenceLost()
    assert save("run", A, fence=2, progress_json="1") == FenceLost()
    assert world.columns() == before


@pytest.mark.parametrize(
    "bad",
    [
        {"progress_json": "{"},
        {"progress_json": 1},
        {"state_json": "{"},
        {"fence": -1},
        {"now_ms": -1},
        {"now_ms": SKEW + 1},
    ],
)
def test_bad_progress_is_refused(world: World, bad):
    world.active(A)
    before = world.columns()
    with pytest.raises(InvalidRun):
        world.store.save_progress("run", A, **{"fence": 1, **bad})
    assert world.columns() == before


def test_a_transition_may_say_what_the_run_waits_for(world):
    world.active(A)
    parked = OwnedTransition(
        "run", 1, "suspended", available_at_ms=None, waiting=Waiting("upgrade", token="t")
    )
    assert world.store.transition_many(A, [parked]) == {"run": Transitioned()}
    assert world.store.waiting("run") == Waiting("upgrade", token="t")
    assert world.store.wake("run") == Woken()


def test_a_run_that_went_well_keeps_no_error_of_an_earlier_execution(world):
    world.active(A)
    world.store.transition_many(A, [move("run", "suspended", error_json='{"type":"E"}')])
    assert world.store.get("run").error_json == '{"type":"E"}'
    again = world.reactivated(A)
    assert world.store.get("run").error_json == '{"type":"E"}'
    done = OwnedTransition("run", world.store.get("run").fence, "completed", result_json="1")
    assert world.store.transition_many(A, [done]) == {"run": Transitioned()}
    assert again.owner == A
    assert world.store.get("run").error_json is None
