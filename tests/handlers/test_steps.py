"""Steps: what is done once, what is done again, and what is recorded of it."""

import hashlib
import threading

import pytest
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from django_runstore import AttemptStore, RunStore
from django_runstore.durable import canonical_json
from django_runstore.errors import AttemptPersistenceFailed, RunPersistenceFailed
from django_runstore.handlers import InvalidValue, RunContext, RunInterrupted, idle_connection
from django_runstore.handlers.execution import Interrupted, execute
from django_runstore.handlers.idle_connection import IdleConnection
from django_runstore.handlers.registry import Handler
from django_runstore.handlers.steps import Steps
from django_runstore.models import Attempt, Run
from django_runstore.outcomes import FenceLost
from django_runstore.snapshots import OwnedTransition
from tests.conformance.race import race
from tests.handlers.conftest import OWNER
from tests.handlers.signals import ScriptedSignal


class Calls(list):
    """A function that keeps what it was called with."""

    def __init__(self, answer="done"):
        super().__init__()
        self.answer = answer

    def __call__(self, *args, **kwargs):
        self.append((args, kwargs))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def executed_again(context):
    """The same run under the next grant, as after a crash."""
    store = RunStore()
    store.transition_many(OWNER, [OwnedTransition(context.run_id, context.fence, "suspended")])
    (claimed,) = store.claim_many(OWNER, 1)
    return RunContext(claimed.run, claimed.fence, OWNER, store, ScriptedSignal())


def attempts(*columns):
    columns = columns or ("step_name", "attempt", "state")
    return list(Attempt.objects.order_by("pk").values_list(*columns))


class TestMemory:
    def test_a_completed_step_is_not_called_again(self, make_context):
        context, calls = make_context(), Calls({"rows": 3})
        assert context.step("extract", calls, "2026-10") == {"rows": 3}
        assert context.step("extract", calls, "2026-10") == {"rows": 3}
        assert executed_again(context).step("extract", calls, "2026-10") == {"rows": 3}
        assert calls == [(("2026-10",), {})]
        assert attempts() == [("extract", 0, "completed")]

    def test_a_step_that_comes_to_nothing_is_remembered_too(self, make_context):
        context, calls = make_context(), Calls(None)
        assert context.step("nothing", calls) is None
        assert executed_again(context).step("nothing", calls) is None
        assert len(calls) == 1

    def test_steps_are_known_by_name_and_inputs_and_never_by_position(self, make_context):
        context, calls = make_context(), Calls()
        context.step("one", calls, 1)
        context.step("two", calls, 1)
        again = executed_again(context)
        again.step("new", calls)
        again.step("two", calls, 1)
        again.step("one", calls, 1)
        again.step("one", calls, 2)
        again.step("one", calls, n=1)
        assert attempts("step_name") == [("one",), ("two",), ("new",), ("one",), ("one",)]
        assert calls == [((1,), {}), ((1,), {}), ((), {}), ((2,), {}), ((), {"n": 1})]

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
            (1, 1.0),
            ((1, 2), [1, 2]),
        ],
        ids=["the order of keys", "an integer as a float", "a tuple as a list"],
    )
    def test_inputs_that_mean_the_same_are_the_same(self, make_context, first, second):
        context, calls = make_context(), Calls()
        context.step("same", calls, first)
        context.step("same", calls, second)
        assert len(calls) == 1

    @pytest.mark.parametrize(
        ("first", "second"),
        [(1, True), ([1, 2], [2, 1]), (None, 0), ("1", 1)],
        ids=["a number and a truth", "the order of a list", "null and zero", "text and number"],
    )
    def test_inputs_that_mean_something_else_are_another_step(self, make_context, first, second):
        context, calls = make_context(), Calls()
        context.step("other", calls, first)
        context.step("other", calls, second)
        assert len(calls) == 2

    def test_the_fence_is_passed_on_and_is_no_part_of_the_step(self, make_context):
        context, calls = make_context(), Calls()
        context.step("publish", calls, "page", fence=context.fence)
        again = executed_again(context)
        again.step("publish", calls, "page", fence=again.fence)
        assert calls == [(("page",), {"fence": 1})]

    def test_a_result_has_its_stored_form_from_the_first_time_on(self, make_context):
        context = make_context()
        first = context.step("pair", Calls((1, {"b": 1.0, "a": (2,)})))
        assert first == [1, {"b": 1.0, "a": [2]}]
        assert executed_again(context).step("pair", Calls()) == first

    def test_a_result_that_is_changed_later_is_remembered_as_it_was(self, make_context):
        context = make_context()
        context.step("list", Calls([1])).append(2)
        assert context.step("list", Calls()) == [1]

    def test_the_steps_of_another_run_are_its_own(self, make_context):
        calls = Calls()
        make_context(run_id="a").step("extract", calls)
        make_context(run_id="b").step("extract", calls)
        assert len(calls) == 2

    def test_a_step_may_have_steps_of_its_own(self, make_context):
        context, inner = make_context(), Calls(1)
        assert context.step("outer", lambda: context.step("inner", inner) + 1) == 2
        assert attempts() == [("outer", 0, "completed"), ("inner", 0, "completed")]


