"""
The lease rules, pure: ``decide(lease, request)`` reads no clock and no database.

Spec: run-store 6.1 and 6.3. A claim is spent once and only with its exact grant time; a
steal needs staleness and evidence; a stealer's claim leaves the owner's fence intact until
it is activated.
"""

from dataclasses import replace
from typing import assert_never

from django_runstore.arbiters.lease import (
    AskActivate,
    AskClaim,
    AskGuard,
    AskRecover,
    AskRelease,
    AskRenew,
    AskSteal,
    Decision,
    Granted,
    Lease,
    Reason,
    Refused,
    Request,
)
from django_runstore.evidence import matches_evidence
from django_runstore.owners import OwnerId


def decide(lease: Lease, request: Request, *, stale_after_ms: int) -> Decision:
    """Answer ``request`` and give the lease that results; a refusal leaves it as it was."""
    match request:
        case AskClaim():
            return _claim(lease, request)
        case AskSteal():
            return _steal(lease, request, stale_after_ms)
        case AskActivate():
            return _activate(lease, request)
        case AskRenew():
            return _renew(lease, request)
        case AskRelease():
            return _release(lease, request)
        case AskRecover():
            return _recover(lease, request, stale_after_ms)
        case AskGuard():
            return _guard(lease, request)
        case unreachable:
            assert_never(unreachable)


def _claim(lease: Lease, request: AskClaim) -> Decision:
    if lease.claim is not None:
        return _refuse(lease, "already_claimed")
    if lease.owner is not None:
        return _refuse(lease, "owner_held")
    return _grant_claim(lease, request.claimant, request.now_ms)


def _steal(lease: Lease, request: AskSteal, stale_after_ms: int) -> Decision:
    evidence, now_ms = request.evidence, request.now_ms
    if not matches_evidence(evidence.expected_owner, request.claimant, now_ms, evidence):
        return _refuse(lease, "evidence_invalid")
    if lease.claim is not None:
        return _refuse(lease, "already_claimed")
    if lease.owner is None or lease.owner != evidence.expected_owner:
        return _refuse(lease, "evidence_invalid")
    if lease.heartbeat_at_ms is None or lease.heartbeat_at_ms >= now_ms - stale_after_ms:
        return _refuse(lease, "owner_live")
    return _grant_claim(lease, request.claimant, now_ms)


def _grant_claim(lease: Lease, claimant: OwnerId, now_ms: int) -> Decision:
    granted = replace(lease, claim=claimant, claimed_at_ms=now_ms, fence=lease.fence + 1)
    return Decision(Granted(now_ms, granted.fence), granted)


def _activate(lease: Lease, request: AskActivate) -> Decision:
    spendable = (
        lease.claim == request.owner
        and lease.claimed_at_ms == request.granted_at_ms
        and request.fence in (None, lease.fence)
    )
    if not spendable:
        return _refuse(lease, "claim_changed")
    owned = replace(
        lease,
        owner=request.owner,
        heartbeat_at_ms=request.now_ms,
        owner_fence=lease.fence,
        claim=None,
        claimed_at_ms=None,
    )
    return Decision(Granted(request.now_ms, owned.fence), owned)


def _renew(lease: Lease, request: AskRenew) -> Decision:
    if not _is_owner(lease, request.owner, request.fence):
        return _refuse(lease, "not_owner")
    if request.unclaimed and lease.claim is not None:
        return _refuse(lease, "already_claimed")
    # Keep the later stamp: a pulse delayed on its way must not make a live owner look stale.
    stamp = max(lease.heartbeat_at_ms or 0, request.now_ms)
    return Decision(Granted(stamp, lease.fence), replace(lease, heartbeat_at_ms=stamp))


def _release(lease: Lease, request: AskRelease) -> Decision:
    if lease.claim == request.owner:
        lease = replace(lease, claim=None, claimed_at_ms=None)
    if lease.owner == request.owner and not request.claim_only:
        lease = replace(lease, owner=None, heartbeat_at_ms=None, owner_fence=None)
    return Decision(Granted(None, lease.fence), lease)


def _recover(lease: Lease, request: AskRecover, stale_after_ms: int) -> Decision:
    if not matches_evidence(
        request.stale_claimant, request.observer, request.now_ms, request.evidence
    ):
        return _refuse(lease, "evidence_invalid")
    named = (
        lease.claim == request.stale_claimant
        and lease.claimed_at_ms == request.granted_at_ms
        and request.fence in (None, lease.fence)
    )
    if not named:
        return _refuse(lease, "claim_changed")
    if request.granted_at_ms >= request.now_ms - stale_after_ms:
        return _refuse(lease, "claim_fresh")
    freed = replace(lease, claim=None, claimed_at_ms=None)
    return Decision(Granted(request.granted_at_ms, lease.fence), freed)


def _guard(lease: Lease, request: AskGuard) -> Decision:
    if not _is_owner(lease, request.owner, request.fence):
        return _refuse(lease, "not_owner")
    return Decision(Granted(lease.heartbeat_at_ms, lease.fence), lease)


def _is_owner(lease: Lease, owner: OwnerId, fence: int | None) -> bool:
    return lease.owner == owner and fence in (None, lease.owner_fence)


def _refuse(lease: Lease, reason: Reason) -> Decision:
    return Decision(Refused(reason), lease)
