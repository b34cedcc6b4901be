import asyncio
import json

import pytest

from django_runstore import RunStore
from django_runstore.errors import DatabaseFailure, RunPersistenceFailed, SinkFailed
from django_runstore.handlers import RunHandle, RunInterrupted
from django_runstore.handlers.described_errors import LARGEST_ERROR_BYTES, LONGEST_MESSAGE
from django_runstore.handlers.execution import Completed, Failed, Interrupted, execute
from django_runstore.handlers.registry import Handler
from django_runstore.models import Run
from django_runstore.outcomes import Transitioned
from django_runstore.snapshots import OwnedTransition
from tests.handlers.conftest import OWNER


def run_function(function, context="context"):
    return execute(Handler("tests.it", function), context)


def raising(error):
    def function(_):
        raise error

    return function


def failure_of(outcome):
    assert isinstance(outcome, Failed)
    return json.loads(outcome.error_json)


def test_what_a_handler_returns_is_its_result():
    assert run_function(lambda _: {"b": 1, "a": (2,)}) == Completed('{"b":1,"a":[2]}')


def test_returning_nothing_is_a_result_too():
    assert run_function(lambda _: None) == Completed("null")


def test_an_interruption_is_not_a_failure():
    assert run_function(raising(RunInterrupted("draining"))) == Interrupted("draining")


def test_an_interruption_of_a_task_group_is_not_a_failure():
    group = BaseExceptionGroup("tasks", [ValueError(), RunInterrupted("cancelled")])
    nested = BaseExceptionGroup("outer", [KeyError(), group])
    assert run_function(raising(nested)) == Interrupted("cancelled")


def test_a_group_without_an_interruption_is_a_failure():
    group = ExceptionGroup("tasks", [ValueError()])
    assert failure_of(run_function(raising(group)))["type"] == "ExceptionGroup"


@pytest.mark.parametrize("error", [asyncio.CancelledError(), GeneratorExit(), BaseException()])
def test_what_is_no_exception_ends_the_run_and_not_the_worker(error):
    assert failure_of(run_function(raising(error)))["type"] == type(error).__name__


def test_an_exception_is_a_failure_with_type_message_and_place():
    failure = failure_of(run_function(raising(ValueError("no such month"))))
    assert failure["type"] == "ValueError"
    assert failure["message"] == "no such month"
    assert any(
        "test_execution.py" in frame and "function" in frame for frame in failure["traceback"]
    )


def test_sys_exit_ends_the_run_and_not_the_worker():
    assert failure_of(run_function(raising(SystemExit(3))))["type"] == "SystemExit"


def test_a_keyboard_interrupt_is_let_through():
    with pytest.raises(KeyboardInterrupt):
        run_function(raising(KeyboardInterrupt()))


@pytest.mark.parametrize(
    ("result", "path"),
    [
        ({"out": "a\ud800"}, "result.out"),
        ({"out": [1, {2}]}, "result.out[1]"),
        (float("inf"), "result"),
    ],
)
def test_a_result_that_cannot_be_stored_is_a_failure_naming_its_path(result, path):
    failure = failure_of(run_function(lambda _: result))
    assert failure["type"] == "InvalidValue"
    assert f" {path} contains " in failure["message"]


def test_a_nul_in_a_result_is_kept_as_an_escape():
    assert run_function(lambda _: {"out": "a\0b"}) == Completed('{"out":"a\\u0000b"}')


def test_six_literal_characters_are_not_mistaken_for_a_nul():
    outcome = run_function(lambda _: "\\u0000")
    assert json.loads(outcome.result_json) == "\\u0000"


def test_a_huge_message_with_nul_and_surrogates_stays_small_and_storable():
    error = RuntimeError("\0\ud800" + "x" * 1_000_000)
    outcome = run_function(raising(error))
    failure = failure_of(outcome)
    assert len(outcome.error_json.encode()) <= LARGEST_ERROR_BYTES
    assert failure["message"].startswith("\\x00\\ud800xxx")
    assert failure["message"].endswith("(1000002 characters)")
    assert len(failure["message"]) < LONGEST_MESSAGE + 100