class TestRepeating:
    def test_what_a_step_raises_is_recorded_and_goes_on_to_the_handler(self, make_context):
        context = make_context()
        error = LookupError("no such month")
        with pytest.raises(LookupError) as caught:
            context.step("extract", Calls(error))
        assert caught.value is error
        (attempt,) = Attempt.objects.all()
        assert (attempt.state, attempt.outcome_json) == ("failed", None)
        assert '"type":"LookupError"' in attempt.error_json
        assert '"message":"no such month"' in attempt.error_json

    def test_a_failed_step_is_called_again_as_the_next_attempt(self, make_context):
        context = make_context()
        for _ in range(2):
            with pytest.raises(LookupError):
                context.step("extract", Calls(LookupError()))
        assert executed_again(context).step("extract", Calls(7)) == 7
        assert attempts() == [
            ("extract", 0, "failed"),
            ("extract", 1, "failed"),
            ("extract", 2, "completed"),
        ]

    def test_an_exit_of_the_process_is_a_failure_of_the_step(self, make_context):
        with pytest.raises(SystemExit):
            make_context().step("leave", Calls(SystemExit(3)))
        assert attempts() == [("leave", 0, "failed")]

    def test_a_step_cut_short_by_a_crash_is_marked_and_called_again(self, make_context):
        context = make_context()
        with pytest.raises(KeyboardInterrupt):
            # Nothing is recorded of it, as when the process is killed.
            context.step("extract", Calls(KeyboardInterrupt()))
        assert attempts() == [("extract", 0, "running")]
        executed_again(context).step("extract", Calls())
        assert attempts() == [("extract", 0, "interrupted"), ("extract", 1, "completed")]

    @pytest.mark.parametrize(
        "interruption",
        [
            RunInterrupted("cancelled"),
            BaseExceptionGroup("tasks", [ValueError(), RunInterrupted("draining")]),
        ],
        ids=["plain", "of a task group"],
    )
    def test_an_interruption_is_no_failure(self, make_context, interruption):
        context = make_context()
        with pytest.raises(BaseException) as caught:  # noqa: PT011 - either of them
            context.step("extract", Calls(interruption))
        assert caught.value is interruption
        assert attempts() == [("extract", 0, "interrupted")]

    def test_the_grant_of_an_attempt_is_in_its_meta(self, make_context):
        context = make_context()
        context.step("a", Calls())
        executed_again(context).step("b", Calls())
        assert attempts("meta_json") == [('{"fence":1}',), ('{"fence":2}',)]


class TestRefusals:
    @pytest.mark.parametrize(
        ("args", "kwargs", "path"),
        [
            ((1, {"price": float("nan")}), {}, "$.args[1].price"),
            ((), {"rows": [0, object()]}, "$.kwargs.rows[1]"),
        ],
    )
    def test_an_input_that_cannot_be_stored_is_refused_with_its_path(
        self, make_context, args, kwargs, path
    ):
        calls = Calls()
        with pytest.raises(InvalidValue) as caught:
            make_context().step("extract", calls, *args, **kwargs)
        assert caught.value.detail["path"] == path
        assert (caught.value.operation, caught.value.detail["field"]) == ("step", "inputs")
        assert (calls, attempts()) == ([], [])

    def test_a_result_that_cannot_be_stored_is_refused_and_recorded(self, make_context):
        context = make_context()
        result = {"items": [{"price": 1}, {"price": float("inf"), "secret": "hunter2"}]}
        with pytest.raises(InvalidValue) as caught:
            context.step("extract", Calls(result))
        assert str(caught.value) == (
            "invalid_value: Handler.step: result.items[1].price contains a non-finite number"
        )
        (attempt,) = Attempt.objects.all()
        assert attempt.state == "failed"
        assert "result.items[1].price contains a non-finite number" in attempt.error_json
        assert "hunter2" not in attempt.error_json

    @pytest.mark.parametrize("name", ["", "x" * 1025, "a\0b", "\ud800", None, 7])
    def test_a_name_that_cannot_be_stored_is_refused(self, make_context, name):
        calls = Calls()
        with pytest.raises(InvalidValue, match=r"Handler\.step: name must be"):
            make_context().step(name, calls)
        assert calls == []

    def test_a_function_that_would_have_to_be_awaited_is_refused(self, make_context):
        async def extract():
            """Nothing."""

        for function in (extract, "extract"):
            with pytest.raises(InvalidValue, match="function must be a plain function"):
                make_context().step("extract", function)

    def test_a_step_inside_itself_is_refused(self, make_context):
        context = make_context()
        with pytest.raises(InvalidValue, match="under way with the same inputs"):
            context.step("extract", lambda: context.step("extract", Calls()))
        assert attempts() == [("extract", 0, "failed")]

    def test_a_step_is_done_by_one_thread_at_a_time(self, row_of, signal):
        steps, entered, leave = row_of(signal), threading.Event(), threading.Event()

        def wait():
            entered.set()
            assert leave.wait(30)

        # Without the database, whose connections belong to one thread each.
        steps._once = lambda *parts: (parts[-1](), True)
        first = threading.Thread(target=steps.run, args=("extract", wait, (), {}))
        first.start()
        assert entered.wait(30)
        with pytest.raises(InvalidValue, match="under way with the same inputs"):
            steps.run("extract", Calls(), (), {})
        leave.set()
        first.join()
        assert steps.run("extract", Calls("again"), (), {}) == ("again", True)


