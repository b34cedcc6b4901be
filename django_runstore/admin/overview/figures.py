"""The figures of the overview: four statements, each answered by an index, no counter table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from django.db.models import Count, F, QuerySet

from django_runstore.admin.attention import CONCERNS, Concern
from django_runstore.clocks import clock_for
from django_runstore.db.capped_counts import capped_counts
from django_runstore.db.waiting_queues import WaitingQueue, waiting_queues
from django_runstore.models import Run, SupervisorProcess
from django_runstore.states import LIVE_STATUSES, RunStatus
from django_runstore.supervision.presence import silent_before_ms

HOURS: Final = 24
HOUR_MS: Final = 3_600_000
MOST_COUNTED: Final = 10_000
MOST_SUPERVISORS: Final = 50

_SUPERVISORS: Final = f"""
SELECT supervisor.*, COALESCE(held.runs, 0) AS runs
  FROM runstore_supervisor AS supervisor
  LEFT JOIN (
    SELECT owner_host_id, owner_pid, owner_nonce, COUNT(*) AS runs
      FROM runstore_run WHERE status = 'running'
     GROUP BY owner_host_id, owner_pid, owner_nonce
  ) AS held ON held.owner_host_id = supervisor.host_id
           AND held.owner_pid = supervisor.pid AND held.owner_nonce = supervisor.nonce
 ORDER BY supervisor.pulsed_at_ms DESC LIMIT {MOST_SUPERVISORS}
"""  # noqa: S608 - nothing but a constant


class Hour(NamedTuple):
    """What was settled in one hour."""

    begins_at_ms: int
    completed: int = 0
    failed: int = 0
    cancelled: int = 0


class SupervisorLine(NamedTuple):
    """One supervisor as the overview shows it."""

    row: SupervisorProcess
    runs: int
    queues: list[str] | None
    is_silent: bool


@dataclass(frozen=True, slots=True)
class Figures:
    """
    All of the page.

    Attributes:
        now_ms: By the clock that stamps the rows.
        live: Runs per status that is not settled; ``MOST_COUNTED`` is that many and more.
        concerns: What needs a look, and how many runs do.
        hours: The last ``HOURS`` hours, the current one last.
        queues: Those with something to claim.
        supervisors: Those that have said that they are there, the last one first.
    """

    now_ms: int
    live: Mapping[RunStatus, int]
    concerns: list[tuple[Concern, int]]
    hours: list[Hour]
    queues: list[WaitingQueue]
    supervisors: list[SupervisorLine]


def read_figures(runs: QuerySet[Run]) -> Figures:
    """
    Read the figures.

    Args:
        runs: Those that the reader may see; queues and supervisors are those of all.
    """
    using = runs.db
    now_ms = int(clock_for(using).now_ms())
    counted: dict[str, QuerySet[Run]] = {
        status.value: runs.filter(status=status) for status in LIVE_STATUSES
    }
    counted |= {each.name: runs.filter(each.condition(now_ms)) for each in CONCERNS}
    counts = capped_counts(using, counted, MOST_COUNTED)
    return Figures(
        now_ms=now_ms,
        live={status: counts[status.value] for status in LIVE_STATUSES},
        concerns=[(each, counts[each.name]) for each in CONCERNS],
        hours=_settled_per_hour(runs, now_ms),
        queues=waiting_queues(using, now_ms),
        supervisors=_supervisors(using, now_ms),
    )


def _settled_per_hour(runs: QuerySet[Run], now_ms: int) -> list[Hour]:
    begins_at_ms = (now_ms // HOUR_MS - HOURS + 1) * HOUR_MS
    rows = (
        runs.filter(finished_at_ms__gte=begins_at_ms)
        .order_by()
        .values("status", hour=(F("finished_at_ms") - begins_at_ms) / HOUR_MS)
        .annotate(settled=Count("*"))
    )
    found: list[dict[str, int]] = [{} for _ in range(HOURS)]
    for row in rows:
        # A clock that leads may have stamped the hour to come; it belongs to the current one.
        hour = found[min(row["hour"], HOURS - 1)]
        hour[row["status"]] = hour.get(row["status"], 0) + row["settled"]
    return [
        Hour(
            begins_at_ms + number * HOUR_MS,
            completed=hour.get(RunStatus.COMPLETED, 0),
            failed=hour.get(RunStatus.FAILED, 0),
            cancelled=hour.get(RunStatus.CANCELLED, 0),
        )
        for number, hour in enumerate(found)
    ]


def _supervisors(using: str, now_ms: int) -> list[SupervisorLine]:
    silent_before = silent_before_ms(now_ms)
    rows: Any = SupervisorProcess.objects.using(using).raw(_SUPERVISORS)
    return [
        SupervisorLine(row, row.runs, row.queues, row.pulsed_at_ms < silent_before) for row in rows
    ]
