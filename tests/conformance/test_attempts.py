"""Conformance notes, section L: attempts, their outcomes and their fence."""

from dataclasses import replace

import pytest

from django_runstore import UNSET
from django_runstore.attempts import AttemptId, AttemptPatch, AttemptRecord, FinishAttempt
from django_runstore.outcomes import (
    Conflict,
    ExistingSame,
    FenceLost,
    Finished,
    Inserted,
    NotFound,
    Patched,
    RunMissing,
    StateChanged,
    Updated,
)
from django_runstore.services import AttemptStore
from tests.conformance.attempts import DIGEST, FINISHED, ID, RUNNING, opened, rows, started
from tests.conformance.raw import checks_off, update_raw
from tests.conformance.world import A, B, C, World

pytestmark = pytest.mark.django_db

FULL = AttemptRecord(
    "run",
    DIGEST,
    0,
    "running",
    10,
    meta={"a": 1, "b": [{"c": 2, "d": 3}]},
    finished_at_ms=11,
    heartbeat_at_ms=12,
    checkpoint={"k": [1, 2]},
    error={"why": "x"},
    outcome="done",
    step_name="extract",
)


def beat(store, now_ms, *checkpoint, owner=A, attempt=0, fence=None):
    return store.heartbeat("run", DIGEST, attempt, owner, now_ms, *checkpoint, fence=fence)


@pytest.mark.conformance(148)
def test_an_attempt_is_read_as_it_was_put():
    store = opened()
    attempt = AttemptRecord(
        "run", DIGEST, 0, "running", 10, meta={"deep": [{"er": None}]}, checkpoint={"at": 1}
    )
    assert store.put(attempt, A) == Inserted()
    read = store.get(ID)
    assert read == attempt
    absent = (read.finished_at_ms, read.heartbeat_at_ms, read.error, read.outcome)
    assert absent == (UNSET, UNSET, UNSET, UNSET)


@pytest.mark.conformance(155)
def test_all_fields_are_kept():
    store = opened()
    assert store.put(FULL, A) == Inserted()
    assert store.get(ID) == FULL
    assert store.put(FULL, A) == ExistingSame()


def test_a_null_is_a_value_and_not_absent():
    store = opened()
    nulls = replace(RUNNING, meta=None, checkpoint=None, error=None, outcome=None)
    store.put(nulls, A)
    assert store.get(ID) == nulls
    (row,) = rows()
    assert [row[f"{n}_json"] for n in ("meta", "checkpoint", "error", "outcome")] == ["null"] * 4
    assert store.put(replace(nulls, error=UNSET), A) == Conflict()


@pytest.mark.conformance(149)
def test_finishing_keeps_the_meta():
    store = started()
    end = FinishAttempt("run", DIGEST, 0, "cancelled", 20, error={"e": 1}, outcome=[1])
    assert store.finish(end, A) == Finished()
    assert store.get(ID) == replace(
        RUNNING, state="cancelled", finished_at_ms=20, error={"e": 1}, outcome=[1]
    )


@pytest.mark.conformance(150)
def test_finishing_without_an_outcome_keeps_the_patched_one():
    store = started()
    assert store.patch(ID, AttemptPatch(outcome="patched"), A) == Patched()
    assert store.finish(FinishAttempt("run", DIGEST, 0, "succeeded", 20), A) == Finished()
    assert store.get(ID).outcome == "patched"


@pytest.mark.conformance(150)
def test_finishing_with_an_outcome_and_meta_replaces_both():
    store = opened()
    store.put(replace(RUNNING, outcome="first"), A)
    end = FinishAttempt("run", DIGEST, 0, "succeeded", 20, outcome=None, meta={"new": 1})
    assert store.finish(end, A) == Finished()
    read = store.get(ID)
    assert (read.outcome, read.meta) == (None, {"new": 1})


@pytest.mark.conformance(171)
def test_finishing_without_an_error_keeps_it_and_with_one_replaces_it():
    store = opened()
    store.put(replace(RUNNING, error="first"), A)
    store.put(replace(RUNNING, attempt=1, error="first"), A)
    store.finish(FinishAttempt("run", DIGEST, 0, "failed", 20), A)
    store.finish(FinishAttempt("run", DIGEST, 1, "failed", 20, error="second"), A)
    assert [store.get(AttemptId("run", DIGEST, n)).error for n in (0, 1)] == ["first", "second"]


@pytest.mark.conformance(151)
def test_a_heartbeat_follows_the_owner_columns_of_the_row():
    store = started()
    update_raw("run", owner_nonce="owner-b")
    before = rows()
    assert beat(store, 12) == FenceLost()
    assert rows() == before


