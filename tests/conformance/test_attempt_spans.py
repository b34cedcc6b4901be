"""Spans of the attempt store. Spec: run-store 11.2, note 197."""

import pytest
from asgiref.sync import async_to_sync

from django_runstore.errors import InvalidAttempt
from tests.conformance.attempts import OPERATIONS, started

# Spec 11.2: which attempt, and whose; reading needs no owner.
ATTEMPT = {"run_id": "run", "step_key_digest": "step-digest", "attempt": 0}
OWNED = {**ATTEMPT, "owner_host_id": "host-a"}
ATTRIBUTES = {
    # The sample that is put is the second attempt of the step.
    "put": {**OWNED, "attempt": 1},
    "get": ATTEMPT,
    # Of a step it does not know which attempt there is.
    "latest": {"run_id": "run", "step_key_digest": "step-digest"},
    "heartbeat": OWNED,
    "finish": OWNED,
    "patch": OWNED,
}
SUCCESSFUL = {"get", "latest"}


@pytest.fixture
def store(db, recorder):
    opened = started()
    recorder.forget()
    return opened


@pytest.mark.conformance(197)
@pytest.mark.parametrize("prefix", ["", "a"])
@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_an_operation_has_one_span_and_no_counter(store, recorder, operation, prefix):
    method = getattr(store, prefix + operation)
    arguments = OPERATIONS[operation].arguments
    answer = async_to_sync(method)(**arguments) if prefix else method(**arguments)

    (span,) = recorder.spans
    assert span.name == f"AttemptStore.{operation}"
    outcome = "success" if operation in SUCCESSFUL else answer.code
    assert span.attributes == {**ATTRIBUTES[operation], "outcome": outcome}
    assert recorder.counts == {}


@pytest.mark.conformance(197)
@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_invalid_input_leaves_nothing_but_the_outcome(store, recorder, operation):
    call = OPERATIONS[operation]
    for name in call.arguments:
        if name == "checkpoint":
            continue  # Any JSON value is one; what is none is tested with the boundary.
        recorder.forget()
        with pytest.raises(InvalidAttempt):
            call.on(store, **{name: object()})
        (span,) = recorder.spans
        assert span.attributes == {"outcome": "failure"}, name