@pytest.fixture
def row_of(make_context):
    def make(signal):
        context = make_context()
        return Steps(
            context.run_id, OWNER, context.fence, RunStore(), signal, IdleConnection("default")
        )

    return make


class TestOwnership:
    @pytest.mark.parametrize("reason", ["draining", "cancelled"])
    def test_no_step_begins_once_the_run_should_stop(self, make_context, signal, reason):
        context, calls = make_context(), Calls()
        signal.reason = reason
        with pytest.raises(RunInterrupted, match=reason):
            context.step("extract", calls)
        assert (calls, attempts()) == ([], [])

    def test_what_was_done_is_recorded_although_the_run_should_stop(self, make_context, signal):
        context = make_context()

        def work():
            signal.reason = "draining"
            return 5

        assert context.step("extract", work) == 5
        assert attempts() == [("extract", 0, "completed")]

    @pytest.mark.parametrize("answer", ["done", LookupError(), RunInterrupted("draining")])
    def test_nothing_is_recorded_under_a_lapsed_lease(self, make_context, signal, answer):
        context = make_context()

        def work():
            signal.is_expired = True
            return Calls(answer)()

        with pytest.raises(RunInterrupted):
            context.step("extract", work)
        assert attempts() == [("extract", 0, "running")]

    def test_a_displaced_execution_records_nothing_and_is_told(self, make_context):
        context, others = make_context(), []

        def work():
            others.append(executed_again(context))
            others[0].step("extract", Calls("mine"))
            return "too late"

        with pytest.raises(RunInterrupted, match="fence_lost"):
            context.step("extract", work)
        assert others[0].step("extract", Calls()) == "mine"
        assert attempts() == [("extract", 0, "interrupted"), ("extract", 1, "completed")]

    def test_a_displaced_execution_begins_no_step(self, make_context):
        context, calls = make_context(), Calls()
        executed_again(context)
        with pytest.raises(RunInterrupted, match="fence_lost"):
            context.step("extract", calls)
        assert (calls, attempts()) == ([], [])

    def test_a_run_that_is_gone_begins_no_step(self, make_context):
        context, calls = make_context(), Calls()
        Run.unguarded.all().delete()
        with pytest.raises(RunInterrupted, match="fence_lost"):
            context.step("extract", calls)
        assert calls == []

    def test_every_write_carries_owner_and_fence(self, make_context, monkeypatch):
        seen = []
        for operation in ("put", "finish"):
            monkeypatch.setattr(
                AttemptStore,
                operation,
                lambda *args, fence: seen.append((args[-1], fence)) or FenceLost(),
            )
        context = make_context()
        with pytest.raises(RunInterrupted):
            context.step("extract", Calls())
        assert seen == [(OWNER, context.fence)]


class TestProgress:
    def test_a_completed_step_is_progress_and_a_remembered_one_is_not(self, make_context, signal):
        context = make_context()
        Run.unguarded.update(recovery_count=2)
        context.step("extract", Calls())
        run = Run.objects.get()
        assert (run.recovery_count, run.progressed_at_ms is not None) == (0, True)
        assert signal.advances == 1
        context.step("extract", Calls())
        assert signal.advances == 1

    def test_a_failed_step_is_no_progress(self, make_context, signal):
        context = make_context()
        with pytest.raises(LookupError):
            context.step("extract", Calls(LookupError()))
        assert (signal.advances, Run.objects.get().progressed_at_ms) == (0, None)

    def test_a_remembered_step_costs_one_statement(self, make_context):
        context = make_context()
        context.step("extract", Calls())
        with CaptureQueriesContext(connection) as queries:
            context.step("extract", Calls())
        # The savepoint is the test's: outside a TestCase nothing has to be asked of its block.
        asked = [query for query in queries if "SAVEPOINT" not in query["sql"]]
        assert len(asked) == 1


