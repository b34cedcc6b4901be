"""Call a host's hook from a pulse's thread, whether it is a function or a coroutine function."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import TypeAlias

Hook: TypeAlias = Callable[[int], object]
"""Called with the milliseconds that went by unconfirmed."""


class HostHook:
    """
    A hook that can be called from any thread and cancelled from any other.

    Args:
        call: What the host gave.
        loop: Where an awaitable answer is awaited; None when the host runs no event loop.
    """

    def __init__(self, call: Hook, loop: asyncio.AbstractEventLoop | None) -> None:
        self._call = call
        self._loop = loop
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._pending: concurrent.futures.Future[None] | None = None

    def __call__(self, unconfirmed_ms: int) -> None:
        """
        Call the hook and wait until it is done.

        Raises:
            asyncio.CancelledError: it was cancelled, or cancelled itself.
            TypeError: it has to be awaited, and there is no event loop.
            Exception: whatever the hook raised.
        """
        answer = self._call(unconfirmed_ms)
        if inspect.isawaitable(answer):
            self._await(answer)

    def cancel(self) -> None:
        """Cancel what is being awaited; a plain function cannot be cancelled and runs on."""
        with self._lock:
            self._is_cancelled = True
            if self._pending is not None:
                self._pending.cancel()

    def _await(self, answer: Awaitable[object]) -> None:
        with self._lock:
            if self._loop is None or self._is_cancelled:
                if inspect.iscoroutine(answer):
                    answer.close()
                if self._loop is None:
                    raise TypeError("a hook that has to be awaited needs arun() or aguard()")
                raise asyncio.CancelledError
            pending = asyncio.run_coroutine_threadsafe(_finish(answer), self._loop)
            self._pending = pending
        try:
            pending.result()
        except concurrent.futures.CancelledError:
            # The futures of threads have a cancellation of their own, which is an Exception.
            raise asyncio.CancelledError from None


async def _finish(answer: Awaitable[object]) -> None:
    await answer
