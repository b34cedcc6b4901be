"""Spans of the store's operations. Spec: run-store 11.2, note 197."""

import pytest

from django_runstore import InvalidRun, RunNotFound, RunPersistenceFailed
from django_runstore.testing import FakeClock
from tests.conformance.calls import CALLS, EVERY
from tests.conformance.world import A, B, World

# Spec 11.2: of whom the host is told, by operation.
OWNER = {"run_id": "run", "owner_host_id": "host-a"}
CLAIMANT = {"run_id": "run", "claimant_host_id": "host-a"}
OBSERVER = {"run_id": "run", "observer_host_id": "host-a"}
RUN = {"run_id": "run"}
ATTRIBUTES = {
    "create": {"run_id": "new"},
    "get": RUN,
    "lineage": RUN,
    "latest_round": RUN,
    "request_cancel": RUN,
    "request_cancel_lineage": RUN,
    "acknowledge_cancel": OWNER,
    "claim": CLAIMANT,
    "claim_and_own": OWNER,
    "activate": CLAIMANT,
    "abandon_claim": CLAIMANT,
    "recover_claim": OBSERVER,
    "heartbeat": OWNER,
    "reconfirm": OWNER,
    "transition_owned": {**OWNER, "to": "running"},
    "steal": CLAIMANT,
    # This package's own.
    "save_progress": OWNER,
    "claim_many": {"owner_host_id": "host-a"},
    "heartbeat_many": {"owner_host_id": "host-a"},
    "transition_many": {"owner_host_id": "host-a"},
    "park": OWNER,
    "wake": RUN,
    "waiting": RUN,
    "waiting_runs": {},
    "changes": {},
    "identity": {},
    "revision": {},
    "rotate_identity": {},
}

# Spec 11.2: operations without outcomes to tell apart, and this package's set operations.
SUCCESSFUL = {
    "create",
    "get",
    "lineage",
    "latest_round",
    "acknowledge_cancel",
    "claim_many",
    "heartbeat_many",
    "transition_many",
    "waiting",
    "waiting_runs",
    "changes",
    "identity",
    "revision",
    "rotate_identity",
}


@pytest.mark.conformance(197)
@pytest.mark.parametrize("operation", sorted(EVERY))
def test_an_operation_has_one_span_with_its_attributes_and_outcome(db, recorder, operation):
    world = World()
    world.active(A)
    recorder.forget()
    answer = EVERY[operation].on(world.store)

    (span,) = recorder.spans
    assert span.name == f"RunStore.{operation}"
    outcome = "success" if operation in SUCCESSFUL else answer.code
    assert span.attributes == {**ATTRIBUTES[operation], "outcome": outcome}


@pytest.mark.conformance(197)
@pytest.mark.parametrize("operation", sorted(CALLS))
def test_invalid_input_leaves_nothing_but_the_outcome(db, recorder, operation):
    call = CALLS[operation]
    for name in call.arguments:
        recorder.forget()
        with pytest.raises(InvalidRun):
            call.on(World().store, **{name: object()})
        (span,) = recorder.spans
        assert span.attributes == {"outcome": "failure"}, name


@pytest.mark.conformance(197)
def test_a_request_to_cancel_is_named_by_its_outcome(db, recorder):
    world = World()
    world.pending()
    recorder.forget()
    world.store.request_cancel("run", 0)

    (span,) = recorder.spans
    assert span.attributes == {"run_id": "run", "outcome": "cancel_requested"}


@pytest.mark.conformance(197)
def test_a_missing_run_is_a_failure_of_get_that_names_it(db, recorder):
    with pytest.raises(RunNotFound):
        World().store.get("nobody")

    (span,) = recorder.spans
    assert span.attributes == {"run_id": "nobody", "outcome": "failure"}


class InterruptedClock(FakeClock):
    def now_ms(self) -> float:
        raise KeyboardInterrupt


@pytest.mark.conformance(197)
def test_an_interrupted_create_is_an_interrupt(db, recorder):
    world = World(clock=InterruptedClock(0))
    with pytest.raises(KeyboardInterrupt):
        world.store.create("run", "{}")

    (span,) = recorder.spans
    assert span.attributes == {"run_id": "run", "outcome": "interrupt"}


@pytest.mark.conformance(197)
def test_an_acknowledgement_succeeds_whether_true_or_false(db, recorder):
    world = World()
    world.active(A)
    world.store.request_cancel("run", 0)
    recorder.forget()

    assert world.store.acknowledge_cancel("run", A, 0) is True
    assert world.store.acknowledge_cancel("run", B, 0) is False
    with pytest.raises(InvalidRun):
        world.store.acknowledge_cancel("", A, 0)
    outcomes = [span.attributes["outcome"] for span in recorder.spans]
    assert outcomes == ["success", "success", "failure"]


def test_an_error_of_the_database_keeps_the_attributes(db, recorder):
    world = World(clock=FakeClock(float("nan")))
    with pytest.raises(RunPersistenceFailed):
        world.store.create("run", "{}")

    (span,) = recorder.spans
    assert span.attributes == {"run_id": "run", "outcome": "failure"}
