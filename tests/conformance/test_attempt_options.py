"""Conformance notes 168 to 177: options, put modes, times that no clock vouches for."""

import datetime as dt
from dataclasses import replace

import pytest

from django_runstore import UNSET
from django_runstore.attempts import AttemptId, AttemptPatch, AttemptRecord, FinishAttempt
from django_runstore.errors import InvalidAttempt
from django_runstore.outcomes import (
    Conflict,
    ExistingSame,
    FenceLost,
    Finished,
    Inserted,
    NotFound,
    Patched,
    StateChanged,
    Updated,
    Upserted,
)
from django_runstore.services import AttemptStore
from tests.conformance.attempts import DIGEST, FINISHED, ID, RUNNING, opened, rows, started
from tests.conformance.hostile import HOSTILE, touched
from tests.conformance.world import A, B, World

ARRAY = "in_progress_states must be an inert string array"
NAMES = "in_progress_states must contain unique durable state names"
MOST = "max_checkpoint_bytes must be between 1 and 16777216"
MODE = "put_mode must be insert or upsert"


@pytest.mark.conformance(168)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"in_progress_states": None}, ARRAY),
        ({"in_progress_states": "running"}, ARRAY),
        ({"in_progress_states": dt.date(2026, 1, 1)}, ARRAY),
        ({"in_progress_states": {"running"}}, ARRAY),
        ({"in_progress_states": iter(["running"])}, ARRAY),
        ({"in_progress_states": [f"s{n}" for n in range(257)]}, ARRAY),
        ({"in_progress_states": [f"{n}" + "x" * 1_000 for n in range(70)]}, ARRAY),
        ({"in_progress_states": []}, NAMES),
        ({"in_progress_states": ["a", "a"]}, NAMES),
        ({"in_progress_states": [""]}, NAMES),
        ({"in_progress_states": ["a", 1]}, NAMES),
        ({"in_progress_states": ["\ud800"]}, NAMES),
        ({"max_checkpoint_bytes": 0}, MOST),
        ({"max_checkpoint_bytes": 1.5}, MOST),
        ({"max_checkpoint_bytes": True}, MOST),
        ({"max_checkpoint_bytes": 2**24 + 1}, MOST),
        ({"max_checkpoint_bytes": "1"}, MOST),
        ({"put_mode": "replace"}, MODE),
        ({"put_mode": None}, MODE),
        ({"put_mode": ["insert"]}, MODE),
    ],
)
def test_an_option_that_breaks_its_rule_is_refused_when_the_store_is_built(options, message):
    with pytest.raises(InvalidAttempt) as caught:
        AttemptStore(**options)
    assert caught.value.operation == "__init__"
    assert str(caught.value) == f"invalid_attempt: AttemptStore.__init__: {message}"


@pytest.mark.conformance(168)
@pytest.mark.parametrize("option", ["in_progress_states", "max_checkpoint_bytes", "put_mode"])
@pytest.mark.parametrize("name", HOSTILE)
def test_no_code_of_an_option_is_run(option, name):
    touched.clear()
    with pytest.raises(InvalidAttempt):
        AttemptStore(**{option: HOSTILE[name]()})
    with pytest.raises(InvalidAttempt):
        AttemptStore(in_progress_states=[HOSTILE[name]()])
    assert touched == []


@pytest.mark.conformance(168)
@pytest.mark.parametrize(
    "options",
    [
        {"in_progress_states": [f"s{n}" for n in range(256)]},
        {"in_progress_states": ("a",)},
        {"max_checkpoint_bytes": 1},
        {"max_checkpoint_bytes": 2**24},
        {"put_mode": "upsert"},
    ],
)
def test_the_extremes_of_the_options_are_admitted(options):
    AttemptStore(**options)


@pytest.mark.conformance(173)
def test_changing_the_list_of_states_later_changes_nothing(db):
    states = ["running"]
    store = opened(in_progress_states=states)
    states[:] = ["other"]
    store.put(RUNNING, A)
    assert store.heartbeat("run", DIGEST, 0, A, 12) == Updated()


@pytest.mark.conformance(170)
def test_the_states_in_progress_are_the_callers_to_name(db):
    store = opened(in_progress_states=["in-progress"])
    store.put(replace(RUNNING, state="in-progress"), A)
    assert store.heartbeat("run", DIGEST, 0, A, 12) == Updated()
    assert store.finish(FINISHED, A) == Finished()
    assert store.heartbeat("run", DIGEST, 0, A, 13) == StateChanged()


def test_a_state_that_is_not_named_is_not_in_progress(db):
    store = opened(in_progress_states=["paused"])
    store.put(RUNNING, A)
    assert store.heartbeat("run", DIGEST, 0, A, 12) == StateChanged()
    assert store.finish(replace(FINISHED, state="running"), A) == StateChanged()


@pytest.mark.conformance(169)
def test_times_may_lie_in_any_order(db):
    store = opened()
    backwards = replace(RUNNING, started_at_ms=100, finished_at_ms=50, heartbeat_at_ms=10)
    assert store.put(backwards, A) == Inserted()
    assert store.get(ID) == backwards
    assert store.heartbeat("run", DIGEST, 0, A, 20) == Updated()
    assert store.get(ID).heartbeat_at_ms == 20


