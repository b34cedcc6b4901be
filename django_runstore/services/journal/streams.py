"""Streams, and who is following which of them in this process. Spec: run-store 8.2 and 8.8."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Stream:
    """A run's own stream, or a companion of it."""

    run_id: str
    companion: str

    @property
    def named(self) -> dict[str, Any]:
        """What names it: in a query, in a row and in the detail of an error."""
        return {"run_id": self.run_id, "companion": self.companion}


class Reader:
    """One consumer that follows a stream; ``after`` is the last sequence it is done with."""

    def __init__(self, using: str, stream: Stream, after: int) -> None:
        self.using: Final = using
        self.stream: Final = stream
        self.after = after


_readers: Final[set[Reader]] = set()
_lock: Final = threading.Lock()


@contextmanager
def reading(reader: Reader) -> Iterator[None]:
    """Count a reader among the live ones for the length of the block."""
    with _lock:
        _readers.add(reader)
    try:
        yield
    finally:
        with _lock:
            _readers.discard(reader)


def somebody_needs(using: str, stream: Stream, below: int) -> bool:
    """Tell whether a live reader of a stream has still to read an entry below a sequence."""
    with _lock:
        return any(
            (reader.using, reader.stream) == (using, stream) and reader.after < below - 1
            for reader in _readers
        )
