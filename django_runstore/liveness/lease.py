"""Liveness by the lease alone: an owner works as long as its stamp is fresh."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_runstore import conf
from django_runstore.durations import STALE_AFTER_MS, LeaseDurations

if TYPE_CHECKING:
    from django_runstore.liveness.contract import LivenessCheck, LivenessContext
    from django_runstore.owners import OwnerId


def lease_liveness(stale_after_ms: int = STALE_AFTER_MS) -> LivenessCheck:
    """
    Make a check that calls an owner alive until its stamp is older than ``stale_after_ms``.

    A row without a stamp has no living owner. Spec: run-store 7.2.
    """
    durations = LeaseDurations(stale_after_ms=stale_after_ms)

    def is_alive(expected_owner: OwnerId, context: LivenessContext, /) -> bool:  # noqa: ARG001 - the shape of a check
        stamp_ms = context.heartbeat_at_ms
        return stamp_ms is not None and not durations.is_stale(stamp_ms, context.now_ms)

    return is_alive


def unexpired_lease(expected_owner: OwnerId, context: LivenessContext, /) -> bool:
    """
    Call an owner alive until its stamp is older than the configured stale-after.

    ``lease_liveness`` with the settings in force, for naming in ``RUNSTORE["LIVENESS"]``.
    """
    return lease_liveness(conf.current().lease.stale_after_ms)(expected_owner, context)
