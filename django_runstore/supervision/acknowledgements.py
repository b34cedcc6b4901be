"""Requests to cancel that this owner has seen, until the row and the journal say so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from django.db import transaction

from django_runstore import conf
from django_runstore.db.lock_wait import limit_lock_wait
from django_runstore.events import JournalEvent
from django_runstore.models import Run
from django_runstore.services import Journal

if TYPE_CHECKING:
    from collections.abc import Container

    from django_runstore.owners import OwnerId
    from django_runstore.services import RunStore

SOURCE: Final = "supervisor"
ACKNOWLEDGED: Final = "runstore.run.cancel_acknowledged"


@dataclass(slots=True)
class Acknowledgements:
    """
    Writes down that a request was seen, again after a failure of the database.

    Args:
        store: Where the runs are.
        owner: Who owns them.
    """

    store: RunStore
    owner: OwnerId
    _due: list[tuple[str, int]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._due)

    def add(self, run_id: str, fence: int) -> None:
        """Take note that the request to cancel this run was seen."""
        self._due.append((run_id, fence))

    def write(self, owned: Container[tuple[str, int]]) -> None:
        """
        Write what is due, and forget what was written or is owned no more.

        Args:
            owned: Pairs of run id and fence.

        Raises:
            RunStoreError, JournalError, django.db.Error: the database failed; what it did
                not take stays due.
        """
        while self._due:
            if self._due[0] in owned:
                self._acknowledge(*self._due[0])
            del self._due[0]

    def _acknowledge(self, run_id: str, fence: int) -> None:
        using = self.store.using
        # Together, so that a failure between the two leaves neither out.
        with transaction.atomic(using=using):
            # A handler may have its row locked; the supervisor has signals to answer.
            limit_lock_wait(using, conf.current().lease.heartbeat_interval_ms)
            if not self.store.acknowledge_cancel(run_id, self.owner, fence=fence):
                return
            asked = Run.objects.using(using).values_list("cancel_requested_at_ms", flat=True)
            event = JournalEvent(
                run_id, SOURCE, ACKNOWLEDGED, {"requested_at_ms": asked.get(pk=run_id)}
            )
            journal = Journal(using, self.store.clock, self.store.arbiter)
            journal.emit_durable(event, self.owner, fence=fence)
