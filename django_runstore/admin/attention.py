"""
What in the runs needs a person, as conditions that small indexes answer.

One list for the filter, the overview and the documentation. Nothing here is evidence.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.db.models import Q
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from django_runstore import conf
from django_runstore.states import LIVE_STATUSES, RunStatus

CRASH_LOOP: Final = 2
"""Workers or hosts that were lost since a run last advanced, from which on it is in a loop."""

_RUNNING: Final = Q(status=RunStatus.RUNNING)
_LIVE: Final = Q(status__in=LIVE_STATUSES)


@dataclass(frozen=True, slots=True)
class Concern:
    """
    A reason to look at runs.

    Attributes:
        name: In URLs.
        label: In the list of filters and on the overview.
        help: What it means and what becomes of it.
        condition: The runs, given the time of the store's clock.
    """

    name: str
    label: Promise
    help: Promise
    condition: Callable[[int], Q]


def _silent(now_ms: int) -> Q:
    return _RUNNING & Q(heartbeat_at_ms__lt=now_ms - conf.current().lease.stale_after_ms)


def _not_advancing(now_ms: int) -> Q:
    stale_after_ms = conf.current().lease.stale_after_ms
    return (
        _RUNNING
        & Q(heartbeat_at_ms__gte=now_ms - stale_after_ms)
        & _advanced_before(now_ms - conf.current().admin_quiet_after_ms)
    )


def _advanced_before(moment_ms: int) -> Q:
    return Q(progressed_at_ms__lt=moment_ms) | Q(
        progressed_at_ms__isnull=True, started_at_ms__lt=moment_ms
    )


def _crash_looping(_now_ms: int) -> Q:
    return _LIVE & Q(recovery_count__gt=0, recovery_count__gte=CRASH_LOOP)


def _parked(_now_ms: int) -> Q:
    return _LIVE & Q(waiting_reason__isnull=False, waiting_wake_at_ms__isnull=True)


def _stranded_claim(now_ms: int) -> Q:
    stale_after_ms = conf.current().lease.stale_after_ms
    return Q(claim_host_id__isnull=False, claimed_at_ms__lt=now_ms - stale_after_ms)


def _not_stopping(now_ms: int) -> Q:
    found = conf.current()
    patience_ms = found.lease.stale_after_ms + found.stop_grace_ms
    return _LIVE & Q(cancel_requested_at_ms__lt=now_ms - patience_ms)


CONCERNS: Final = (
    Concern(
        "silent",
        _("silent owner"),
        _(
            "Running, and the owner has not been heard of for longer than its lease. The run is "
            "taken over as soon as there is evidence that the owner is gone."
        ),
        _silent,
    ),
    Concern(
        "quiet",
        _("no progress"),
        _("Running, and the owner is alive, but the work has not advanced for a long time."),
        _not_advancing,
    ),
    Concern(
        "crashing",
        _("losing workers"),
        _("Lost its worker or its host again and again since it last advanced."),
        _crash_looping,
    ),
    Concern(
        "parked",
        _("parked"),
        _("Waits for somebody or something, without a time at which it goes on by itself."),
        _parked,
    ),
    Concern(
        "claimed",
        _("claimed, not begun"),
        _("Somebody reserved it and has not begun. The claim is cleared once there is evidence."),
        _stranded_claim,
    ),
    Concern(
        "stopping",
        _("asked to stop, goes on"),
        _("Asked to stop a while ago and still not settled."),
        _not_stopping,
    ),
)
