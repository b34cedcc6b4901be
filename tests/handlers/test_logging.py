"""``run.log``: what a handler says goes into the run's own journal, under its fence."""

import pytest

from django_runstore import Journal
from django_runstore.errors import InvalidEvent
from django_runstore.handlers import RunInterrupted
from django_runstore.handlers.context import LOG_SOURCE
from tests.handlers.conftest import OWNER


def entries(context):
    return Journal().entries(context.run_id).entries


def test_what_is_logged_is_an_entry_of_the_runs_own_stream(make_context, signal):
    context = make_context()
    context.log("invoice.sent", {"n": 7, "token": "abc"})
    context.log("invoice.paid")
    first, second = entries(context)
    assert (first.event_type, first.payload) == ("invoice.sent", {"n": 7, "token": "[REDACTED]"})
    assert (second.event_type, second.payload) == ("invoice.paid", None)
    assert {first.source_id, second.source_id} == {LOG_SOURCE} == {"handler"}
    # Talking is not advancing.
    assert signal.advances == 0


def test_an_execution_that_lost_its_run_logs_nothing(make_context):
    context = make_context()
    store = context._store
    store.transition_owned(context.run_id, OWNER, "suspended", fence=context.fence)
    store.claim_many(OWNER, 1)
    with pytest.raises(RunInterrupted) as caught:
        context.log("late")
    assert caught.value.reason == "fence_lost"
    assert caught.value.__cause__ is None
    assert entries(context) == ()


@pytest.mark.parametrize(("event_type", "payload"), [("", 1), (None, 1), ("sent", object())])
def test_what_cannot_be_stored_is_refused(make_context, event_type, payload):
    context = make_context()
    with pytest.raises(InvalidEvent):
        context.log(event_type, payload)
    assert entries(context) == ()
