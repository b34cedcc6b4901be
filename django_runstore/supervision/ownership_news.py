"""What the keeper's thread has found out about ownerships, for the main thread to act on."""

from __future__ import annotations

import queue
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Lost:
    """Somebody else owns the run, or it is gone."""

    run_id: str
    fence: int


@dataclass(frozen=True, slots=True)
class Lapsed:
    """The ownership could not be confirmed in time; whose it is, nobody knows."""

    run_id: str
    fence: int


News: TypeAlias = Lost | Lapsed


class OwnershipNews:
    """
    A letter box: the keeper puts in and wakes, the main thread takes out.

    Args:
        wake: Wakes the main thread.
    """

    def __init__(self, wake: Callable[[], object]) -> None:
        self._wake = wake
        self._waiting: queue.SimpleQueue[News] = queue.SimpleQueue()

    def lost(self, run_id: str, fence: int) -> None:
        """Report a lost ownership; never waits."""
        self._put(Lost(run_id, fence))

    def lapsed(self, run_id: str, fence: int, _unconfirmed_ms: int) -> None:
        """Report a lapsed ownership; never waits."""
        self._put(Lapsed(run_id, fence))

    def take(self) -> list[News]:
        """Take out what has come."""
        taken = []
        while not self._waiting.empty():
            taken.append(self._waiting.get())
        return taken

    def _put(self, news: News) -> None:
        self._waiting.put(news)
        self._wake()
