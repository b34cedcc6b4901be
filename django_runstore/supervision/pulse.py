"""The heartbeat loop for hosts of their own: keeps one run, and says when to let go of it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from django_runstore import conf
from django_runstore.supervision.background import ThreadedCalls
from django_runstore.supervision.host_hook import HostHook
from django_runstore.supervision.pulse_conductor import Conductor, OwnedRun

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from django_runstore.clocks import Clock
    from django_runstore.durations import LeaseDurations
    from django_runstore.owners import OwnerId
    from django_runstore.supervision.background import BackgroundCalls
    from django_runstore.supervision.host_hook import Hook
    from django_runstore.supervision.pulse_conductor import KeepsLease
    from django_runstore.supervision.pulse_machine import EndReason

T = TypeVar("T")


class PulseEnded(Exception):  # noqa: N818 - says what happened; nothing is wrong with the code
    """The ownership ended before the work did; the work was cancelled."""

    def __init__(self, reason: EndReason) -> None:
        super().__init__(f"the pulse ended before the work: {reason}")
        self.reason = reason


class Guard:
    """How the owned work learns that it has to stop."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        """Set when the pulse ended, for whatever reason. ``wait()`` on it instead of sleeping."""

        self.reason: EndReason | None = None
        """Why it ended; None while it goes on, and when a defect ended it."""


class Pulse:
    """
    Beat for one run until it is lost, lapsed or stopped. A pulse is used once.

    Whichever way it is used, the work has to stop when the pulse ends. In a thread the work
    looks at an event between its steps:

    >>> def work(store, run_id, owner, fence, batches):
    ...     with Pulse(store, run_id, owner, fence).guarding() as guard:
    ...         for batch in batches:
    ...             if guard.stopped.is_set():
    ...                 return guard.reason
    ...             batch.process()

    On an event loop the work is cancelled, and ``PulseEnded`` raised:

    >>> async def serve(store, run_id, owner, fence, work):
    ...     return await Pulse(store, run_id, owner, fence).aguard(work())

    ``run()`` and ``arun()`` alone are for a host that races them with its work in a way of
    its own. In all of them the beats are sent from a thread over a database connection of its
    own, so they go on while the work, or the event loop, is busy. A call that hangs does not
    stop the deadline; it is abandoned when the pulse ends. Spec: run-store 7.3 to 7.5.

    Args:
        store: Usually a ``RunStore``.
        fence: The ``fence`` of ``Activated``; None has the store check the owner only.
        clock: By default the store's own clock stamps the beats, and a clock that nobody can
            set keeps the deadline. A clock given here does both and must answer at once; only
            a ``DatabaseClock``, which may have to wait for its server, stamps and no more.
        lease: By default the durations in force (``RUNSTORE["LEASE"]``).
        on_reconfirm: The run went unconfirmed for too long and turned out to be still ours.
            It gets what the reconfirmation left of one heartbeat interval: when it takes
            longer, or fails, the ownership lapses.
        on_lapse: The ownership lapsed; not called when it was lost to somebody else. It gets
            one heartbeat interval, and then the pulse ends all the same.
        background: Where calls are made that may hang; replaced in tests.

    Both hooks get the unconfirmed milliseconds and are called in threads of their own.
    Coroutine functions are awaited on the event loop, and need ``arun()`` or ``aguard()``.
    """

    def __init__(
        self,
        store: KeepsLease,
        run_id: str,
        owner: OwnerId,
        fence: int | None = None,
        clock: Clock | None = None,
        lease: LeaseDurations | None = None,
        on_reconfirm: Hook | None = None,
        on_lapse: Hook | None = None,
        *,
        background: BackgroundCalls | None = None,
    ) -> None:
        self._owned = OwnedRun(store, run_id, owner, fence, clock)
        self._lease = conf.current().lease if lease is None else lease
        self._on_reconfirm = on_reconfirm
        self._on_lapse = on_lapse
        self._calls: BackgroundCalls = ThreadedCalls() if background is None else background
        self._is_stopping = threading.Event()

    def run(self) -> EndReason:
        """
        Beat until there is a reason to stop. Blocks, so give it a thread.

        Returns:
            ``"lost"``: another owner has the run, or it is gone. Another write would be a lie.
            ``"lapsed"``: nothing could be confirmed for so long that somebody else may have
            it. Whether it is still yours, nobody knows; stop the work.
            ``"stopped"``: ``stop()`` was called.

        Raises:
            TypeError: a hook is a coroutine function.
            Exception: the store raised what is no error of its own and none of the database's,
                a defect. Stop the work then too.
        """
        for hook in (self._on_reconfirm, self._on_lapse):
            if inspect.iscoroutinefunction(hook):
                raise TypeError("a hook that is a coroutine function needs arun() or aguard()")
        return self._conduct(None)

    async def arun(self) -> EndReason:
        """Beat until there is a reason to stop, as ``run()``. Cancelling it stops the pulse."""
        loop = asyncio.get_running_loop()
        ended = _in_thread(lambda: self._conduct(loop))
        waiting = asyncio.wrap_future(ended)
        try:
            # wait() leaves alone what it waits for when it is cancelled itself.
            await asyncio.wait({waiting})
        except asyncio.CancelledError:
            self.stop()
            await asyncio.wait({waiting})
            if not waiting.cancelled():
                waiting.exception()  # looked at, or asyncio would complain that nobody did
            raise
        return waiting.result()

    def stop(self) -> None:
        """End the pulse, from any thread. No lapse is recorded; a call under way is abandoned."""
        self._is_stopping.set()
        self._calls.wake()

    @contextmanager
    def guarding(self) -> Iterator[Guard]:
        """
        Beat for as long as the block lasts.

        Yields:
            The ``Guard`` whose ``stopped`` event the work in the block has to heed.

        Raises:
            Exception: as ``run()``, on leaving a block that raised nothing itself.
        """
        guard = Guard()

        def beat() -> EndReason:
            try:
                guard.reason = self.run()
            finally:
                guard.stopped.set()
            return guard.reason

        ended = _in_thread(beat)
        try:
            yield guard
        finally:
            self.stop()
            concurrent.futures.wait([ended])
        ended.result()

    async def aguard(self, work: Coroutine[Any, Any, T]) -> T:
        """
        Await ``work`` while beating, and cancel it as soon as the pulse ends.

        Returns:
            What the work returned.

        Raises:
            PulseEnded: the pulse ended first, and the work has been cancelled and has ended.
            Exception: what the work raised, or a defect as in ``run()``.
        """
        working = asyncio.create_task(work)
        beating = asyncio.create_task(self.arun())
        try:
            await asyncio.wait({working, beating}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            await _cancel(working)
            raise PulseEnded(beating.result())
        finally:
            await _cancel(working)
            await _cancel(beating)

    def _conduct(self, loop: asyncio.AbstractEventLoop | None) -> EndReason:
        on_reconfirm, on_lapse = (
            None if hook is None else HostHook(hook, loop)
            for hook in (self._on_reconfirm, self._on_lapse)
        )
        conductor = Conductor(self._owned, self._lease, self._calls, on_reconfirm, on_lapse)
        return conductor.conduct(self._is_stopping)


def _in_thread(call: Callable[[], T]) -> concurrent.futures.Future[T]:
    """Start ``call`` in a daemon thread; the future cannot be cancelled."""
    ended: concurrent.futures.Future[T] = concurrent.futures.Future()
    ended.set_running_or_notify_cancel()

    def make() -> None:
        try:
            ended.set_result(call())
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            ended.set_exception(error)

    threading.Thread(target=make, name="runstore-pulse", daemon=True).start()
    return ended


async def _cancel(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait until it has ended, however it does."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # looked at, or asyncio would complain that nobody did
