from contextlib import suppress

import pytest

from django_runstore import RunStore
from django_runstore.handlers import InvalidValue, RunInterrupted
from django_runstore.models import Run
from django_runstore.snapshots import OwnedTransition
from tests.handlers.conftest import OWNER


def put_back_and_own_again(context):
    """The same process loses the run and gets it again, as the old execution lives on."""
    store = RunStore()
    store.transition_many(OWNER, [OwnedTransition(context.run_id, context.fence, "suspended")])
    (claimed,) = store.claim_many(OWNER, 1)
    assert claimed.run.run_id == context.run_id
    return claimed.fence


ENTRY_POINTS = {
    "check": lambda context: context.check(),
    "save": lambda context: context.save({"n": 9}),
    "progress": lambda context: context.progress(0.9),
}


def test_a_context_starts_from_the_stored_state(make_context):
    assert make_context({"n": 1}).state == {"n": 1}


def test_saving_replaces_the_stored_state_and_shows_it(make_context):
    context = make_context({"n": 1})
    context.save({"n": 2})
    assert context.state == {"n": 2}
    assert Run.objects.get().state_json == '{"n":2}'


def test_saving_keeps_the_run_running_under_its_fence(make_context):
    context = make_context()
    context.save(1)
    run = Run.objects.get()
    assert (run.status, run.owner_fence) == ("running", context.fence)


def test_saving_and_progress_count_as_advance(make_context, signal):
    context = make_context()
    context.save(1)
    context.progress(None, "going")
    assert signal.advances == 2
    assert Run.objects.get().progressed_at_ms is not None


def test_the_fence_rises_with_each_ownership(make_context):
    context = make_context()
    assert put_back_and_own_again(context) == context.fence + 1


@pytest.mark.parametrize("entry", ["save", "progress"])
def test_an_old_execution_of_the_same_process_cannot_write(make_context, entry):
    context = make_context({"n": 1})
    put_back_and_own_again(context)
    before = Run.objects.values().get()
    with pytest.raises(RunInterrupted) as caught:
        ENTRY_POINTS[entry](context)
    assert caught.value.reason == "fence_lost"
    assert Run.objects.values().get() == before


@pytest.mark.parametrize("entry", ENTRY_POINTS)
def test_nothing_is_asked_of_the_database_once_ownership_expired(
    make_context, signal, entry, django_assert_num_queries
):
    context = make_context()
    signal.is_expired = True
    with django_assert_num_queries(0), pytest.raises(RunInterrupted) as caught:
        ENTRY_POINTS[entry](context)
    assert caught.value.reason == "lease_lapsed"


@pytest.mark.parametrize("entry", ENTRY_POINTS)
def test_a_handler_that_should_stop_is_told_the_reason(make_context, signal, entry):
    context = make_context()
    signal.reason = "draining"
    with pytest.raises(RunInterrupted) as caught:
        ENTRY_POINTS[entry](context)
    assert caught.value.reason == "draining"


def test_an_interruption_passes_through_except_exception(make_context, signal):
    context = make_context()
    signal.reason = "cancelled"

    def careless_handler():
        with suppress(Exception):
            context.check()

    with pytest.raises(RunInterrupted):
        careless_handler()


def test_a_cancel_request_is_seen_in_the_database(make_context):
    context = make_context()
    assert context.cancel_requested is False
    RunStore().request_cancel(context.run_id)
    assert context.cancel_requested is True


def test_a_cancel_that_the_supervisor_announced_needs_no_query(
    make_context, signal, django_assert_num_queries
):
    context = make_context()
    signal.reason = "cancelled"
    with django_assert_num_queries(0):
        assert context.cancel_requested is True


def test_a_state_that_cannot_be_stored_leaves_the_stored_one(make_context):
    context = make_context({"n": 1})
    with pytest.raises(InvalidValue) as caught:
        context.save({"out": ["a", b"bytes"]})
    assert caught.value.detail["path"] == "$.out[1]"
    assert Run.objects.get().state_json == '{"n":1}'
    assert context.state == {"n": 1}


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan"), float("inf"), "1", True, 10**400])
def test_progress_is_from_zero_to_one(make_context, fraction):
    context = make_context()
    with pytest.raises(InvalidValue) as caught:
        context.progress(fraction)
    assert caught.value.detail["field"] == "fraction"
    assert Run.objects.get().progress_json is None


@pytest.mark.parametrize("message", ["a\0b", "\ud800", "x" * 501, 3, None])
def test_a_progress_message_is_short_and_well_formed(make_context, message):
    context = make_context()
    with pytest.raises(InvalidValue) as caught:
        context.progress(0.5, message)
    assert caught.value.detail["field"] == "message"


@pytest.mark.parametrize("fraction", [0, 1, 0.5, None])
def test_the_ends_of_the_range_and_unknown_are_progress(make_context, fraction):
    context = make_context()
    context.progress(fraction)
    assert Run.objects.get().progress_json == (
        '{"fraction":%s,"message":""}' % ("null" if fraction is None else fraction)
    )
