"""
Evidence that a recorded owner is gone: what a takeover has to bring along.

Evidence never replaces staleness. A run is taken only when its stamp is stale *and*
somebody vouches, at that very reading of the clock, that its owner no longer works.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django_runstore.owners import OwnerId


class EvidenceKind(StrEnum):
    """On what grounds an owner is held to be gone. Spec: run-store 3.2."""

    SAME_HOST_PID_DEAD = "same-host-pid-dead"
    """The observer shares the owner's host and saw that its process is gone."""

    CROSS_HOST_UNREACHABLE_STALE = "cross-host-unreachable-stale"
    """The owner is on another host, which cannot be probed; its lease has expired."""

    LEASE_EXPIRED = "lease-expired"
    """Nothing but the expired lease; admitted from any host."""


@dataclass(frozen=True, slots=True)
class LivenessEvidence:
    """
    A dated statement that one particular owner is gone.

    Checks nothing when built; the store checks it when it is used.
    """

    expected_owner: OwnerId
    checked_at_ms: int
    kind: EvidenceKind | str
    observed: Mapping[str, str | int | bool] | None = field(default=None, hash=False)
    """What was seen, for the people who ask later; at most 16 small pairs, never matched."""


def matches_evidence(
    expected_owner: OwnerId,
    observer: OwnerId,
    now_ms: int,
    evidence: LivenessEvidence,
) -> bool:
    """
    Tell whether ``evidence`` speaks of this owner, at this reading, from this observer.

    Args:
        expected_owner: The owner (or claimant) that stands in the row.
        observer: Who wants to displace it.
        now_ms: The reading the operation uses. Evidence of any other moment is refused,
            a millisecond earlier too: what was true then says nothing about now.
        evidence: What the observer brings.

    Spec: run-store 3.2.
    """
    if evidence.expected_owner != expected_owner or evidence.checked_at_ms != now_ms:
        return False
    same_host = expected_owner.host_id == observer.host_id
    match evidence.kind:
        case EvidenceKind.SAME_HOST_PID_DEAD:
            return same_host
        case EvidenceKind.CROSS_HOST_UNREACHABLE_STALE:
            return not same_host
        case EvidenceKind.LEASE_EXPIRED:
            return True
        case _:
            return False
