"""
What handlers print, line by line, with the run that printed it.

A line goes to the logger ``django_runstore.output``; where the project has no handler for that,
it goes where it would have gone, with the run's name before it. What is written past Python,
by a child process or a C library, stays as it is.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TextIO

from django_runstore.display_text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

output: Final = logging.getLogger("django_runstore.output")

LONGEST_LINE: Final = 8_192
"""Characters after which a line is passed on although it has not ended."""

STREAMS: Final = ("stdout", "stderr")


class RunStream(io.TextIOBase):
    """
    Stands in for a standard stream while a handler runs. Closing it does nothing.

    Args:
        name: ``stdout`` or ``stderr``.
        original: What it stands in for.
        facts: Who prints: ``run_id``, ``fence`` and ``handler``.
    """

    def __init__(self, name: str, original: TextIO, facts: Mapping[str, Any]) -> None:
        super().__init__()
        self._name = name
        self._original = original
        self._facts = facts
        self._line = ""
        # A line is put together by one thread at a time; a signal may interrupt a write and
        # print something itself.
        self._lock = threading.RLock()
        self._is_passing_on = False

    def write(self, text: str) -> int:
        """Take text in, and pass on every line that is complete."""
        if self._is_passing_on:
            # By a logging handler that prints.
            return self._original.write(text)
        with self._lock:
            *lines, self._line = (self._line + text).split("\n")
            for line in lines:
                self._pass_on(line)
            while len(self._line) > LONGEST_LINE:
                head, self._line = self._line[:LONGEST_LINE], self._line[LONGEST_LINE:]
                self._pass_on(head)
        return len(text)

    def end(self) -> None:
        """Pass on what has not been ended by a newline."""
        with self._lock:
            line, self._line = self._line, ""
            if line:
                self._pass_on(line)

    def flush(self) -> None:
        """Flush what it stands in for; a line that has begun waits for its end."""
        with suppress(OSError, ValueError):
            self._original.flush()

    def close(self) -> None:
        """Stay open: the worker's next run prints too."""

    def writable(self) -> bool:
        """Say that it can be written to."""
        return True

    def isatty(self) -> bool:
        """Say that nobody watches."""
        return False

    def fileno(self) -> int:
        """Give the descriptor that it stands before, for child processes."""
        return self._original.fileno()

    @property
    def buffer(self) -> Any:  # noqa: ANN401 - what a standard stream has
        """The bytes beneath, past which nothing is known of runs."""
        return self._original.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a plain attribute there
        """The encoding of what it stands in for."""
        return self._original.encoding

    def _pass_on(self, line: str) -> None:
        self._is_passing_on = True
        try:
            if output.hasHandlers():
                output.info("%s", line.rstrip("\r"), extra={**self._facts, "stream": self._name})
            else:
                run_id = printable(str(self._facts["run_id"]))
                # Closed by the handler, or read by nobody: that is no failure of the run.
                with suppress(OSError, ValueError):
                    self._original.write(f"run {run_id}: {line}\n")
                    self._original.flush()
        finally:
            self._is_passing_on = False


@contextmanager
def captured(facts: Mapping[str, Any]) -> Iterator[None]:
    """
    Have what is printed inside the block told with the run that prints it.

    Afterwards the standard streams are what they were, whatever the handler has made of them.
    """
    originals = {name: getattr(sys, name) for name in STREAMS}
    streams = {
        name: RunStream(name, original, facts)
        for name, original in originals.items()
        # A process without standard streams has None there.
        if original is not None
    }
    for name, stream in streams.items():
        setattr(sys, name, stream)
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(sys, name, original)
        for stream in streams.values():
            stream.end()