@pytest.mark.conformance(152)
def test_a_heartbeat_keeps_the_checkpoint_it_does_not_bring():
    store = started()
    assert beat(store, 12, {"at": 1}) == Updated()
    assert beat(store, 13) == Updated()
    read = store.get(ID)
    assert (read.checkpoint, read.heartbeat_at_ms) == ({"at": 1}, 13)
    assert beat(store, 14, None) == Updated()
    assert store.get(ID).checkpoint is None


def test_a_late_heartbeat_does_not_move_the_stamp():
    store = started()
    beat(store, 50)
    assert beat(store, 49, "late") == Updated()
    read = store.get(ID)
    assert (read.heartbeat_at_ms, read.checkpoint) == (50, "late")


@pytest.mark.conformance(152)
def test_an_unknown_attempt_has_no_heartbeat_and_cannot_be_read():
    store = started()
    assert beat(store, 12, attempt=1) == NotFound()
    assert store.get(AttemptId("run", DIGEST, 1)) is None
    assert store.get(AttemptId("nobody", DIGEST, 0)) is None


@pytest.mark.conformance(153)
def test_attempts_of_one_step_stand_side_by_side():
    store = opened()
    failed = replace(RUNNING, state="failed", finished_at_ms=11, error="no")
    assert store.put(failed, A) == Inserted()
    assert store.put(replace(RUNNING, attempt=1), A) == Inserted()
    assert store.get(failed) == failed
    assert store.get(AttemptId("run", DIGEST, 1)).state == "running"


@pytest.mark.conformance(154, "D7")
def test_putting_twice_is_the_same_or_a_conflict_or_not_the_callers():
    store = started()
    assert store.put(RUNNING, A) == ExistingSame()
    assert store.put(replace(RUNNING, meta={"by": "b"}), A) == Conflict()
    assert store.put(replace(RUNNING, attempt=1), B) == FenceLost()
    assert store.put(replace(RUNNING, run_id="nobody"), A) == RunMissing()
    assert store.get(ID) == RUNNING


@pytest.mark.conformance(156)
@pytest.mark.parametrize(
    ("meta", "outcome"),
    [
        ({"b": [{"d": 3, "c": 2}], "a": 1}, ExistingSame()),
        ({"a": 1.0, "b": [{"c": 2, "d": 3}]}, ExistingSame()),
        ({"a": True, "b": [{"c": 2, "d": 3}]}, Conflict()),
        ({"a": 1, "b": [{"c": 2, "d": 4}]}, Conflict()),
        ({"a": 1, "b": [{"c": 2, "d": 3, "e": None}]}, Conflict()),
        ({"a": 1, "b": [{"c": 2, "d": 3}], "z": None}, Conflict()),
        ({"a": 1, "b": {"0": {"c": 2, "d": 3}}}, Conflict()),
        (None, Conflict()),
    ],
)
def test_values_are_compared_by_what_they_mean(meta, outcome):
    store = opened()
    store.put(FULL, A)
    assert store.put(replace(FULL, meta=meta), A) == outcome
    assert store.get(ID) == FULL


@pytest.mark.conformance(156)
def test_the_order_of_a_list_matters():
    store = opened()
    store.put(FULL, A)
    assert store.put(replace(FULL, checkpoint={"k": [2, 1]}), A) == Conflict()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("state", "other"),
        ("started_at_ms", 9),
        ("finished_at_ms", UNSET),
        ("finished_at_ms", 12),
        ("heartbeat_at_ms", UNSET),
        ("checkpoint", UNSET),
        ("error", UNSET),
        ("outcome", UNSET),
        ("step_name", ""),
    ],
)
def test_any_other_field_makes_a_conflict(field, value):
    store = opened()
    store.put(FULL, A)
    assert store.put(replace(FULL, **{field: value}), A) == Conflict()
    assert store.get(ID) == FULL


@pytest.mark.conformance(157)
def test_a_finished_attempt_has_no_heartbeat():
    store = started()
    beat(store, 12)
    store.finish(FINISHED, A)
    before = rows()
    assert beat(store, 13, "late") == StateChanged()
    assert rows() == before


@pytest.mark.conformance(158)
def test_an_attempt_is_finished_once():
    store = started()
    assert store.finish(replace(FINISHED, attempt=7), A) == NotFound()
    assert store.finish(FINISHED, B) == FenceLost()
    assert store.finish(FINISHED, A) == Finished()
    assert store.finish(replace(FINISHED, outcome="second"), A) == StateChanged()
    assert store.get(ID).outcome == {"n": 1}


@pytest.mark.conformance(163)
def test_a_stored_attempt_is_accepted_as_an_id():
    store = started()
    read = store.get(RUNNING)
    assert read == RUNNING
    assert store.patch(read, AttemptPatch(error="e"), A) == Patched()
    assert store.get(read) == replace(RUNNING, error="e")


# --- of several things that are in the way, the one that is answered (spec 5.3) ------------


