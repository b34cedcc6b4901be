import functools

import pytest
from asgiref.sync import async_to_sync

from django_runstore import InvalidRun
from django_runstore.handlers import InvalidHandler
from django_runstore.handlers.registry import Handler, Registry, handler, registry
from django_runstore.models import Run


@pytest.fixture
def own_names(monkeypatch):
    """Forget after the test what it registered."""
    monkeypatch.setattr(registry, "_handlers", dict(registry._handlers))


def first(run):
    return run


def second(run):
    return run


def test_a_handler_is_found_by_its_name():
    handlers = Registry()
    handlers.add(Handler("a", first))
    assert handlers.get("a").function is first
    assert handlers.names() == frozenset({"a"})


def test_an_unknown_name_has_no_handler():
    assert Registry().get("nobody") is None


def test_two_functions_cannot_share_a_name():
    handlers = Registry()
    handlers.add(Handler("a", first))
    with pytest.raises(InvalidHandler, match=r"taken by .*first"):
        handlers.add(Handler("a", second))
    assert handlers.get("a").function is first


def test_a_reloaded_module_may_declare_its_handler_again():
    handlers = Registry()
    handlers.add(Handler("a", first))
    handlers.add(Handler("a", first, queue="other"))
    assert handlers.get("a").queue == "other"


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", "x" * 1025, None, 3, first])
def test_a_name_must_be_durable_text(name):
    with pytest.raises(InvalidHandler, match="durable text"):
        handler(name)


def test_an_async_function_is_refused_when_it_is_declared():
    async def later(run):
        return run

    with pytest.raises(InvalidHandler, match="async handlers are not supported yet"):
        handler("tests.later")(later)
    assert registry.get("tests.later") is None


async def awaited(run):
    return run


async def streamed(run):
    yield run


class AwaitedObject:
    async def __call__(self, run):
        return run


@pytest.mark.parametrize(
    "function", [awaited, streamed, AwaitedObject(), functools.partial(awaited)]
)
def test_nothing_that_must_be_awaited_is_a_handler(function):
    with pytest.raises(InvalidHandler, match="async handlers are not supported yet"):
        handler("tests.awaited")(function)


def test_an_async_function_made_synchronous_is_a_handler(own_names):
    assert handler("tests.made_synchronous")(async_to_sync(awaited))("the run") == "the run"


def test_a_function_that_yields_is_refused():
    def yielding(run):
        yield run

    with pytest.raises(InvalidHandler, match="must not yield"):
        handler("tests.yielding")(yielding)


@pytest.mark.parametrize("function", [None, "first", AwaitedObject])
def test_only_functions_are_handlers(function):
    with pytest.raises(InvalidHandler, match="must be a function"):
        handler("tests.no_function")(function)


@pytest.mark.parametrize("queue", ["", "a\0b", None, 3])
def test_a_queue_must_be_durable_text(queue):
    with pytest.raises(InvalidHandler) as caught:
        handler("tests.queue", queue=queue)
    assert caught.value.detail["field"] == "queue"


@pytest.mark.parametrize("priority", [2**31, -(2**31) - 1, 1.0, True, "1", None])
def test_a_priority_is_a_32_bit_integer(priority):
    with pytest.raises(InvalidHandler) as caught:
        handler("tests.priority", priority=priority)
    assert caught.value.detail["field"] == "priority"


@pytest.mark.parametrize("priority", [2**31 - 1, -(2**31)])
def test_the_ends_of_the_priorities_are_priorities(own_names, priority):
    assert handler("tests.priorities", priority=priority)(first).priority == priority


def test_calling_a_handler_calls_its_function():
    assert Handler("a", first)("the run") == "the run"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_attempts", 0),
        ("max_attempts", True),
        ("max_attempts", 1_000_001),
        ("max_attempts", None),
        ("backoff", -1),
        ("backoff", []),
        ("backoff", "1s"),
        ("deadline_after_ms", 0),
        ("deadline_after_ms", 1.5),
        ("deadline_after_ms", "1s"),
    ],
)
def test_limits_of_a_handler_are_checked_when_it_is_declared(field, value):
    with pytest.raises(InvalidHandler) as caught:
        handler("a", **{field: value})
    assert caught.value.detail["field"] == field


def test_a_handler_keeps_its_limits(own_names):
    declared = handler("a", max_attempts=3, backoff=[10, 20], deadline_after_ms=5_000)(first)
    assert (declared.retries.max_attempts, declared.retries.backoff) == (3, [10, 20])
    assert declared.deadline_after_ms == 5_000


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("concurrency_key", None),
        ("concurrency_key", 7),
        ("concurrency_key", "a\0"),
        ("concurrency_limit", 0),
        ("concurrency_limit", "2"),
    ],
)
def test_a_concurrency_limit_is_checked_when_it_is_declared(field, value):
    with pytest.raises(InvalidHandler) as caught:
        handler("a", **{field: value})
    assert caught.value.detail["field"] == field


class TestConcurrencyKeys:
    @pytest.fixture
    def stored(self, own_names, db):
        def submit(declared, **options):
            row = declared.submit({"customer": "7"}, **options).row
            return row.concurrency_key, row.concurrency_limit

        return submit

    def test_a_run_has_none_unless_its_handler_names_one(self, stored):
        assert stored(handler("a")(first)) == ("", 1)

    def test_a_key_may_be_a_text_or_come_from_the_state(self, stored):
        assert stored(handler("a", concurrency_key="all", concurrency_limit=3)(first)) == ("all", 3)
        by_state = handler("b", concurrency_key=lambda state: f"c-{state['customer']}")(second)
        assert stored(by_state) == ("c-7", 1)

    def test_a_submission_may_say_otherwise(self, stored):
        declared = handler("a", concurrency_key="all", concurrency_limit=3)(first)
        assert stored(declared, concurrency_key="own", concurrency_limit=2) == ("own", 2)
        assert stored(declared, concurrency_key="") == ("", 3)

    def test_a_function_that_gives_no_text_is_refused_and_nothing_stored(self, stored):
        declared = handler("a", concurrency_key=lambda state: state.get("nothing"))(first)
        with pytest.raises(InvalidRun) as caught:
            stored(declared)
        assert caught.value.detail["field"] == "concurrency_key"
        assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("no_progress_after_ms", 0),
        ("no_progress_after_ms", True),
        ("no_progress_after_ms", "1s"),
        ("on_no_progress", "kill"),
        ("on_no_progress", None),
    ],
)
def test_what_happens_without_progress_is_checked_when_it_is_declared(field, value):
    with pytest.raises(InvalidHandler) as caught:
        handler("a", **{field: value})
    assert caught.value.detail["field"] == field
