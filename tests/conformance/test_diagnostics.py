"""Conformance notes, section O: errors that can be logged without leaking anything."""

import logging
import pickle
import traceback

import pytest

from django_runstore import InvalidRun, LivenessEvidence, RunStoreError
from django_runstore.errors import DatabaseFailure
from tests.conformance.calls import CALLS
from tests.conformance.raw import checks_off, failing_updates_of, update_raw
from tests.conformance.world import A, P, World

SECRET = "hunter2-correct-horse"


class Secretive:
    def __repr__(self):
        return SECRET

    __str__ = __repr__


def everything_about(error: BaseException) -> str:
    """All that a log or an error page shows of an exception and whatever led to it."""
    seen: list[BaseException] = []
    current: list[BaseException | None] = [error]
    while current:
        found = current.pop()
        if found is not None and found not in seen:
            seen.append(found)
            current += [found.__cause__, found.__context__]
    shown = [f"{each} {each!r} {each.args!r} {vars(each)!r}" for each in seen]
    return " ".join([*shown, *traceback.format_exception(error)])


TIMESTAMPS = [
    (call, name)
    for call in CALLS.values()
    for name in call.arguments
    if name in {"now_ms", "claimed_at_ms"}
]


@pytest.mark.conformance(190)
@pytest.mark.parametrize("secret", [SECRET, Secretive()], ids=["text", "object"])
@pytest.mark.parametrize(
    ("call", "name"), TIMESTAMPS, ids=[f"{call.operation}-{name}" for call, name in TIMESTAMPS]
)
def test_a_secret_passed_as_a_time_is_not_repeated(database_world: World, call, name, secret):
    with pytest.raises(InvalidRun) as caught:
        call.on(database_world.store, **{name: secret})
    assert caught.value.detail == {
        "field": name,
        "detail": "must be a non-negative safe integer",
    }
    assert SECRET not in everything_about(caught.value)


@pytest.mark.conformance(190)
@pytest.mark.parametrize("operation", ["steal", "claim_and_own", "recover_claim"])
def test_a_secret_passed_as_the_time_of_evidence_is_not_repeated(database_world, operation):
    evidence = LivenessEvidence(A, SECRET, "lease-expired")
    with pytest.raises(InvalidRun) as caught:
        CALLS[operation].on(database_world.store, evidence=evidence)
    assert caught.value.detail == {
        "field": "evidence.checked_at_ms",
        "detail": "must be a non-negative safe integer",
    }
    assert SECRET not in everything_about(caught.value)


ARGUMENTS = [(call, name) for call in CALLS.values() for name in call.arguments]


@pytest.mark.parametrize(
    ("call", "name"), ARGUMENTS, ids=[f"{call.operation}-{name}" for call, name in ARGUMENTS]
)
def test_a_secret_passed_as_anything_is_not_repeated(database_world: World, call, name):
    with pytest.raises(InvalidRun) as caught:
        call.on(database_world.store, **{name: Secretive()})
    assert SECRET not in everything_about(caught.value)


@pytest.mark.conformance(191)
@pytest.mark.parametrize(
    "state",
    [f'{{"password":"{SECRET}"' + " " * 200_000, f'"{SECRET}' * 10_000, "[" + SECRET * 10_000],
    ids=["unclosed", "run on", "no JSON"],
)
@pytest.mark.parametrize("operation", ["create", "transition_owned", "save_progress"])
def test_a_large_bad_state_is_described_by_its_length(database_world: World, operation, state):
    with pytest.raises(InvalidRun) as caught:
        CALLS[operation].on(database_world.store, state_json=state)
    error = caught.value
    assert error.detail["run_id"] == CALLS[operation].arguments["run_id"]
    assert error.detail["state_json_length"] == len(state)
    assert error.detail["state_json_valid"] is False
    assert SECRET not in everything_about(error)
    assert len(f"{error} {error!r} {dict(error.detail)}") < 2_000


def test_a_states_length_is_counted_in_utf16_units(store):
    with pytest.raises(InvalidRun) as caught:
        store.create("x", "😀")
    assert caught.value.detail["state_json_length"] == 2


@pytest.mark.parametrize(
    ("state", "valid"),
    [
        ('"\ud800"', True),
        ('"\ud800', False),
        ("1e400", True),
        ("NaN", False),
        ("[" * 130 + "]" * 130, True),
        ("", False),
    ],
    ids=["surrogate", "surrogate in no JSON", "1e400", "NaN", "too deep", "empty"],
)
def test_a_state_is_valid_when_it_parses_whatever_else_is_wrong(store, state, valid):
    with pytest.raises(InvalidRun) as caught:
        store.create("x", state)
    assert caught.value.detail["state_json_valid"] is valid


def test_a_constraint_failure_carries_no_row(store):
    # PostgreSQL quotes the failing row, state included, in its message.
    store.create("x", "{}", lineage_id="line", round_ordinal=0)
    with pytest.raises(RunStoreError) as caught:
        store.create("y", f'"{SECRET}"', lineage_id="line", round_ordinal=0)
    assert caught.value.code == "constraint"
    assert isinstance(caught.value.__cause__, DatabaseFailure)
    assert SECRET not in everything_about(caught.value)


def test_a_failed_write_carries_no_row(world: World):
    world.active(A)
    with failing_updates_of("run"), pytest.raises(RunStoreError) as caught:
        world.store.transition_owned("run", A, "running", f'"{SECRET}"')
    assert caught.value.code == "constraint"
    assert SECRET not in everything_about(caught.value)


def test_a_row_does_not_show_what_it_holds(store):
    store.create("x", f'"{SECRET}"')
    assert SECRET not in repr(store.get("x"))


def test_facts_hold_no_state(world: World):
    world.active(A, state=f'"{SECRET}"')
    world.store.transition_owned("run", A, "completed", f'"{SECRET}2"')
    assert SECRET not in str(world.facts())


def test_logs_hold_no_state(database_world: World, caplog):
    caplog.set_level(logging.DEBUG, logger="django_runstore")
    with checks_off():
        database_world.pending(state=f'"{SECRET}"')
        update_raw("run", state_json=f"{SECRET} is no JSON")
        assert database_world.store.claim_many(A, 1) == ()
    assert caplog.records
    assert not [r for r in caplog.records if SECRET in f"{r.getMessage()} {vars(r)}"]


@pytest.mark.conformance(189)
def test_states_of_credentials_are_stored_as_they_are(world: World):
    state = f'{{"token":"{SECRET}","authorization":"Bearer x"}}'
    world.active(A, state=state)
    assert world.store.get("run").state_json == state
    world.store.transition_owned("run", A, "running", f"[{state}]")
    assert world.store.get("run").state_json == f"[{state}]"


def test_errors_survive_pickling(store):
    errors = []
    for refused in (
        lambda: store.create("", "{}"),
        lambda: store.get("nobody"),
        lambda: store.create("x", "{}", parent_run_id="nobody"),
    ):
        with pytest.raises(RunStoreError) as caught:
            refused()
        errors.append(caught.value)
    for error in errors:
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - made here
        assert type(copy) is type(error)
        assert (str(copy), copy.code, copy.operation) == (str(error), error.code, error.operation)
        assert dict(copy.detail) == dict(error.detail)


def test_the_detail_of_an_error_cannot_be_changed(store):
    with pytest.raises(InvalidRun) as caught:
        store.claim("", P, A, 0)
    with pytest.raises(TypeError):
        caught.value.detail["field"] = "x"
