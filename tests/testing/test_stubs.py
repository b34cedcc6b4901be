"""Stores that store nothing. Spec: run-store 4.4 and 5.4."""

import inspect

import pytest
from asgiref.sync import async_to_sync

from django_runstore import AttemptStore, OwnerId, RunPersistenceFailed, RunStore
from django_runstore.attempts import AttemptId
from django_runstore.errors import AttemptUnknown
from django_runstore.outcomes import ClaimLost, FenceLost, Inserted, NotFound
from django_runstore.snapshots import OwnedTransition
from django_runstore.testing.stubs import StubAttemptStore, StubRunStore

A = OwnerId("host", 1, "nonce")

FAILING = (
    "create",
    "get",
    "lineage",
    "latest_round",
    "request_cancel_lineage",
    "waiting",
    "changes",
    "identity",
    "revision",
    "rotate_identity",
)
ANSWERS = {
    "request_cancel": NotFound(),
    "claim": NotFound(),
    "claim_and_own": NotFound(),
    "recover_claim": NotFound(),
    "heartbeat": NotFound(),
    "reconfirm": NotFound(),
    "transition_owned": NotFound(),
    "steal": NotFound(),
    "save_progress": NotFound(),
    "activate": ClaimLost(),
    "abandon_claim": ClaimLost(),
    "acknowledge_cancel": False,
    "claim_many": (),
    "park": NotFound(),
    "wake": NotFound(),
    "waiting_runs": (),
}


@pytest.mark.conformance(182)
@pytest.mark.parametrize("operation", FAILING)
def test_what_returns_a_run_fails_and_says_which_operation_it_was(operation):
    with pytest.raises(RunPersistenceFailed) as caught:
        getattr(StubRunStore(), operation)("run")
    assert caught.value.operation == operation
    assert str(caught.value) == (
        f"persistence_failed: RunStore.{operation}: no run store in this environment"
    )


@pytest.mark.conformance(94, 182)
@pytest.mark.parametrize("operation", ANSWERS)
def test_everything_else_answers_as_if_there_were_no_run(operation):
    assert getattr(StubRunStore(), operation)("not", object(), "validated") == ANSWERS[operation]


def test_batches_answer_for_each_run():
    store = StubRunStore()
    assert store.heartbeat_many(A, [("x", 1), ("y", 2)]) == {"x": NotFound(), "y": NotFound()}
    moves = [OwnedTransition("x", 1, "completed")]
    assert store.transition_many(A, moves) == {"x": NotFound()}


def test_every_operation_of_the_store_has_an_answer():
    operations = {
        name
        for name, member in inspect.getmembers(RunStore, inspect.isfunction)
        if not name.startswith("_") and not inspect.iscoroutinefunction(member)
    }
    assert operations == {*FAILING, *ANSWERS, "heartbeat_many", "transition_many"}


@pytest.mark.conformance(182)
def test_an_operation_and_its_twin_can_be_overridden():
    asked = []

    def lost(*args, **kwargs):
        asked.append((args, kwargs))
        return FenceLost()

    store = StubRunStore(heartbeat=lost)
    assert store.heartbeat("run", A, fence=1) == FenceLost()
    assert async_to_sync(store.aheartbeat)("run", A) == FenceLost()
    assert asked == [(("run", A), {"fence": 1}), (("run", A), {})]
    assert store.reconfirm("run", A) == NotFound()


def test_twins_answer_too():
    assert async_to_sync(StubRunStore().aclaim)("run") == NotFound()
    with pytest.raises(RunPersistenceFailed):
        async_to_sync(StubRunStore().aget)("run")


def test_an_override_of_nothing_is_refused():
    with pytest.raises(TypeError, match="no operation heartbeet"):
        StubRunStore(heartbeet=lambda: None)


def test_it_can_stand_in_for_the_store():
    assert isinstance(StubRunStore(), RunStore)


ATTEMPT_OPERATIONS = ("put", "get", "latest", "heartbeat", "finish", "patch")


@pytest.mark.conformance(182)
@pytest.mark.parametrize("operation", ATTEMPT_OPERATIONS)
def test_every_operation_on_attempts_is_unknown(operation):
    store = StubAttemptStore()
    for call in (getattr(store, operation), async_to_sync(getattr(store, f"a{operation}"))):
        with pytest.raises(AttemptUnknown) as caught:
            call("not", object(), "validated")
        assert caught.value.operation == operation
        assert str(caught.value) == (
            f"unknown: AttemptStore.{operation}: the store is unavailable in this environment"
        )


def test_every_operation_of_the_attempt_store_has_an_answer():
    operations = {
        name
        for name, member in inspect.getmembers(AttemptStore, inspect.isfunction)
        if not name.startswith("_") and not inspect.iscoroutinefunction(member)
    }
    assert operations == set(ATTEMPT_OPERATIONS)


@pytest.mark.conformance(182)
def test_an_operation_on_attempts_and_its_twin_can_be_overridden():
    store = StubAttemptStore(put=lambda *_, **__: Inserted(), get=lambda _: None)
    assert store.put("attempt", A, fence=1) == Inserted()
    assert async_to_sync(store.aput)("attempt", A) == Inserted()
    assert store.get(AttemptId("run", "step", 0)) is None
    with pytest.raises(AttemptUnknown):
        store.finish("record", A)


def test_an_override_of_no_operation_on_attempts_is_refused():
    with pytest.raises(TypeError, match=r"^AttemptStore has no operation claim$"):
        StubAttemptStore(claim=lambda: None)


def test_it_can_stand_in_for_the_attempt_store():
    assert isinstance(StubAttemptStore(), AttemptStore)
