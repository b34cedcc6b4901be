"""
Hears from the database that there is something to do, in a thread that nothing waits for.

Makes a supervisor quicker and nothing else: whatever is not heard is found by polling.
"""

from __future__ import annotations

import logging
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from django_runstore.db.backends import sends_notices
from django_runstore.db.probed_listening import (
    ANSWER_WITHIN_S,
    ANYTHING,
    PROBE_INTERVAL_S,
    ProbedListener,
)
from django_runstore.db.run_notices import CANCEL_REQUESTED, CHANNEL, claimable_queue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

logger = logging.getLogger("django_runstore.supervision")

LEAVE_WITHIN_S: Final = 2.0
"""How long its end waits for the thread, which may be about to connect."""


class WakeUps:
    """
    A letter box for what the database says, from ``start()`` to ``stop()``.

    Args:
        using: Database alias; where it sends no notices, nothing is ever heard.
        queues: The only ones that matter; None for all.
        wake: Wakes whoever takes the letters out.
        probe_interval_s: How often it is tried whether notices arrive; shorter in tests.
        answer_within_s: How long that may take; shorter in tests.
    """

    def __init__(
        self,
        using: str,
        queues: Sequence[str] | None,
        wake: Callable[[], object],
        *,
        probe_interval_s: float = PROBE_INTERVAL_S,
        answer_within_s: float = ANSWER_WITHIN_S,
    ) -> None:
        self._using = using
        self._queues = None if queues is None else frozenset(queues)
        self._wake = wake
        self._claimable = threading.Event()
        self._cancel_requested = threading.Event()
        self._is_stopping = False
        self._reading, self._writing = socket.socketpair()
        self._listener = ProbedListener(
            using,
            CHANNEL,
            self._reading,
            probe_interval_s=probe_interval_s,
            answer_within_s=answer_within_s,
        )
        self._thread = threading.Thread(target=self._run, name="runstore-wake-ups", daemon=True)

    @property
    def hears(self) -> bool | None:
        """Whether notices arrive; None where there are none, and before it was tried."""
        return self._listener.hears

    def start(self) -> None:
        """Begin to listen, over a session of its own."""
        if sends_notices(self._using):
            self._thread.start()

    def stop(self) -> None:
        """Hear nothing more; returns after ``LEAVE_WITHIN_S`` at the latest."""
        self._is_stopping = True
        with suppress(OSError):
            self._writing.send(b"\0")
        if self._thread.is_alive():
            self._thread.join(LEAVE_WITHIN_S)
        if not self._thread.is_alive():
            # One that is about to connect still needs them.
            self._reading.close()
            self._writing.close()

    def take_claimable(self) -> bool:
        """Tell, once, whether a run may have become claimable."""
        return _take(self._claimable)

    def take_cancel_requested(self) -> bool:
        """Tell, once, whether somebody may have asked a run to stop."""
        return _take(self._cancel_requested)

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                for payload in self._listener.turn():
                    self._sort(payload)
                if self._claimable.is_set() or self._cancel_requested.is_set():
                    self._wake()
        except Exception as error:  # noqa: BLE001 - what breaks here must end nothing else
            self._listener.hears = False
            # The class alone: nobody knows what its words quote.
            logger.error("listening for notices broke: %s", type(error).__name__)  # noqa: TRY400
        finally:
            self._listener.close()

    def _sort(self, payload: str) -> None:
        if payload in {CANCEL_REQUESTED, ANYTHING}:
            self._cancel_requested.set()
        queue = claimable_queue(payload)
        if payload == ANYTHING or (
            queue is not None and (self._queues is None or queue in self._queues)
        ):
            self._claimable.set()


def _take(news: threading.Event) -> bool:
    # Cleared before it is acted on: what comes meanwhile is heard the next time.
    is_set = news.is_set()
    news.clear()
    return is_set
