"""Why a stale owner is not taken for dead, in words for the people who wonder."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

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
    Presence.EXISTS: "its process exists on this host; it may be stopped, hung or cut off",
    Presence.UNKNOWN: "this host cannot tell whether its process exists",
}
_OF_LOCKS: Final[Mapping[LockState, str]] = {
    LockState.HELD: "its process is gone, but one of its workers still holds its lock",
    LockState.MISSING: "its process is gone, but its lock file is missing, so nobody knows "
    "about its workers",
    LockState.UNKNOWN: "its process is gone, but its lock cannot be read, so nobody knows "
    "about its workers",
}


def why_not_dead(holder: OwnerId, stamp_ms: int, observer: OwnerId, clock: Clock) -> str:
    """
    Explain why there is no evidence against ``holder``.

    A second look, only ever made for the words: the evidence itself comes from one look,
    and a holder that died in between is found dead by the next sweep.
    """
    if takeovers_blocked(clock):
        return "the clock of this process has just jumped"
    if not conf.current().lease.is_stale(stamp_ms, math.floor(clock.now_ms())):
        return "by the clock of this process it is not stale any more"
    if holder == observer:
        return "it is this very process"
    if same_host_incarnation(holder, observer) and (doubt := _on_this_host(holder)):
        return doubt
    checks = ", ".join(conf.current().liveness)
    return f"a liveness check calls it alive or failed ({checks})"


def _on_this_host(holder: OwnerId) -> str | None:
    if holder.pid <= 0:
        return f"pid {holder.pid} cannot be looked for"
    parts = NonceParts.read(holder.nonce)
    sighting = look_for_process(holder.pid, None if parts is None else parts.start_ticks)
    if sighting.presence in _OF_PROCESSES:
        return _OF_PROCESSES[sighting.presence]
    return _OF_LOCKS.get(look_at_lock(holder))