class TestFailingDatabase:
    @pytest.mark.parametrize("operation", ["latest", "put", "finish"])
    def test_a_run_whose_step_cannot_be_recorded_goes_on_later(
        self, make_context, monkeypatch, operation
    ):
        def away(*_args, **_kwargs):
            raise OperationalError("server closed the connection unexpectedly")

        context = make_context()
        real = getattr(AttemptStore, operation)
        monkeypatch.setattr(
            AttemptStore, operation, lambda *args, **_: args[0]._typed(operation, away)
        )
        outcome = execute(Handler("it", lambda run: run.step("extract", Calls())), context)
        assert outcome == Interrupted("database_unavailable")
        monkeypatch.setattr(AttemptStore, operation, real)
        assert executed_again(context).step("extract", Calls(9)) == 9

    @pytest.mark.parametrize("kind", [RunPersistenceFailed, AttemptPersistenceFailed])
    def test_a_write_that_failed_inside_a_step_is_no_failure_of_it(self, make_context, kind):
        def save():
            store = RunStore()
            store._kind_of_failure = lambda _code: kind
            store._typed("save", lambda: (_ for _ in ()).throw(OSError("gone")))

        outcome = execute(Handler("it", lambda run: run.step("extract", save)), make_context())
        assert outcome == Interrupted("database_unavailable")
        assert attempts() == [("extract", 0, "interrupted")]

    def test_a_step_that_cannot_be_marked_leaves_the_interruption_alone(
        self, make_context, monkeypatch
    ):
        def away(*_args, **_kwargs):
            raise AttemptPersistenceFailed("finish", "attempt persistence failed")

        context = make_context()
        monkeypatch.setattr(AttemptStore, "finish", away)
        with pytest.raises(RunInterrupted, match="draining"):
            context.step("extract", Calls(RunInterrupted("draining")))


class TestSurroundings:
    @pytest.mark.django_db(transaction=True)
    def test_a_step_inside_an_atomic_block_is_refused(self, make_context):
        context, calls = make_context(), Calls()
        with transaction.atomic(), pytest.raises(InvalidValue, match="leave the block first"):
            context.step("extract", calls)
        assert (calls, attempts()) == ([], [])
        assert context.step("extract", calls) == "done"

    def test_a_clock_that_cannot_be_read_is_a_database_that_is_away(
        self, make_context, monkeypatch
    ):
        def away(_clock):
            raise OperationalError("server closed the connection unexpectedly")

        context = make_context()

        def work():
            monkeypatch.setattr(type(RunStore().clock), "now_ms", away)

        outcome = execute(Handler("it", lambda run: run.step("extract", work)), context)
        assert outcome == Interrupted("database_unavailable")

    @pytest.mark.postgres("SQLite has no connection that could be ended")
    @pytest.mark.django_db(transaction=True)
    def test_the_result_of_long_work_is_recorded_although_its_connection_was_ended(
        self, make_context, monkeypatch
    ):
        context = make_context()
        monkeypatch.setattr(idle_connection, "LONG_MS", 0)

        def work():
            pid = connection.connection.info.backend_pid
            race(lambda: Run.objects.raw(END, [pid])[0])
            return 5

        assert context.step("extract", work) == 5
        assert attempts() == [("extract", 0, "completed")]

    @pytest.mark.parametrize("answer", ["done", LookupError(), {1, 2}])
    def test_a_forked_child_records_nothing(self, make_context, answer):
        context = make_context()
        context.check()

        def fork():
            # What is left of the step runs in another process from here on.
            context._steps._pid += 1
            return Calls(answer)()

        with pytest.raises((RunInterrupted, LookupError)):
            context.step("extract", fork)
        assert attempts() == [("extract", 0, "running")]


# Waits until it is gone: a session that ends later would be that of some other test.
END = "SELECT 'x' AS run_id, pg_terminate_backend(%s, 30000) AS ended"


def test_the_key_of_a_step_is_the_digest_of_its_name_and_inputs(make_context):
    make_context().step("extract", Calls(), 1.0, b=2, a=1, fence=9)
    text = canonical_json({"name": "extract", "args": [1], "kwargs": {"a": 1, "b": 2}})
    assert attempts("step_key_digest") == [(hashlib.sha256(text.encode()).hexdigest(),)]
