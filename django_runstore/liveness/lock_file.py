"""
The lock file of an owner with workers: proof that none of them is left.

A worker can outlive its supervisor for a moment. It inherits the descriptor of its
supervisor's lock, and the kernel frees the lock when the last process that holds it is
gone, however it went. So a free lock of a dead owner means that nobody works for it.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Self

from django_runstore import conf, runtime_directory
from django_runstore.owners import NonceParts, OwnerId

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

_PRIVATE_FILE: Final = 0o600
_ANNOUNCEMENT: Final = "-L"


class LockState(StrEnum):
    """What can be seen of an owner's lock."""

    NOT_ANNOUNCED = "not-announced"
    """The owner has no lock file and never said so."""

    FREE = "free"
    """Nobody holds it any more."""

    HELD = "held"
    """The owner or one of its workers holds it."""

    MISSING = "missing"
    """It should be in this very folder and is not: nobody knows."""

    ELSEWHERE = "elsewhere"
    """It was announced in another folder than the one this process sees."""

    UNKNOWN = "unknown"
    """It cannot be read, or the folder could have been tampered with."""


class OwnerLock:
    """
    The lock of a living owner; hold it for as long as the owner may own anything.

    Example:
        >>> owner = OwnerId.for_this_process(announces_lock=True)
        >>> with OwnerLock.acquire(owner) as lock:
        ...     worker = subprocess.Popen([...], pass_fds=[lock.fileno()])
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        """Use ``acquire()``; this only keeps what it opened."""
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, owner: OwnerId, runtime_dir: Path | None = None) -> Self:
        """
        Create the lock file that ``owner`` announces and lock it.

        The descriptor is closed on exec: hand it to workers with ``pass_fds`` and to
        nobody else, since whoever holds it keeps the owner alive.

        Args:
            owner: An owner made by ``OwnerId.for_this_process(announces_lock=True)``.
            runtime_dir: The folder; by default ``RUNSTORE["RUNTIME_DIR"]``.

        Raises:
            ValueError: the owner announces no lock, or one in another folder.
            OSError: the folder is not private, or the file exists already.
        """
        if sys.platform == "win32":
            raise OSError("A lock that workers inherit needs flock, which Windows does not have.")
        folder = runtime_directory.prepare(runtime_dir or conf.current().runtime_dir)
        parts = NonceParts.read(owner.nonce)
        if parts is None or parts.lock_scope != runtime_directory.scope_of(folder):
            message = f"{owner.describe()} does not announce a lock in {folder}."
            raise ValueError(message)
        path = _lock_path(folder, owner.nonce)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, _PRIVATE_FILE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, descriptor)

    def __enter__(self) -> Self:
        """Return the lock, which is held already."""
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the descriptor and leave the file for those who check it."""
        self.close()

    def fileno(self) -> int:
        """Return the descriptor that workers inherit."""
        return self._descriptor

    def touch(self) -> None:
        """
        Mark the file as in use; once a day is enough.

        Cleaners of temporary folders remove what has not changed for days, and a lock
        file that is missing keeps a dead owner's runs from being taken over here.
        """
        os.utime(self._descriptor)
        os.utime(self.path.parent / runtime_directory.SCOPE_FILE)

    def close(self) -> None:
        """Let go of the lock; workers that inherited it still hold it. May be called twice."""
        if self._descriptor >= 0:
            # Closed and never unlocked: LOCK_UN would free it for the workers too.
            os.close(self._descriptor)
            self._descriptor = -1

    def discard(self) -> None:
        """
        Let go of the lock and remove the file.

        Only for an owner that owns no run and has no worker any more: of a run that is
        still in its name, nobody on this host could ever tell that it is dead.
        """
        self.path.unlink(missing_ok=True)
        self.close()


def look_at_lock(owner: OwnerId, runtime_dir: Path | None = None) -> LockState:
    """
    Look whether anybody holds the lock that ``owner`` announces; never keeps it.

    Args:
        owner: The recorded owner; its nonce may be any text.
        runtime_dir: The folder; by default ``RUNSTORE["RUNTIME_DIR"]``.
    """
    parts = NonceParts.read(owner.nonce)
    if parts is None:
        # Not a nonce of ours, so not the name of a file either. Should a later release
        # announce its locks in another way, this one must not call its owners dead.
        announced = str(owner.nonce).endswith(_ANNOUNCEMENT)
        return LockState.UNKNOWN if announced else LockState.NOT_ANNOUNCED
    if parts.lock_scope is None:
        return LockState.NOT_ANNOUNCED
    folder = runtime_dir or conf.current().runtime_dir
    try:
        return _look_into(folder, owner.nonce, parts.lock_scope)
    except OSError:
        return LockState.UNKNOWN


def _look_into(folder: Path, nonce: str, scope: str) -> LockState:
    try:
        folder.lstat()
    except FileNotFoundError:
        return LockState.ELSEWHERE
    if not runtime_directory.is_private(folder):
        return LockState.UNKNOWN
    if runtime_directory.read_scope(folder) != scope:
        return LockState.ELSEWHERE
    try:
        with _opened(_lock_path(folder, nonce)) as descriptor:
            return _try_lock(descriptor)
    except FileNotFoundError:
        return LockState.MISSING


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    # Non-blocking: opening somebody's named pipe of that name would wait for a writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = os.open(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> LockState:
    if sys.platform == "win32" or not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return LockState.UNKNOWN
    try:
        # Shared, so that two sweepers that look at once do not take each other for the owner.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return LockState.HELD
    # At once, and by name: a child forked this instant has a copy of the descriptor.
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return LockState.FREE


def _lock_path(folder: Path, nonce: str) -> Path:
    return folder / f"{nonce}.lock"
