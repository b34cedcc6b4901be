"""Reporting queries over runs: ``Run.objects.stale(now_ms)`` and its neighbours."""

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import F, OuterRef, Q, Subquery
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Coalesce

from django_runstore import conf
from django_runstore.read_only import ReadOnlyQuerySet
from django_runstore.states import CLAIMABLE_STATUSES, LIVE_STATUSES, TERMINAL_STATUSES, RunStatus

if TYPE_CHECKING:
    from django_runstore.models import Run  # noqa: F401 - named in the base class


class RunQuerySet(ReadOnlyQuerySet["Run"]):
    """Runs, for reading. Times are milliseconds since the Unix epoch, from the store's clock."""

    def claimable(self, now_ms: int) -> "RunQuerySet":
        """Pending or suspended runs that nobody has claimed and that are due by ``now_ms``."""
        return self.filter(
            status__in=CLAIMABLE_STATUSES,
            claim_host_id__isnull=True,
            available_at_ms__lte=now_ms,
        )

    def live(self) -> "RunQuerySet":
        """Runs that are not settled."""
        return self.filter(status__in=LIVE_STATUSES)

    def settled(self) -> "RunQuerySet":
        """Runs that completed, failed or were cancelled."""
        return self.filter(status__in=TERMINAL_STATUSES)

    def stale(self, now_ms: int) -> "RunQuerySet":
        """
        Running runs whose last heartbeat is strictly older than the stale-after time.

        Stale is not dead: a takeover needs evidence as well.
        """
        return self.filter(
            status=RunStatus.RUNNING,
            heartbeat_at_ms__lt=now_ms - conf.current().lease.stale_after_ms,
        )

    def lineage_of(self, run_id: str) -> "RunQuerySet":
        """All rounds of the logical run that ``run_id`` belongs to, in round order."""
        # One statement: the run's own lineage is looked up in a subquery.
        own = self.model._base_manager.filter(run_id=run_id).values("lineage_id")[:1]
        logical = Coalesce(Subquery(own), models.Value(run_id))
        known = models.Exists(self.model._base_manager.filter(run_id=run_id))
        root = Q(run_id=F("_logical")) & (Q(lineage_id__isnull=True) | Q(lineage_id=F("_logical")))
        return (
            self.alias(_logical=logical)
            .filter(known)
            .filter(Q(lineage_id=F("_logical")) | root)
            .order_by(Coalesce("round_ordinal", 0), "run_id")
        )

    def latest_rounds(self) -> "RunQuerySet":
        """The newest round of every lineage; a run without a lineage is its own newest round."""
        later = self.model._base_manager.filter(
            lineage_id=Coalesce(OuterRef("lineage_id"), OuterRef("run_id")),
            round_ordinal__gt=Coalesce(OuterRef("round_ordinal"), -1),
        )
        return self.filter(~models.Exists(later))

    def waiting(self, reason: str | None = None) -> "RunQuerySet":
        """Unsettled runs that wait for something, the next to wake first."""
        waiting = self.live().filter(waiting_reason__isnull=False)
        if reason is not None:
            waiting = waiting.filter(waiting_reason=reason)
        return waiting.order_by(F("waiting_wake_at_ms").asc(nulls_last=True), "run_id")

    def with_durations(self) -> "RunQuerySet":
        """
        Annotate ``queued_ms`` (created to started) and ``ran_ms`` (started to finished).

        Null while the later of the two times is not known.
        """
        return self.annotate(
            queued_ms=_difference("started_at_ms", "created_at_ms"),
            ran_ms=_difference("finished_at_ms", "started_at_ms"),
        )


def _difference(later: str, earlier: str) -> CombinedExpression:
    return F(later) - F(earlier)
