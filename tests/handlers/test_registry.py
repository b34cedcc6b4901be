import pytest

from django_runstore.handlers import InvalidHandler
from django_runstore.handlers.registry import Handler, Registry, handler, registry


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


def test_calling_a_handler_calls_its_function():
    assert Handler("a", first)("the run") == "the run"
