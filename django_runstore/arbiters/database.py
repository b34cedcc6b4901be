"""The default arbiter: the run row is the lease."""

from django_runstore.arbiters.lease import Decision, Lease, Request
from django_runstore.arbiters.rules import decide


class DatabaseArbiter:
    """Decide from the row's own columns, so that all processes see one lease."""

    def decide(
        self, run_id: str, row_lease: Lease, request: Request, *, stale_after_ms: int
    ) -> Decision:
        """Apply the rules to the lease that the locked row holds."""
        del run_id  # the row is already the right one
        return decide(row_lease, request, stale_after_ms=stale_after_ms)
