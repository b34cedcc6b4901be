"""One run under one arbiter, with the row that follows what is decided."""

from typing import Final

from django_runstore.arbiters.lease import (
    AskActivate,
    AskClaim,
    AskRecover,
    AskRenew,
    AskSteal,
    Granted,
    Lease,
    Refused,
    Request,
)
from django_runstore.arbiters.protocol import LeaseArbiter
from django_runstore.evidence import LivenessEvidence
from django_runstore.owners import OwnerId
from django_runstore.testing.conformance.expectations import expect, expect_that

STALE_AFTER_MS: Final = 30_000
STALE_MS: Final = STALE_AFTER_MS + 1
"""The first reading at which a stamp of 0 is stale."""

# A and B are processes of one host, C is on another.
A: Final = OwnerId("host-a", 101, "owner-a")
B: Final = OwnerId("host-a", 102, "owner-b")
C: Final = OwnerId("host-b", 103, "owner-c")


class LeaseScene:
    """Ask an arbiter as the store does: with the row's lease, and keeping what it decides."""

    def __init__(
        self, arbiter: LeaseArbiter, run_id: str = "run", *, stale_after_ms: int = STALE_AFTER_MS
    ) -> None:
        self.arbiter = arbiter
        self.run_id = run_id
        self.lease = Lease()
        self.stale_after_ms = stale_after_ms

    def ask(self, request: Request) -> Granted | Refused:
        """Ask once, and see that a refusal left the lease alone."""
        before = self.lease
        decision = self.arbiter.decide(
            self.run_id, before, request, stale_after_ms=self.stale_after_ms
        )
        if isinstance(decision.answer, Refused):
            expect(decision.lease, before, f"a refused {type(request).__name__} changes nothing")
        self.lease = decision.lease
        return decision.answer

    def granted(self, request: Request) -> Granted:
        """Ask for what must be granted."""
        answer = self.ask(request)
        if not isinstance(answer, Granted):
            raise AssertionError(f"{request!r} must be granted: got {answer!r}")  # noqa: TRY004 - the answer is judged
        return answer

    def refused(self, request: Request, reason: str, rule: str) -> None:
        """Ask for what must be refused, and for which reason."""
        expect(self.ask(request), Refused(reason), rule)  # type: ignore[arg-type]  # any text may be expected

    def lost(self, request: Request, rule: str) -> None:
        """Ask for what must be refused, whatever the reason."""
        answer = self.ask(request)
        expect_that(isinstance(answer, Refused), rule, answer)

    def claimed_by(self, claimant: OwnerId, at_ms: int = 0) -> Granted:
        """Have the run claimed."""
        return self.granted(AskClaim(claimant, at_ms))

    def owned_by(self, owner: OwnerId, at_ms: int = 0) -> None:
        """Have the run owned since ``at_ms``."""
        self.claimed_by(owner, at_ms)
        self.granted(AskActivate(owner, at_ms, at_ms))

    def stolen_by(self, thief: OwnerId, now_ms: int, victim: OwnerId = A) -> Granted:
        """Have the run claimed from under a stale owner."""
        return self.granted(steal(thief, now_ms, victim))

    def renewed(self, owner: OwnerId, now_ms: int, *, unclaimed: bool = False) -> int | None:
        """Renew, and give the stamp that results."""
        return self.granted(AskRenew(owner, now_ms, unclaimed=unclaimed)).at_ms


def steal(thief: OwnerId, now_ms: int, victim: OwnerId = A) -> AskSteal:
    """Ask to steal on evidence that fits from any host."""
    return AskSteal(thief, now_ms, LivenessEvidence(victim, now_ms, "lease-expired"))


def recover(
    now_ms: int,
    *,
    claimant: OwnerId = A,
    granted_at_ms: int = 0,
    observer: OwnerId = B,
    checked_at_ms: int | None = None,
    fence: int | None = None,
) -> AskRecover:
    """Ask to clear a claim on evidence that fits, unless it is dated otherwise."""
    dated_ms = now_ms if checked_at_ms is None else checked_at_ms
    evidence = LivenessEvidence(claimant, dated_ms, "lease-expired")
    return AskRecover(claimant, granted_at_ms, observer, now_ms, evidence, fence)
