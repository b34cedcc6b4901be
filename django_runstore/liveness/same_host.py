"""Liveness by looking for the owner's process on the host that both share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django_runstore.liveness.contract import LivenessVerdict
from django_runstore.liveness.lock_file import LockState, look_at_lock
from django_runstore.owners import NonceParts, same_host_incarnation
from django_runstore.process_identity import Presence, look_for_process

if TYPE_CHECKING:
    from django_runstore.liveness.contract import LivenessContext
    from django_runstore.owners import OwnerId

_GREATEST_SAFE_INTEGER: Final = 2**53 - 1

# A lock that was announced and is free: no worker has outlived its supervisor. One that
# was announced in a folder this process cannot see (a restarted container, a private
# /tmp, another user's folder) can be neither held nor free here; the process is gone
# all the same, and the expired lease decides, as it does for another host.
_LOCK_STATES_OF_THE_DEAD: Final = frozenset(
    {LockState.NOT_ANNOUNCED, LockState.FREE, LockState.ELSEWHERE}
)


class SameHostProcess:
    """
    Call an owner on this host dead only when its process is gone and its lock is free.

    Gone means "no such process", another start time than the nonce carries, or a zombie.
    An owner on another host is never looked for: False, so that its expired lease decides.
    Limits: a process that rebuilds its host in place keeps its pid and start time, so its
    former owner looks alive; such a host uses ``unexpired_lease``. Spec: run-store 7.2.
    """

    def __call__(self, expected_owner: OwnerId, context: LivenessContext, /) -> bool:
        """Return False only for an owner that is dead or on another host."""
        return self.examine(expected_owner, context).is_alive

    def examine(self, expected_owner: OwnerId, context: LivenessContext, /) -> LivenessVerdict:
        """Look for process and lock once, and return what was seen."""
        if not same_host_incarnation(expected_owner, context.claimant):
            return LivenessVerdict(is_alive=False, observed={"host": "other"})
        pid = expected_owner.pid
        if not _can_be_probed(pid):
            return LivenessVerdict(is_alive=True)
        parts = NonceParts.read(expected_owner.nonce)
        sighting = look_for_process(pid, None if parts is None else parts.start_ticks)
        if sighting.presence is not Presence.GONE:
            return LivenessVerdict(is_alive=True)
        lock = look_at_lock(expected_owner)
        return LivenessVerdict(
            is_alive=lock not in _LOCK_STATES_OF_THE_DEAD,
            observed={
                "pid": pid,
                "process": sighting.presence.value,
                "reason": sighting.reason,
                "lock": lock.value,
            },
            process_is_gone=True,
        )


same_host_process: Final = SameHostProcess()
"""The check that ``RUNSTORE["LIVENESS"]`` names by default."""


def _can_be_probed(pid: object) -> bool:
    """Tell whether a stored pid is one: kill() takes 0 and less for process groups."""
    if not isinstance(pid, int) or isinstance(pid, bool):
        return False
    return 0 < pid <= _GREATEST_SAFE_INTEGER
