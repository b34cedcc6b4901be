"""Leases in this process's memory. Spec: run-store 6.5."""

import threading
from dataclasses import replace

from django_runstore.arbiters.lease import Decision, Lease, Request
from django_runstore.arbiters.rules import decide


class LocalArbiter:
    """
    Keep leases in a locked dict: exact within one process, unknown to any other.

    For tests, and for hosts of one process that start with runs nobody owns. It takes no
    part in transactions: a lease granted inside one that rolls back stays granted, and an
    owner that another process left behind is unknown here.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leases: dict[str, Lease] = {}

    def decide(
        self, run_id: str, row_lease: Lease, request: Request, *, stale_after_ms: int
    ) -> Decision:
        """Apply the rules to the remembered lease."""
        with self._lock:
            known = self._leases.get(run_id, Lease())
            # The row remembers fences handed out before this process began.
            lease = replace(known, fence=max(known.fence, row_lease.fence))
            decision = decide(lease, request, stale_after_ms=stale_after_ms)
            if decision.lease.owner is None and decision.lease.claim is None:
                # The fence lives on in the row, so an empty lease needs no memory.
                self._leases.pop(run_id, None)
            else:
                self._leases[run_id] = decision.lease
            return decision
