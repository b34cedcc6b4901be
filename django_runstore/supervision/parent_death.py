"""Die with the supervisor, so that no handler works on for an owner that is gone."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


class ParentIsGoneError(Exception):
    """The supervisor died before this process could ask to die with it."""


def die_with_parent(parent_pid: int) -> None:
    """
    Ask the kernel to kill this process when its parent dies.

    Call it in the main thread, of a process that the parent's main thread started: the
    kernel remembers both per thread. Off Linux only the closed pipe tells of the death.

    Raises:
        ParentIsGoneError: it is dead already; the kernel only tells of deaths to come.
    """
    _set_death_signal(signal.SIGKILL)
    if os.getppid() != parent_pid:
        raise ParentIsGoneError


def outlive_parent() -> None:
    """Take ``die_with_parent()`` back."""
    _set_death_signal(0)


def _set_death_signal(number: int) -> None:
    if sys.platform != "linux":
        return
    if _libc.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


_libc: Final = ctypes.CDLL(None, use_errno=True)
