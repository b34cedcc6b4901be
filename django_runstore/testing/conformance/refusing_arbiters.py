"""What an arbiter that grants nothing answers. Spec: run-store 6.6."""

from django_runstore.arbiters.lease import (
    AskActivate,
    AskClaim,
    AskGuard,
    AskRelease,
    AskRenew,
    Granted,
    Lease,
    Reason,
    Refused,
    Request,
)
from django_runstore.arbiters.protocol import LeaseArbiter
from django_runstore.testing.conformance.expectations import covers, expect, expect_that
from django_runstore.testing.conformance.scenes import (
    STALE_AFTER_MS,
    STALE_MS,
    A,
    B,
    recover,
    steal,
)

NOBODYS = Lease()
OWNED = Lease(A, 0, 1, None, None, 1)
CLAIMED = Lease(None, None, None, A, 0, 1)


class RefusingArbiterConformance:
    """For arbiters of environments that must never run anything, whatever the rows say."""

    def make_arbiter(self) -> LeaseArbiter:
        """Return an arbiter."""
        raise NotImplementedError(f"{type(self).__name__} must say how its arbiter is made")

    @covers(122)
    def test_no_run_can_be_had(self) -> None:
        for request in (AskClaim(B, 0), steal(B, STALE_MS), recover(STALE_MS)):
            self._refuses(request, "unavailable")

    @covers(122)
    def test_no_run_can_be_kept(self) -> None:
        for request in (
            AskActivate(A, 0, 0),
            AskRenew(A, 0),
            AskRenew(A, 0, unclaimed=True),
            AskGuard(A),
        ):
            self._refuses(request, "not_owner")

    @covers(122)
    def test_there_is_nothing_to_release(self) -> None:
        for row in (NOBODYS, OWNED, CLAIMED):
            decision = self.make_arbiter().decide(
                "run", row, AskRelease(A), stale_after_ms=STALE_AFTER_MS
            )
            expect_that(isinstance(decision.answer, Granted), "a release succeeds", decision.answer)
            expect(decision.lease, row, "a release lets go of nothing")

    def _refuses(self, request: Request, reason: Reason) -> None:
        for row in (NOBODYS, OWNED, CLAIMED):
            decision = self.make_arbiter().decide(
                "run", row, request, stale_after_ms=STALE_AFTER_MS
            )
            expect(decision.answer, Refused(reason), f"{type(request).__name__} is refused")
            expect(decision.lease, row, f"a refused {type(request).__name__} changes nothing")