def test_a_deep_traceback_of_wide_characters_stays_small():
    def deep(level):
        if level:
            return deep(level - 1)
        raise RuntimeError("漢" * 1_000_000)

    outcome = run_function(lambda _: deep(500))
    assert len(outcome.error_json.encode()) <= LARGEST_ERROR_BYTES


@pytest.mark.parametrize("character", ["\0", "\x01", "\ud800", "\\", "漢", "😀"])
def test_no_character_makes_an_error_larger_than_its_bound(character):
    named = type("E" + "\x01" * 1_000, (Exception,), {})
    scope = {}
    name = "漢" * 1_000
    exec(f"def {name}(n):\n    if n: {name}(n - 1)\n    raise error", scope)  # noqa: S102 - a function of an absurd name
    scope["error"] = named(character * 100_000)
    outcome = run_function(lambda _: scope[name](50))
    failure = failure_of(outcome)
    assert len(outcome.error_json.encode()) <= LARGEST_ERROR_BYTES
    assert failure["message"]


def test_the_innermost_frame_is_last_and_always_kept():
    def deepest():
        raise RuntimeError("\x01" * 10_000)

    outcome = run_function(lambda _: deepest())
    assert failure_of(outcome)["traceback"][-1].endswith("<locals>.deepest")


def test_an_exception_without_readable_text_is_still_a_failure():
    class MuteError(Exception):
        def __str__(self):
            raise RuntimeError

    assert "no readable message" in failure_of(run_function(raising(MuteError())))["message"]


@pytest.mark.parametrize("code", ["busy", "io", "unknown"])
@pytest.mark.parametrize("kind", [RunPersistenceFailed, SinkFailed])
def test_a_save_or_log_that_the_database_failed_puts_the_run_back(kind, code):
    error = kind("transition_owned", "database operation failed")
    error.__cause__ = DatabaseFailure(code)
    assert run_function(raising(error)) == Interrupted("database_unavailable")


def test_a_save_that_the_database_can_never_make_fails_the_run():
    error = RunPersistenceFailed("transition_owned", "database operation failed")
    error.__cause__ = DatabaseFailure("unsupported")
    assert failure_of(run_function(raising(error)))["type"] == "RunPersistenceFailed"


@pytest.mark.parametrize(
    "function",
    [
        raising(RuntimeError("\0\ud800\x01" * 300_000)),
        lambda _: {"out": ["fine", "a\ud800"]},
    ],
)
def test_every_failure_can_be_stored_as_the_reason_of_a_failed_run(make_context, function):
    context = make_context()
    outcome = run_function(function, context)
    transition = OwnedTransition(
        context.run_id, context.fence, "failed", error_json=outcome.error_json
    )
    answers = RunStore().transition_many(OWNER, [transition])
    assert answers == {context.run_id: Transitioned()}
    assert RunHandle(context.run_id).error == failure_of(outcome)


def test_a_result_with_a_nul_is_stored_and_read_back(make_context):
    context = make_context()
    outcome = run_function(lambda _: {"out": "a\0b", "literal": "\\u0000"}, context)
    transition = OwnedTransition(
        context.run_id, context.fence, "completed", result_json=outcome.result_json
    )
    RunStore().transition_many(OWNER, [transition])
    assert RunHandle(context.run_id).result() == {"out": "a\0b", "literal": "\\u0000"}


def test_state_values_are_in_no_error(make_context):
    context = make_context({"token": "s3cr3t"})

    def handler(run):
        secret = run.state["token"]
        raise RuntimeError(len(secret))

    outcome = execute(Handler("tests.it", handler), context)
    assert "s3cr3t" not in outcome.error_json
    assert "s3cr3t" not in repr(outcome)
    assert Run.objects.get().status == "running"
