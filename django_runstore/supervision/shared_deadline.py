"""
How long each ownership is confirmed, told to worker processes through shared memory.

A worker must stop when its supervisor no longer confirms the ownership, also when the
supervisor is stopped or hangs and can send nothing. So the supervisor writes, after each
confirmed pulse, a point in time into memory that both have mapped, and the worker compares
it with the clock by itself. The times are ``clocks.boottime_ms()``: one clock for all
processes of a machine, and one that runs on while the machine sleeps.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import os
import struct
import tempfile
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from types import TracebackType

# The run (digest), its fence, until when it is confirmed.
_FIELDS: Final = struct.Struct("=8sQQ")
_CHECKSUM_BYTES: Final = 8
_RECORD_BYTES: Final = _FIELDS.size + _CHECKSUM_BYTES

# Two records per slot, written in turn: a supervisor that is stopped in the middle of a
# write leaves the other one whole.
_COPIES: Final = 2
_SLOT_BYTES: Final = _COPIES * _RECORD_BYTES


class SharedDeadlines:
    """
    The writing side, in the supervisor: a fixed number of slots.

    One thread at a time may publish. A worker inherits ``fileno()`` (``pass_fds``) and reads
    through ``PublishedDeadlines``.
    """

    def __init__(self, slots: int) -> None:
        """
        Make the shared memory; nobody is confirmed in it.

        Raises:
            OSError: the system gives neither a memory file nor a temporary one.
        """
        self._slots = slots
        self._fd = _make_memory_file(max(slots, 1) * _SLOT_BYTES)
        try:
            self._memory = mmap.mmap(self._fd, 0)
        except OSError:
            os.close(self._fd)
            raise
        self._next_copy = [0] * slots
        self._holders: list[tuple[str, int] | None] = [None] * slots

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def fileno(self) -> int:
        """Return the descriptor that workers inherit; it is not inheritable by itself."""
        return self._fd

    def publish(self, slot: int, run_id: str, fence: int, confirmed_until_ms: float) -> None:
        """
        Say until when the ownership of a run is confirmed.

        What another run or grant had in the slot is gone from then on.

        Args:
            slot: 0 up to the number of slots.
            confirmed_until_ms: A reading of ``clocks.boottime_ms()``; fractions are cut off.

        Raises:
            IndexError: there is no such slot.
        """
        if not 0 <= slot < self._slots:
            raise IndexError(f"there is no slot {slot}, only {self._slots}")
        record = _encode(run_id, fence, max(0, math.floor(confirmed_until_ms)))
        if self._holders[slot] == (run_id, fence):
            self._write(slot, self._next_copy[slot], record)
            self._next_copy[slot] = (self._next_copy[slot] + 1) % _COPIES
            return
        self._holders[slot] = (run_id, fence)
        for copy in range(_COPIES):
            self._write(slot, copy, record)

    def close(self) -> None:
        """Give the memory back; workers keep what they have mapped."""
        if not self._memory.closed:
            self._memory.close()
            os.close(self._fd)

    def _write(self, slot: int, copy: int, record: bytes) -> None:
        start = slot * _SLOT_BYTES + copy * _RECORD_BYTES
        self._memory[start : start + _RECORD_BYTES] = record


class PublishedDeadlines:
    """
    The reading side, in a worker.

    Args:
        fd: The inherited descriptor. It is not closed and not needed any more afterwards.
    """

    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, 0, access=mmap.ACCESS_READ)

    def confirmed_until_ms(self, slot: int, run_id: str, fence: int) -> int | None:
        """
        Read until when the ownership of exactly this run and grant is confirmed.

        Returns:
            A point on ``clocks.boottime_ms()``, or None when the slot says nothing about
            this grant: then it is not confirmed.
        """
        found: int | None = None
        for copy in range(_COPIES):
            start = slot * _SLOT_BYTES + copy * _RECORD_BYTES
            until_ms = _decode(self._memory[start : start + _RECORD_BYTES], run_id, fence)
            if until_ms is not None and (found is None or until_ms > found):
                found = until_ms
        return found

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()


def _encode(run_id: str, fence: int, until_ms: int) -> bytes:
    fields = _FIELDS.pack(_digest(run_id.encode()), fence, until_ms)
    return fields + _digest(fields)


def _decode(record: bytes, run_id: str, fence: int) -> int | None:
    """Read a record, or nothing from one that is torn or speaks of somebody else."""
    fields, checksum = record[: _FIELDS.size], record[_FIELDS.size :]
    # The checksum and not the order of writes tells a torn record: it holds on processors
    # that reorder stores, and whatever the size in which the interpreter copies.
    if len(fields) != _FIELDS.size or _digest(fields) != checksum:
        return None
    of_run, of_fence, until_ms = _FIELDS.unpack(fields)
    if of_run != _digest(run_id.encode()) or of_fence != fence:
        return None
    return int(until_ms)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_CHECKSUM_BYTES).digest()


def _make_memory_file(size: int) -> int:
    """Open a file that has no name and ends with its last descriptor."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("runstore-deadlines")
    else:
        with tempfile.TemporaryFile(prefix="runstore-deadlines-") as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd
