import asyncio
import threading
import warnings

import pytest

from django_runstore.supervision.host_hook import HostHook


def call_in_thread(hook: HostHook) -> "asyncio.Future[None]":
    return asyncio.get_running_loop().run_in_executor(None, hook, 19_000)


def test_a_plain_function_is_called():
    seen: list[int] = []

    HostHook(seen.append, None)(19_000)

    assert seen == [19_000]


def test_a_coroutine_function_is_awaited_on_the_loop():
    async def scenario():
        seen = []

        async def hook(unconfirmed_ms):
            seen.append((unconfirmed_ms, asyncio.get_running_loop()))

        await call_in_thread(HostHook(hook, asyncio.get_running_loop()))
        assert seen == [(19_000, asyncio.get_running_loop())]

    asyncio.run(scenario())


def test_its_error_is_passed_on():
    async def scenario():
        async def hook(_):
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await call_in_thread(HostHook(hook, asyncio.get_running_loop()))

    asyncio.run(scenario())


def test_cancelling_it_cancels_what_is_awaited():
    async def scenario():
        entered, cancelled = asyncio.Event(), asyncio.Event()

        async def hook(_):
            entered.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise

        host_hook = HostHook(hook, asyncio.get_running_loop())
        calling = call_in_thread(host_hook)
        await entered.wait()
        host_hook.cancel()

        with pytest.raises(asyncio.CancelledError):
            await calling
        await asyncio.wait_for(cancelled.wait(), 10)

    asyncio.run(scenario())


def test_one_that_cancels_itself_ends_by_cancellation():
    async def scenario():
        async def hook(_):
            raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            await call_in_thread(HostHook(hook, asyncio.get_running_loop()))

    asyncio.run(scenario())


def test_one_that_was_cancelled_before_is_not_begun():
    async def scenario():
        begun = threading.Event()

        async def hook(_):
            begun.set()

        host_hook = HostHook(hook, asyncio.get_running_loop())
        host_hook.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call_in_thread(host_hook)
        assert not begun.is_set()

    asyncio.run(scenario())


def test_without_a_loop_it_is_refused_and_leaves_no_coroutine_behind():
    async def hook(_):
        """Never awaited."""

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TypeError, match="arun"):
            HostHook(hook, None)(1)
