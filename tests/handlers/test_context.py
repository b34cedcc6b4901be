from contextlib import suppress

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore import RunStore
from django_runstore.durations import HEARTBEAT_INTERVAL_MS
from django_runstore.handlers import InvalidValue, RunContext, RunInterrupted, idle_connection
from django_runstore.handlers import context as context_module
from django_runstore.models import Run
from django_runstore.outcomes import FenceLost, NotFound, Updated
from django_runstore.snapshots import OwnedTransition
from tests.conformance.race import race
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
    "log": lambda context: context.log("seen"),
}


WRITES = {**ENTRY_POINTS, "step": lambda context: context.step("extract", lambda: 5)}
# Waits until it is gone: a session that ends later would be that of some other test.
END = "SELECT 'x' AS run_id, pg_terminate_backend(%s, 30000) AS ended"


class RecordingStore:
    """Answers every write with the outcome given, and keeps what it was called with."""

    using = "default"

    def __init__(self, outcome):
        self.outcome = outcome
        self.calls = []

    def save_progress(self, *args, **kwargs):
        self.calls.append((args, kwargs))
        return self.outcome


@pytest.fixture
def recorded(make_context, signal):
    """Make a context over a recording store."""

    def make(outcome):
        row = RunStore().get(make_context({"n": 1}).run_id)
        store = RecordingStore(outcome)
        return RunContext(row, row.owner_fence, OWNER, store, signal), store

    return make


@pytest.fixture
def boottime(monkeypatch):
    """A boot-time clock that a test moves."""
    readings = {"now": 5_000.0}
    monkeypatch.setattr(context_module, "boottime_ms", lambda: readings["now"])
    return readings


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


@pytest.mark.parametrize("entry", ["save", "progress"])
def test_every_write_names_owner_and_fence(recorded, entry):
    context, store = recorded(Updated())
    ENTRY_POINTS[entry](context)
    ((args, kwargs),) = store.calls
    assert args == (context.run_id, OWNER)
    assert kwargs["fence"] == context.fence


@pytest.mark.parametrize("outcome", [FenceLost(), NotFound()])
@pytest.mark.parametrize("entry", ["save", "progress"])
def test_a_lost_write_interrupts_and_is_no_advance(recorded, signal, entry, outcome):
    context, _ = recorded(outcome)
    with pytest.raises(RunInterrupted) as caught:
        ENTRY_POINTS[entry](context)
    assert caught.value.reason == "fence_lost"
    assert context.state == {"n": 1}
    assert signal.advances == 0


@pytest.mark.parametrize("entry", ["save", "progress"])
def test_the_stop_is_looked_at_before_the_store_is_asked(recorded, signal, entry):
    context, store = recorded(Updated())
    signal.reason = "stopping"
    with pytest.raises(RunInterrupted):
        ENTRY_POINTS[entry](context)
    assert store.calls == []


def test_a_save_writes_state_and_advance_at_once(make_context):
    context = make_context()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        context.save({"n": 2})
    written = [q["sql"] for q in queries if "progressed_at_ms" in q["sql"].partition("WHERE")[0]]
    updates = [sql for sql in written if sql.startswith("UPDATE")]
    assert len(updates) == 1
    assert "state_json" in updates[0]


def test_a_saved_state_is_a_copy(make_context):
    state = {"done": []}
    context = make_context()
    context.save(state)
    state["done"].append(1)
    assert context.state == {"done": []}


def test_a_save_keeps_the_progress_shown_to_people(make_context):
    context = make_context()
    context.progress(0.5, "half")
    context.save(1)
    assert Run.objects.get().progress_json == '{"fraction":0.5,"message":"half"}'


def test_a_cancel_request_is_seen_in_the_database(make_context):
    context = make_context()
    RunStore().request_cancel(context.run_id)
    assert context.cancel_requested is True


def test_the_database_is_asked_once_per_heartbeat_interval(
    make_context, boottime, django_assert_num_queries
):
    context = make_context()
    with django_assert_num_queries(1):
        assert not context.cancel_requested
        assert not context.cancel_requested
    RunStore().request_cancel(context.run_id)
    boottime["now"] += HEARTBEAT_INTERVAL_MS - 1
    with django_assert_num_queries(0):
        assert context.cancel_requested is False
    boottime["now"] += 1
    with django_assert_num_queries(1):
        assert context.cancel_requested is True


def test_a_cancel_request_that_was_seen_is_not_looked_for_again(
    make_context, boottime, django_assert_num_queries
):
    context = make_context()
    RunStore().request_cancel(context.run_id)
    assert context.cancel_requested
    boottime["now"] += 10 * HEARTBEAT_INTERVAL_MS
    with django_assert_num_queries(0):
        assert context.cancel_requested


def test_a_request_is_not_taken_for_an_old_execution(make_context):
    context = make_context()
    put_back_and_own_again(context)
    RunStore().request_cancel(context.run_id)
    with pytest.raises(RunInterrupted) as caught:
        _ = context.cancel_requested
    assert caught.value.reason == "fence_lost"


def test_a_run_that_is_gone_is_no_longer_owned(make_context):
    context = make_context()
    Run.unguarded.filter(pk=context.run_id).delete()
    with pytest.raises(RunInterrupted) as caught:
        _ = context.cancel_requested
    assert caught.value.reason == "fence_lost"


@pytest.mark.parametrize(("expired", "reason"), [(True, None), (False, "draining")])
def test_other_reasons_to_stop_interrupt_a_look_for_a_request(
    make_context, signal, expired, reason
):
    context = make_context()
    signal.is_expired, signal.reason = expired, reason
    with pytest.raises(RunInterrupted) as caught:
        _ = context.cancel_requested
    assert caught.value.reason == (reason or "lease_lapsed")


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


class TestConnectionsThatWereEnded:
    @pytest.fixture
    def ended(self, monkeypatch):
        """End the connection of this thread from another, as a server does to idle ones."""
        monkeypatch.setattr(idle_connection, "LONG_MS", 0)

        def end():
            pid = connection.connection.info.backend_pid
            race(lambda: Run.objects.raw(END, [pid])[0])

        return end

    @pytest.mark.postgres("SQLite has no connection that could be ended")
    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("write", ["save", "progress", "log", "step"])
    def test_the_first_write_after_long_work_goes_through(self, make_context, ended, write):
        context = make_context()
        ended()
        WRITES[write](context)

    @pytest.mark.postgres("SQLite has no connection that could be ended")
    @pytest.mark.django_db(transaction=True)
    def test_the_first_look_for_a_request_after_long_work_goes_through(self, make_context, ended):
        context = make_context()
        ended()
        assert context.cancel_requested is False

    def test_nothing_is_asked_between_two_writes_that_follow_each_other(self, make_context):
        context = make_context()
        with CaptureQueriesContext(connection) as alone:
            context.save(1)
        with CaptureQueriesContext(connection) as second:
            context.save(2)
        assert len(second) == len(alone)
        assert not any(query["sql"] == "SELECT 1" for query in [*alone, *second])
