"""Why a stale owner is not taken for dead, in words for the people who wonder."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_noop

from django_runstore import conf
from django_runstore.clocks import takeovers_blocked
from django_runstore.liveness import LockState, look_at_lock
from django_runstore.owners import NonceParts, same_host_incarnation
from django_runstore.process_identity import Presence, look_for_process

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django_runstore.clocks import Clock
    from django_runstore.owners import OwnerId

_OF_PROCESSES: Final[Mapping[Presence, str]] = {
    Presence.EXISTS: gettext_noop(
        "its process exists on this host; it may be stopped, hung or cut off"
    ),
    Presence.UNKNOWN: gettext_noop("this host cannot tell whether its process exists"),
}
_OF_LOCKS: Final[Mapping[LockState, str]] = {
    LockState.HELD: gettext_noop(
        "its process is gone, but one of its workers still holds its lock"
    ),
    LockState.MISSING: gettext_noop(
        "its process is gone, but its lock file is missing, so nobody knows about its workers"
    ),
    LockState.UNKNOWN: gettext_noop(
        "its process is gone, but its lock cannot be read, so nobody knows about its workers"
    ),
}


@dataclass(frozen=True, slots=True)
class Doubt:
    """
    Why somebody is not taken for dead.

    Attributes:
        words: In English, as logs want it; translate it before ``details`` are filled in.
    """

    words: str
    details: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Say it in English."""
        return self.words % self.details if self.details else self.words


def doubt_about(holder: OwnerId, stamp_ms: int, observer: OwnerId, clock: Clock) -> Doubt:
    """
    Explain why there is no evidence against ``holder``.

    A second look, only ever made for the words: the evidence itself comes from one look,
    and a holder that died in between is found dead by the next sweep.
    """
    if takeovers_blocked(clock):
        return Doubt(gettext_noop("the clock of this process has just jumped"))
    if not conf.current().lease.is_stale(stamp_ms, math.floor(clock.now_ms())):
        return Doubt(gettext_noop("by the clock of this process it is not stale any more"))
    if holder == observer:
        return Doubt(gettext_noop("it is this very process"))
    if same_host_incarnation(holder, observer) and (doubt := _on_this_host(holder)):
        return doubt
    checks = ", ".join(conf.current().liveness)
    said = gettext_noop("a liveness check calls it alive or failed (%(checks)s)")
    return Doubt(said, {"checks": checks})


def _on_this_host(holder: OwnerId) -> Doubt | None:
    if holder.pid <= 0:
        return Doubt(gettext_noop("pid %(pid)s cannot be looked for"), {"pid": str(holder.pid)})
    parts = NonceParts.read(holder.nonce)
    sighting = look_for_process(holder.pid, None if parts is None else parts.start_ticks)
    if sighting.presence in _OF_PROCESSES:
        return Doubt(_OF_PROCESSES[sighting.presence])
    lock = _OF_LOCKS.get(look_at_lock(holder))
    return None if lock is None else Doubt(lock)
