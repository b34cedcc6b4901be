"""Whether runs are being looked after, as supervisors and queues tell."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from django_runstore.clocks import clock_for
from django_runstore.db.waiting_queues import WaitingQueue, waiting_queues
from django_runstore.models import SupervisorProcess
from django_runstore.supervision.presence import silent_before_ms

if TYPE_CHECKING:
    from collections.abc import Sequence


class Health(IntEnum):
    """A verdict; also the exit status of ``runstore_health``. The worst one counts."""

    HEALTHY = 0
    """Supervisors are at work."""

    NO_SUPERVISOR = 3
    """None is at work: each is silent or draining, or there is none."""

    WAITING_TOO_LONG = 4
    """A run could have been claimed for longer than was allowed."""

    POLLING_ONLY = 5
    """A supervisor at work is told nothing by the database: runs wait for its next poll."""


@dataclass(frozen=True, slots=True)
class SupervisorHealth:
    """
    One supervisor, by its own account.

    Attributes:
        pulsed_ago_ms: How long ago it last said that it keeps its leases.
        is_silent: Whether that is too long ago for one that is at work.
        hears_notices: None where notices are not used.
    """

    name: str
    pulsed_ago_ms: int
    is_silent: bool
    is_draining: bool
    hears_notices: bool | None

    @property
    def is_at_work(self) -> bool:
        """Whether it can be expected to claim."""
        return not self.is_silent and not self.is_draining


@dataclass(frozen=True, slots=True)
class QueueHealth:
    """A queue with something to claim, how much, and for how long the oldest has waited."""

    name: str
    due: int
    oldest_waits_ms: int


@dataclass(frozen=True, slots=True)
class HealthReport:
    """What ``runstore_health`` found."""

    health: Health
    supervisors: Sequence[SupervisorHealth]
    queues: Sequence[QueueHealth]

    def as_json(self) -> dict[str, Any]:
        """Give what can be written as JSON; keys are only ever added."""
        return {
            "status": self.health.name.lower(),
            "supervisors": [
                {**asdict(each), "is_at_work": each.is_at_work} for each in self.supervisors
            ],
            "queues": [asdict(each) for each in self.queues],
        }


def examine(using: str = "default", *, longest_wait_ms: float = math.inf) -> HealthReport:
    """
    Judge by the rows of the supervisors and the runs that could be claimed now.

    Args:
        longest_wait_ms: How long a run may have been claimable.

    Raises:
        django.db.Error, OSError: the database is away.
    """
    now_ms = int(clock_for(using).now_ms())
    silent_before = silent_before_ms(now_ms)
    supervisors = [
        SupervisorHealth(
            name=row.owner.describe(),
            pulsed_ago_ms=max(0, now_ms - row.pulsed_at_ms),
            is_silent=row.pulsed_at_ms < silent_before,
            is_draining=row.is_draining,
            hears_notices=row.hears_notices,
        )
        for row in SupervisorProcess.objects.using(using).order_by("-pulsed_at_ms", "pk")
    ]
    queues = [_queue(queue, now_ms) for queue in waiting_queues(using, now_ms)]
    return HealthReport(_judge(supervisors, queues, longest_wait_ms), supervisors, queues)


def _queue(queue: WaitingQueue, now_ms: int) -> QueueHealth:
    return QueueHealth(queue.name, queue.due, max(0, now_ms - queue.since_ms))


def _judge(
    supervisors: Sequence[SupervisorHealth],
    queues: Sequence[QueueHealth],
    longest_wait_ms: float,
) -> Health:
    at_work = [each for each in supervisors if each.is_at_work]
    if not at_work:
        return Health.NO_SUPERVISOR
    if any(queue.oldest_waits_ms > longest_wait_ms for queue in queues):
        return Health.WAITING_TOO_LONG
    if any(each.hears_notices is False for each in at_work):
        return Health.POLLING_ONLY
    return Health.HEALTHY
