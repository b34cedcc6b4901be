"""The lease, what can be asked of it, and what can be answered. Spec: run-store 6.2."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from django_runstore.evidence import LivenessEvidence
from django_runstore.owners import OwnerId


@dataclass(frozen=True, slots=True)
class Lease:
    """
    Who owns a run and who has reserved it.

    ``fence`` is the last grant handed out and rises by one on every grant, claimed or
    stolen; ``owner_fence`` is the grant that the current owner was activated with.
    """

    owner: OwnerId | None = None
    heartbeat_at_ms: int | None = None
    owner_fence: int | None = None
    claim: OwnerId | None = None
    claimed_at_ms: int | None = None
    fence: int = 0


@dataclass(frozen=True, slots=True)
class AskClaim:
    """Reserve a run that nobody owns."""

    claimant: OwnerId
    now_ms: int


@dataclass(frozen=True, slots=True)
class AskSteal:
    """Reserve a run whose owner is stale and proven dead."""

    claimant: OwnerId
    now_ms: int
    evidence: LivenessEvidence


@dataclass(frozen=True, slots=True)
class AskActivate:
    """Turn a claim into ownership; the exact grant time is the token."""

    owner: OwnerId
    granted_at_ms: int
    now_ms: int
    fence: int | None = None


@dataclass(frozen=True, slots=True)
class AskRenew:
    """Move the heartbeat forward; ``unclaimed`` also demands that no claim is pending."""

    owner: OwnerId
    now_ms: int
    fence: int | None = None
    unclaimed: bool = False


@dataclass(frozen=True, slots=True)
class AskRelease:
    """
    Give up what this identity holds: claim and ownership alike, or the claim alone.

    A claimant that gives its claim back may own the run at the same time, when it has stolen
    from itself; it owns it still.
    """

    owner: OwnerId
    claim_only: bool = False


@dataclass(frozen=True, slots=True)
class AskRecover:
    """Clear the claim of a claimant that is stale and proven dead."""

    stale_claimant: OwnerId
    granted_at_ms: int
    observer: OwnerId
    now_ms: int
    evidence: LivenessEvidence
    fence: int | None = None


@dataclass(frozen=True, slots=True)
class AskGuard:
    """Confirm that this identity still owns the run, however old its heartbeat is."""

    owner: OwnerId
    fence: int | None = None


Request: TypeAlias = (
    AskClaim | AskSteal | AskActivate | AskRenew | AskRelease | AskRecover | AskGuard
)

Reason: TypeAlias = Literal[
    "already_claimed",
    "owner_held",
    "owner_live",
    "evidence_invalid",
    "claim_fresh",
    "claim_changed",
    "unavailable",
    "not_owner",
]


@dataclass(frozen=True, slots=True)
class Granted:
    """The request holds; the time and fence are those of the grant or the renewed stamp."""

    at_ms: int | None
    fence: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The request does not hold; the lease is unchanged."""

    reason: Reason


Answer: TypeAlias = Granted | Refused


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer and the lease as it stands afterwards."""

    answer: Answer
    lease: Lease
