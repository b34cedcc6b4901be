"""What a supervisor reads about the rows it owns, over its own connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_runstore import conf
from django_runstore.db.lock_wait import bounded_lock_wait
from django_runstore.models import Run
from django_runstore.states import RunStatus

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from django_runstore.owners import OwnerId


def cancel_requests(using: str, run_ids: Iterable[str]) -> frozenset[str]:
    """Tell which of these runs somebody has asked to cancel."""
    runs = Run.objects.using(using).filter(
        pk__in=list(run_ids), cancel_requested_at_ms__isnull=False
    )
    with bounded_lock_wait(using, conf.current().lease.heartbeat_interval_ms):
        return frozenset(runs.values_list("pk", flat=True))


def progressed_at_ms(using: str, run_ids: Iterable[str]) -> dict[str, int | None]:
    """Tell when each of these runs last advanced, by the store's clock; None for not yet."""
    runs = Run.objects.using(using).filter(pk__in=list(run_ids))
    return dict(runs.values_list("pk", "progressed_at_ms"))


def strays(using: str, owner: OwnerId, known: Container[tuple[str, int]]) -> list[tuple[str, int]]:
    """
    List the runs that are in this owner's name and that it does not know of.

    The answer to a claim can be lost after the commit. Nobody else would ever take such a
    run over, since its owner is alive.

    Returns:
        Pairs of run id and fence.
    """
    owned = Run.objects.using(using).filter(
        status=RunStatus.RUNNING,
        owner_host_id=owner.host_id,
        owner_pid=owner.pid,
        owner_nonce=owner.nonce,
    )
    with bounded_lock_wait(using, conf.current().lease.heartbeat_interval_ms):
        pairs = list(owned.values_list("pk", "owner_fence"))
    return [
        (run_id, fence)
        for run_id, fence in pairs
        if fence is not None and (run_id, fence) not in known
    ]
