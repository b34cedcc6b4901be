"""
Calls that may hang, made where their hanging stops nobody.

Whoever watches a deadline makes no blocking call itself: it starts the call on a *lane*, a
thread that keeps one database connection of its own, and waits for the answer and for the
time at once. Python cannot end a thread, so a call that hangs is abandoned: its answer is
dropped, and its thread ends, and closes its connection, when the call returns.
"""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from django.db import connections

if TYPE_CHECKING:
    from collections.abc import Callable

_MS_PER_SECOND: Final = 1_000
_IDLE_LANE_ENDS_WITHIN_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Completion:
    """How a call ended: with a value, or with an error of whatever kind."""

    lane: str
    value: object = None
    error: BaseException | None = None


class BackgroundCalls(Protocol):
    """
    The waiting seam: everything a pulse does that takes time.

    Only ``wake()`` may be called by another thread than the one that waits.
    """

    def start(self, lane: str, call: Callable[[], object]) -> None:
        """Make ``call`` on a lane, which must be idle."""
        ...

    def wait(self, timeout_ms: float) -> Completion | None:
        """Wait for a call to end, but not longer than this; None when none did or on wake-up."""
        ...

    def wake(self) -> None:
        """End the current or the next ``wait()``."""
        ...

    def abandon(self, lane: str) -> None:
        """Drop the answer that a lane owes; the name can be used for a new lane at once."""
        ...

    def close(self, patience_ms: float = 0) -> None:
        """End all lanes, abandoning what has not ended within ``patience_ms``."""
        ...


class ThreadedCalls:
    """Lanes that are daemon threads, made when first used."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Lane] = {}
        self._ended: queue.SimpleQueue[tuple[_Lane, Completion] | None] = queue.SimpleQueue()

    def start(self, lane: str, call: Callable[[], object]) -> None:
        """Make ``call`` on a lane, which must be idle."""
        if lane not in self._lanes:
            self._lanes[lane] = _Lane(lane, self._ended)
        self._lanes[lane].make(call)

    def wait(self, timeout_ms: float) -> Completion | None:
        """Wait for a call to end, but not longer than this; None when none did or on wake-up."""
        try:
            ended = self._ended.get(timeout=max(0.0, timeout_ms) / _MS_PER_SECOND)
        except queue.Empty:
            return None
        if ended is None:
            return None
        lane, completion = ended
        if self._lanes.get(completion.lane) is not lane:
            return None
        lane.is_busy = False
        return completion

    def wake(self) -> None:
        """End the current or the next ``wait()``."""
        self._ended.put(None)

    def abandon(self, lane: str) -> None:
        """Drop the answer that a lane owes; the name can be used for a new lane at once."""
        abandoned = self._lanes.pop(lane, None)
        if abandoned is not None:
            abandoned.finish()

    def close(self, patience_ms: float = 0) -> None:
        """End all lanes, abandoning what has not ended within ``patience_ms``."""
        lanes = list(self._lanes.values())
        self._lanes.clear()
        for lane in lanes:
            lane.finish()
        give_up_at = time.monotonic() + patience_ms / _MS_PER_SECOND
        for lane in lanes:
            if lane.is_busy:
                lane.join(give_up_at - time.monotonic())
            else:
                lane.join(_IDLE_LANE_ENDS_WITHIN_MS / _MS_PER_SECOND)


class _Lane:
    def __init__(
        self, name: str, ended: queue.SimpleQueue[tuple[_Lane, Completion] | None]
    ) -> None:
        self.is_busy = False
        self._name = name
        self._ended = ended
        self._calls: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"runstore-{name}", daemon=True)
        self._thread.start()

    def make(self, call: Callable[[], object]) -> None:
        self.is_busy = True
        self._calls.put(call)

    def finish(self) -> None:
        self._calls.put(None)

    def join(self, seconds: float) -> None:
        self._thread.join(max(0.0, seconds))

    def _work(self) -> None:
        try:
            for call in iter(self._calls.get, None):
                self._ended.put((self, self._attempt(call)))
        finally:
            connections.close_all()

    def _attempt(self, call: Callable[[], object]) -> Completion:
        try:
            return Completion(self._name, value=call())
        except BaseException as error:  # noqa: BLE001 - the waiting thread decides what it means
            # No request ends here, so nothing else replaces a connection that broke.
            connections.close_all()
            return Completion(self._name, error=error)