def test_a_heartbeat_may_lie_far_ahead_of_every_clock(db):
    store = started()
    assert store.heartbeat("run", DIGEST, 0, A, 2**53 - 1) == Updated()
    assert store.get(ID).heartbeat_at_ms == 2**53 - 1


# --- put modes ------------------------------------------------------------------------------


@pytest.mark.conformance(174)
def test_an_insert_leaves_what_is_in_progress(db):
    store = started(put_mode="insert")
    before = rows()
    assert store.put(replace(RUNNING, started_at_ms=11), A) == Conflict()
    assert store.put(replace(RUNNING, state="succeeded"), A) == Conflict()
    assert rows() == before


@pytest.mark.conformance(172)
def test_an_upsert_replaces_what_is_in_progress_as_a_whole(db):
    store = opened(put_mode="upsert")
    full = replace(
        RUNNING,
        heartbeat_at_ms=1,
        checkpoint=1,
        error=2,
        outcome=3,
        finished_at_ms=4,
        step_name="x",
    )
    assert store.put(full, A) == Inserted()
    again = AttemptRecord("run", DIGEST, 0, "running", 99, meta={"by": "b"})
    assert store.put(again, A) == Upserted()
    assert store.get(ID) == again
    assert store.put(again, A) == Upserted()


@pytest.mark.conformance(172)
def test_an_upsert_leaves_what_has_ended(db):
    store = started(put_mode="upsert")
    store.finish(FINISHED, A)
    stored, before = store.get(ID), rows()
    assert store.put(stored, A) == ExistingSame()
    assert store.put(replace(stored, outcome="other"), A) == Conflict()
    assert store.put(RUNNING, A) == Conflict()
    assert rows() == before


@pytest.mark.conformance(175)
def test_only_the_owner_upserts_and_after_a_takeover_only_the_new_one(db):
    world = World()
    seen = world.active(A)
    store = AttemptStore(put_mode="upsert")
    store.put(RUNNING, A)
    assert store.put(replace(RUNNING, meta="b"), B) == FenceLost()
    world.clock.set(31_000)
    stolen = world.steal(B, seen)
    # Until it is activated, a stealer's claim leaves the run its owner's.
    assert store.put(replace(RUNNING, checkpoint="before"), A) == Upserted()
    world.store.activate("run", B, stolen.claimed_at_ms, seen)
    before = rows()
    assert store.put(replace(RUNNING, meta="late"), A) == FenceLost()
    assert store.heartbeat("run", DIGEST, 0, A, 99, "late") == FenceLost()
    assert store.finish(FINISHED, A) == FenceLost()
    assert store.patch(ID, AttemptPatch(error="late"), A) == FenceLost()
    assert rows() == before
    ended = AttemptRecord("run", DIGEST, 0, "succeeded", 7, meta="b", outcome=1, finished_at_ms=8)
    assert store.put(ended, B) == Upserted()
    assert store.get(ID) == ended
    assert store.put(RUNNING, B) == Conflict()


# --- patches --------------------------------------------------------------------------------


@pytest.mark.conformance(177)
def test_a_patch_keeps_what_it_does_not_name(db):
    store = opened()
    full = replace(RUNNING, checkpoint=1, error=2, outcome=3, heartbeat_at_ms=4)
    store.put(full, A)
    assert store.patch(ID, AttemptPatch(error="new"), A) == Patched()
    assert store.get(ID) == replace(full, error="new")
    assert store.patch(ID, AttemptPatch(), A) == Patched()
    assert store.get(ID) == replace(full, error="new")


@pytest.mark.conformance(177)
def test_all_four_values_can_be_patched_and_null_is_one(db):
    store = started()
    assert store.patch(ID, AttemptPatch(checkpoint=None, error=1, outcome=2, meta=None), A)
    assert store.get(ID) == replace(RUNNING, checkpoint=None, error=1, outcome=2, meta=None)


@pytest.mark.conformance(177)
def test_a_finished_attempt_can_still_be_patched_and_stays_finished(db):
    store = started()
    store.finish(FINISHED, A)
    ended = store.get(ID)
    assert store.patch(ID, AttemptPatch(checkpoint="c"), A) == Patched()
    assert store.get(ID) == replace(ended, checkpoint="c")


@pytest.mark.conformance(177)
def test_an_unknown_attempt_cannot_be_patched(db):
    assert started().patch(AttemptId("run", DIGEST, 1), AttemptPatch(error=1), A) == NotFound()


# --- ids as long as they may be -------------------------------------------------------------


@pytest.mark.parametrize("text", ["x" * 1_024, "\U0001f600" * 512, "é" * 1_024], ids=len)
def test_ids_of_the_greatest_length_find_their_attempts(db, text):
    world = World()
    world.active(A, text)
    store = AttemptStore()
    attempt = AttemptRecord(text, text, 2**53 - 1, text, 0, step_name=text)
    assert store.put(attempt, A) == Inserted()
    assert store.get(attempt) == attempt
    end = FinishAttempt(text, text, 2**53 - 1, "done", 1)
    store = AttemptStore(in_progress_states=[text])
    assert store.finish(end, A) == Finished()
    assert store.get(AttemptId(text, text[:-1], 0)) is None
    assert store.get(attempt).checkpoint is UNSET
