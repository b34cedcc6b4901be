"""What a runner waits for, and the clock that a test turns on to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db.models import Min

from django_runstore import conf
from django_runstore.handlers import registry
from django_runstore.models import Run
from django_runstore.states import CLAIMABLE_STATUSES, RunStatus
from django_runstore.testing.clocks import FakeClock, SkewedClock

if TYPE_CHECKING:
    from django_runstore.clocks import Clock

OWNER_HOSTS: Final = ".runner.invalid"
"""How the hosts of runners end; RFC 2606 keeps the name from being anybody's."""


def next_event_ms(using: str, now_ms: int) -> int | None:
    """
    Tell when something becomes due that is not: a run with a handler here, or a silent runner.

    Returns:
        Milliseconds since the Unix epoch, after ``now_ms``; None when nothing will by itself.
    """
    runs = Run.objects.using(using)
    delayed = runs.filter(
        status__in=CLAIMABLE_STATUSES,
        claim_host_id__isnull=True,
        available_at_ms__gt=now_ms,
        handler__in=registry.names(),
    ).aggregate(at_ms=Min("available_at_ms"))["at_ms"]
    # A stamp is stale once it is older than that.
    patience_ms = conf.current().lease.stale_after_ms + 1
    silent = runs.filter(
        status=RunStatus.RUNNING,
        owner_host_id__endswith=OWNER_HOSTS,
        heartbeat_at_ms__gt=now_ms - patience_ms,
    ).aggregate(at_ms=Min("heartbeat_at_ms"))["at_ms"]
    moments = [delayed, None if silent is None else silent + patience_ms]
    return min((moment for moment in moments if moment is not None), default=None)


def turnable_clock(clock: Clock) -> FakeClock:
    """
    Give the clock behind this one that a test can turn.

    Raises:
        TypeError: there is none.
    """
    while isinstance(clock, SkewedClock):
        clock = clock.clock
    if not isinstance(clock, FakeClock):
        raise TypeError("advance_clock needs a clock to turn: with use_clock(FakeClock(...)): ...")
    return clock
