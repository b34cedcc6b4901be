"""The seam between the store and whoever decides about leases."""

import threading
from typing import Final, Protocol

from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from django_runstore import conf
from django_runstore.arbiters.lease import Decision, Lease, Request


class LeaseArbiter(Protocol):
    """
    Decide one request about one run's lease.

    The store holds the run row's lock while it asks and writes the decided lease in
    the same transaction. An arbiter is handed the row's lease and may keep its own.
    """

    def decide(
        self, run_id: str, row_lease: Lease, request: Request, *, stale_after_ms: int
    ) -> Decision:
        """Answer ``request``; never read a clock, never touch the database."""
        ...


_arbiters: Final[dict[str, LeaseArbiter]] = {}
_lock: Final = threading.Lock()


def arbiter_for(using: str) -> LeaseArbiter:
    """Give the one arbiter that all services of this process share for a database alias."""
    with _lock:
        if using not in _arbiters:
            _arbiters[using] = import_string(conf.current().arbiter)()
        return _arbiters[using]


def _forget(*, setting: str, **_: object) -> None:
    if setting == "RUNSTORE":
        with _lock:
            _arbiters.clear()


setting_changed.connect(_forget, dispatch_uid="django_runstore.arbiters")
