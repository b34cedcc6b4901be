"""What a worker knows about the ownership of its run, and the watchdog that acts on it."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Final

from django_runstore.clocks import boottime_ms
from django_runstore.display_text import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_runstore.durations import LeaseDurations
    from django_runstore.supervision.protocol import Start
    from django_runstore.supervision.shared_deadline import PublishedDeadlines

logger = logging.getLogger(__name__)

_LOOKS_PER_INTERVAL: Final = 5


class Ownership:
    """
    The ownership of one execution, as ``RunContext`` asks for it.

    It is confirmed until the time that the supervisor publishes after each pulse. Past that
    nothing may be written or begun, whether or not the supervisor can still say so.
    """

    def __init__(self, start: Start, deadlines: PublishedDeadlines) -> None:
        self.run_id = start.run_id
        self.fence = start.fence
        self._slot = start.slot
        self._deadlines = deadlines
        self._stop_reason: str | None = None
        self.is_urgent = False
        """Whether the handler is to be interrupted wherever it is."""

    def expired(self) -> bool:
        """Tell whether the ownership is not confirmed any more."""
        return self.expired_for_ms() >= 0

    def expired_for_ms(self) -> float:
        """Tell how long ago the confirmation ran out; negative while it holds."""
        until_ms = self._deadlines.confirmed_until_ms(self._slot, self.run_id, self.fence)
        return boottime_ms() - until_ms if until_ms is not None else float("inf")

    def stop_reason(self) -> str | None:
        """Say why the run has to stop; None while it need not."""
        return self._stop_reason

    def advanced(self) -> None:
        """Take note of progress: the store keeps it, and nothing here depends on it."""

    def request_stop(self, reason: str, *, urgent: bool = False) -> None:
        """Ask the handler to stop; the last reason counts, which is the better informed one."""
        self._stop_reason = reason
        self.is_urgent = self.is_urgent or urgent


class Watchdog:
    """
    Ends the process, and what its handler started, when an ownership stays unconfirmed.

    Past the confirmation ``RunContext`` refuses at every call. A handler that makes none gets
    one more interval, which ends before anybody else may take the run over.

    Args:
        say_goodbye: Tells the supervisor about it if that is possible without waiting.
    """

    def __init__(self, lease: LeaseDurations, say_goodbye: Callable[[Ownership], object]) -> None:
        self._lease = lease
        self._say_goodbye = say_goodbye
        self._ownership: Ownership | None = None
        self._begins = threading.Event()

    def start(self) -> None:
        """Begin to watch, in a thread of its own."""
        threading.Thread(target=self._watch, name="runstore-watchdog", daemon=True).start()

    def guard(self, ownership: Ownership | None) -> None:
        """Watch this ownership from now on, or none."""
        self._ownership = ownership
        if ownership is None:
            self._begins.clear()
        else:
            self._begins.set()

    def _watch(self) -> None:
        while self._begins.wait():
            ownership = self._ownership
            if ownership is not None:
                self._look_at(ownership)
            time.sleep(self._nap_ms(ownership) / 1000)

    def _nap_ms(self, ownership: Ownership | None) -> float:
        interval_ms = self._lease.heartbeat_interval_ms
        # Not asleep until the deadline: a machine that was suspended wakes up past it.
        look_ms = interval_ms / _LOOKS_PER_INTERVAL
        if ownership is None:
            return look_ms
        # But not past it either: that is when others may begin to take the run.
        return max(1.0, min(look_ms, interval_ms - ownership.expired_for_ms()))

    def _look_at(self, ownership: Ownership) -> None:
        if ownership.expired_for_ms() < self._lease.heartbeat_interval_ms:
            return
        if self._ownership is not ownership:
            return
        self._say_goodbye(ownership)
        logger.error(
            "run %s: ownership is not confirmed any more and its handler goes on; "
            "the worker ends itself",
            printable(ownership.run_id),
            extra={"run_id": ownership.run_id, "fence": ownership.fence},
        )
        kill_own_group()


def kill_own_group() -> None:
    """End this process and everything its handlers started, at once and without clean-up."""
    # A worker leads a session of its own, so its group holds nobody else.
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
