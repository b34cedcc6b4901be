"""An arbiter that grants nothing. Spec: run-store 6.6."""

from django_runstore.arbiters.lease import (
    AskClaim,
    AskRecover,
    AskRelease,
    AskSteal,
    Decision,
    Granted,
    Lease,
    Refused,
    Request,
)


class NullArbiter:
    """Refuse every claim and know no owner: for environments that must never run anything."""

    def decide(
        self, run_id: str, row_lease: Lease, request: Request, *, stale_after_ms: int
    ) -> Decision:
        """Refuse; a release is granted because there is nothing to hold on to."""
        del run_id, stale_after_ms
        match request:
            case AskRelease():
                return Decision(Granted(None, row_lease.fence), row_lease)
            case AskClaim() | AskSteal() | AskRecover():
                return Decision(Refused("unavailable"), row_lease)
            case _:
                return Decision(Refused("not_owner"), row_lease)
