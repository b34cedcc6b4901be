"""Owners: which process holds a run, so exactly that no other is ever taken for it."""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass
from typing import Final, Self

from django_runstore import conf, process_identity, runtime_directory

_NONCE: Final = re.compile(
    r"(?:t(?P<ticks>[0-9]{1,19})|u)-(?P<random>[0-9a-f]{16})(?:-d(?P<scope>[0-9a-f]{16})-L)?",
    re.ASCII,
)
_READABLE_CHARACTERS = 40
_READABLE_NONCE_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class OwnerId:
    """
    One incarnation of one process.

    Checks nothing when built; the store does. Two owners are the same when all three
    fields are equal. Spec: run-store 3.1.
    """

    host_id: str
    """The scope in which ``pid`` means something: see ``process_identity.host_scope()``."""

    pid: int
    """The process id as that scope counts it."""

    nonce: str
    """Separates incarnations: the start time of the process and a random part."""

    @classmethod
    def for_this_process(cls, *, announces_lock: bool = False) -> Self:
        """
        Name the calling process, with a fresh nonce on each call.

        Nothing is remembered between calls, so a forked child never inherits the name of
        its parent. Keep the answer for as long as the process shall be one owner.

        Args:
            announces_lock: True when the process takes an ``OwnerLock`` before it claims
                anything. It is then only dead when that lock can be taken as well, and
                whoever cannot see the lock file must assume that it lives. Needs
                ``RUNSTORE["RUNTIME_DIR"]`` to be usable.

        Raises:
            OSError: with ``announces_lock``, the runtime folder cannot be made or is not
                private to this user.
        """
        ticks = process_identity.own_start_ticks()
        start = "u" if ticks is None else f"t{ticks}"
        nonce = f"{start}-{secrets.token_hex(8)}"
        if announces_lock:
            folder = runtime_directory.prepare(conf.current().runtime_dir)
            nonce = f"{nonce}-d{runtime_directory.scope_of(folder)}-L"
        return cls(process_identity.host_scope(), os.getpid(), nonce)

    @property
    def host_name(self) -> str:
        """The part of the host id that people know the host by, short and on one line."""
        return _readable(str(self.host_id).partition("/")[0])

    def describe(self) -> str:
        """Name the owner on one short line for logs, such as ``web-1 pid 4102 (9f3a61c2)``."""
        parts = NonceParts.read(self.nonce)
        nonce = str(self.nonce) if parts is None else parts.random
        return (
            f"{self.host_name} pid {_readable(str(self.pid))} "
            f"({_readable(nonce[:_READABLE_NONCE_CHARACTERS])})"
        )


@dataclass(frozen=True, slots=True)
class NonceParts:
    """What a nonce made by ``OwnerId.for_this_process()`` says about its process."""

    start_ticks: int | None
    random: str
    lock_scope: str | None
    """The runtime folder that holds the announced lock file; None when none was announced."""

    @classmethod
    def read(cls, nonce: object) -> Self | None:
        """
        Read a nonce, or return None for one that was not made here.

        Hosts of their own may use any text. Nothing is read into it: a UUID that begins
        with digits must not pass for a start time and prove a living owner dead.
        """
        match = _NONCE.fullmatch(nonce) if isinstance(nonce, str) else None
        if match is None:
            return None
        ticks = match["ticks"]
        return cls(None if ticks is None else int(ticks), match["random"], match["scope"])


def same_host_incarnation(a: OwnerId, b: OwnerId) -> bool:
    """Tell whether a pid means the same for both: equal host ids. Spec: run-store 7.1."""
    return a.host_id == b.host_id


def _readable(text: str) -> str:
    """Keep a log line one line, whatever a host of its own chose for an identity."""
    shown = text[:_READABLE_CHARACTERS]
    return shown if shown.isprintable() else ascii(shown)
