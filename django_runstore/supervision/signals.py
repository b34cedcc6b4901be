"""Stop requests from the operating system, and a way to wake the loop that waits for them."""

from __future__ import annotations

import os
import signal
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from types import FrameType, TracebackType

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

HANGUP: Final = getattr(signal, "SIGHUP", None)
"""A closed terminal; stops too, unless it was ignored (``nohup``). None off POSIX."""

_READ_BYTES: Final = 4_096


class StopSignals:
    """
    Count SIGTERM, SIGINT and SIGHUP while the block runs, instead of dying of them.

    Its descriptor becomes readable when a signal arrives and when another thread calls
    ``wake()``, so a loop can wait for both together with its pipes.

    Raises:
        RuntimeError: outside the main thread, where Python handles no
            signals and a worker would be taken to have lost its parent.
    """

    def __init__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("A supervisor has to run in the main thread of its process.")
        self.count = 0
        self._previous: dict[signal.Signals, Any] = {}
        self._previous_wakeup_fd = -1
        self._reading, self._writing = socket.socketpair()
        for end in (self._reading, self._writing):
            os.set_blocking(end.fileno(), False)

    def __enter__(self) -> Self:
        """Take the signals over."""
        # Installed even where they were ignored: a shell starts background jobs with an
        # ignored SIGINT.
        for number in STOP_SIGNALS:
            self._previous[number] = signal.signal(number, self._count)
        if HANGUP is not None and signal.getsignal(HANGUP) is not signal.SIG_IGN:
            self._previous[HANGUP] = signal.signal(HANGUP, self._count)
        self._previous_wakeup_fd = signal.set_wakeup_fd(
            self._writing.fileno(), warn_on_full_buffer=False
        )
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give the signals back."""
        signal.set_wakeup_fd(self._previous_wakeup_fd)
        for number, handler in self._previous.items():
            # None: installed by other means than Python's, which cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._reading.close()
        self._writing.close()

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._reading.fileno()

    def wake(self) -> None:
        """Make the descriptor readable; for other threads."""
        # Full: then it is readable already. Closed: nobody waits any more.
        with suppress(BlockingIOError, OSError):
            self._writing.send(b"\0")

    def clear(self) -> None:
        """Make the descriptor unreadable until the next signal or ``wake()``."""
        with suppress(BlockingIOError):
            while self._reading.recv(_READ_BYTES):
                pass

    def _count(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