def test_put_names_a_missing_run_then_the_fence_then_the_content():
    store = started()
    different = replace(RUNNING, meta="other")
    assert store.put(replace(different, run_id="nobody"), C) == RunMissing()
    assert store.put(different, C) == FenceLost()
    assert store.put(RUNNING, C) == FenceLost()
    assert store.put(different, A) == Conflict()


@pytest.mark.parametrize(
    "change",
    [
        lambda store, owner, attempt: beat(store, 12, owner=owner, attempt=attempt),
        lambda store, owner, attempt: store.finish(replace(FINISHED, attempt=attempt), owner),
    ],
    ids=["heartbeat", "finish"],
)
def test_a_missing_attempt_comes_before_the_fence_and_the_fence_before_the_state(change):
    store = started()
    assert change(store, B, 1) == NotFound()
    store.finish(FINISHED, A)
    assert change(store, B, 0) == FenceLost()
    assert change(store, A, 0) == StateChanged()


def test_a_patch_names_a_missing_attempt_before_the_fence():
    store = started()
    empty = AttemptPatch()
    assert store.patch(AttemptId("run", DIGEST, 1), empty, B) == NotFound()
    assert store.patch(AttemptId("nobody", DIGEST, 0), empty, A) == NotFound()
    assert store.patch(ID, empty, B) == FenceLost()


@pytest.mark.parametrize("status", ["suspended", "completed", "failed", "cancelled"])
def test_every_write_after_the_run_was_given_up_is_a_lost_fence(status):
    world = World()
    world.active(A)
    store = started_over(world)
    world.store.transition_owned("run", A, status)
    before = rows()
    assert store.put(replace(RUNNING, attempt=1), A) == FenceLost()
    assert store.put(RUNNING, A) == FenceLost()
    assert beat(store, 12) == FenceLost()
    assert store.finish(FINISHED, A) == FenceLost()
    assert store.patch(ID, AttemptPatch(error=1), A) == FenceLost()
    assert rows() == before


@pytest.mark.parametrize("owner", [replace(A, host_id="x"), replace(A, pid=1), B, C])
def test_an_owner_is_the_same_in_all_three_parts(owner):
    assert beat(started(), 12, owner=owner) == FenceLost()


@pytest.mark.conformance("D9")
def test_an_old_execution_of_the_same_owner_is_refused():
    world = World()
    world.active(A)
    store = started_over(world)
    world.store.transition_owned("run", A, "suspended")
    world.reactivated(A)
    before = rows()
    for fence, put, other in ((1, FenceLost(), FenceLost()), (3, FenceLost(), FenceLost())):
        assert store.put(RUNNING, A, fence=fence) == put
        assert store.put(replace(RUNNING, attempt=1), A, fence=fence) == put
        assert beat(store, 12, fence=fence) == other
        assert store.finish(FINISHED, A, fence=fence) == other
        assert store.patch(ID, AttemptPatch(error=1), A, fence=fence) == other
    assert rows() == before
    assert store.put(replace(RUNNING, attempt=1), A, fence=2) == Inserted()
    assert beat(store, 12, fence=2) == Updated()
    assert store.patch(ID, AttemptPatch(error=1), A, fence=2) == Patched()
    assert store.finish(FINISHED, A, fence=2) == Finished()


def started_over(world):
    store = AttemptStore(clock=world.clock, arbiter=world.arbiter)
    assert store.put(RUNNING, A) == Inserted()
    return store


def test_the_row_alone_is_asked_whoever_keeps_the_lease(world: World):
    world.active(A)
    store = started_over(world)
    update_raw("run", owner_pid=B.pid, owner_nonce=B.nonce)
    assert beat(store, 12, owner=B) == Updated()
    assert beat(store, 12, owner=A) == FenceLost()


def test_the_latest_attempt_of_a_step_is_the_one_with_the_highest_number():
    store = opened()
    assert store.latest("run", DIGEST) is None
    for number in (2, 10, 0):
        store.put(replace(RUNNING, attempt=number), A)
    store.put(replace(RUNNING, attempt=11, step_key_digest="another step"), A)
    assert store.latest("run", DIGEST) == replace(RUNNING, attempt=10)
    assert store.latest("another run", DIGEST) is None


def test_a_row_that_only_bears_the_owners_name_is_not_owned(database_world: World):
    # No CHECK admits it; the fence does not rest on the CHECK alone.
    with checks_off():
        database_world.active(A)
        store = started_over(database_world)
        update_raw("run", status="suspended")
        before = rows()
        assert beat(store, 12) == FenceLost()
        assert store.put(replace(RUNNING, attempt=1), A, fence=1) == FenceLost()
        assert store.finish(FINISHED, A, fence=1) == FenceLost()
        assert store.patch(ID, AttemptPatch(error=1), A) == FenceLost()
        assert rows() == before
        update_raw("run", status="running")
