"""
What Prometheus scrapes: the counters, and gauges read from the database at that moment.

Needs the extra ``prometheus``. Mount ``metrics_view``, or register ``RunGauges`` with a
registry that is scraped already.
"""

import logging
import math
import os
from collections.abc import Iterable, Iterator
from typing import Final

from django.db import Error as DjangoError
from django.db.models import Count, Min, Q, Sum
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import REGISTRY, Collector, CollectorRegistry

from django_runstore import conf
from django_runstore.clocks import clock_for
from django_runstore.db.boundary import drop_lost_connection
from django_runstore.db.failures import classify, describe
from django_runstore.models import Run, SupervisorProcess
from django_runstore.states import CLAIMABLE_STATUSES, LIVE_STATUSES, RunStatus
from django_runstore.supervision.presence import silent_before_ms

_log = logging.getLogger("django_runstore.prometheus")

_MULTIPROCESS: Final = "PROMETHEUS_MULTIPROC_DIR"


class RunGauges(Collector):
    """
    Read the gauges of one database when they are scraped, with three statements.

    Settled runs are not counted: their number only grows, and counting them would read all
    of them. When the database cannot be read, ``runstore_database_readable`` is 0 and the
    other gauges are absent.

    Args:
        using: Database alias.
    """

    def __init__(self, using: str = "default") -> None:
        self._using = using

    def describe(self) -> Iterable[Metric]:
        """Name the gauges without reading anything, so that registering asks no database."""
        return [GaugeMetricFamily(name, meaning) for name, meaning in _GAUGES.items()]

    def collect(self) -> Iterator[Metric]:
        """Read and yield the gauges."""
        try:
            gauges = [*self._of_statuses(), *self._of_queues(), *self._of_supervisors()]
        except (DjangoError, OSError) as error:
            # The driver's words stay out: they may quote a row.
            _log.warning("run gauges could not be read", extra=describe(error))
            if classify(error) == "io":
                drop_lost_connection(self._using)
            gauges = []
        readable = _gauge("runstore_database_readable")
        readable.add_metric([], float(bool(gauges)))
        yield readable
        yield from gauges

    def _of_statuses(self) -> Iterator[Metric]:
        stale_before_ms = self._now_ms() - conf.current().lease.stale_after_ms
        # Two halves, because each of them then is the whole of a partial index.
        waiting, running = (
            Run.objects.using(self._using)
            .filter(half)
            .order_by()
            .values("status")
            .annotate(
                runs=Count("pk"),
                stale=Count("pk", filter=Q(heartbeat_at_ms__lt=stale_before_ms)),
                cancelling=Count("cancel_requested_at_ms"),
            )
            .values_list("status", "runs", "stale", "cancelling")
            for half in (Q(status__in=CLAIMABLE_STATUSES), Q(status=RunStatus.RUNNING))
        )
        found = list(waiting.union(running, all=True))
        numbers = {status: number for status, number, _, _ in found}
        runs = _gauge("runstore_runs", "status")
        for status in LIVE_STATUSES:
            runs.add_metric([status], numbers.get(status, 0))
        stale = _gauge("runstore_stale_runs")
        stale.add_metric([], sum(number for _, _, number, _ in found))
        cancelling = _gauge("runstore_cancel_requested_runs")
        cancelling.add_metric([], sum(number for _, _, _, number in found))
        yield from (runs, stale, cancelling)

    def _of_queues(self) -> Iterator[Metric]:
        now_ms = self._now_ms()
        queues = (
            Run.objects.using(self._using)
            .claimable(now_ms)
            .order_by()
            .values("queue")
            .annotate(runs=Count("pk"), oldest_ms=Min("available_at_ms"))
            .values_list("queue", "runs", "oldest_ms")
        )
        due = _gauge("runstore_due_runs", "queue")
        oldest = _gauge("runstore_oldest_due_seconds", "queue")
        for queue, runs, oldest_ms in queues:
            due.add_metric([queue], runs)
            oldest.add_metric([queue], (now_ms - oldest_ms) / 1000)
        yield from (due, oldest)

    def _of_supervisors(self) -> Iterator[Metric]:
        at_work = (
            SupervisorProcess.objects.using(self._using)
            .filter(pulsed_at_ms__gte=silent_before_ms(self._now_ms()))
            .order_by()
            .values("is_draining")
            .annotate(number=Count("pk"), room=Sum("capacity"))
            .values_list("is_draining", "number", "room")
        )
        found = {is_draining: (number, room) for is_draining, number, room in at_work}
        supervisors = _gauge("runstore_supervisors", "state")
        for state, is_draining in (("working", False), ("draining", True)):
            supervisors.add_metric([state], found.get(is_draining, (0, 0))[0])
        capacity = _gauge("runstore_supervisors_capacity")
        # One that drains claims nothing any more.
        capacity.add_metric([], found.get(False, (0, 0))[1])
        yield from (supervisors, capacity)

    def _now_ms(self) -> int:
        return math.floor(clock_for(self._using).now_ms())


@never_cache
@require_safe
def metrics_view(
    request: HttpRequest,  # noqa: ARG001 - every view takes it
    using: str = "default",
) -> HttpResponse:
    """
    Answer a scrape in Prometheus' text format: the global registry and the run gauges.

    Asks for no login: mount it where only the scraper gets to, or behind what lets it in.
    With ``PROMETHEUS_MULTIPROC_DIR`` the counters of all processes of this host are summed.

    Args:
        using: Database alias of the gauges.
    """
    answer = CollectorRegistry()
    if _MULTIPROCESS in os.environ:
        MultiProcessCollector(answer)  # type: ignore[no-untyped-call]  # not annotated
    else:
        answer.register(REGISTRY)
    answer.register(RunGauges(using))
    return HttpResponse(generate_latest(answer), content_type=CONTENT_TYPE_LATEST)


_GAUGES: Final = {
    "runstore_database_readable": "Whether the runs could be read for this answer.",
    "runstore_runs": "Runs that are not settled, by status.",
    "runstore_stale_runs": "Running runs whose owner has not beaten for the stale-after time.",
    "runstore_cancel_requested_runs": "Runs that were asked to stop and are not settled.",
    "runstore_due_runs": "Runs that could be claimed now, by queue.",
    "runstore_oldest_due_seconds": "How long the longest due run of a queue has waited.",
    "runstore_supervisors": "Supervisors that have lately said that they are there.",
    "runstore_supervisors_capacity": "How many runs those that do not drain execute at once.",
}


def _gauge(name: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, _GAUGES[name], labels=labels)
