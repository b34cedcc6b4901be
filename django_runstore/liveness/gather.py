"""Gathering the evidence that a takeover needs, or finding that there is none."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final

from django.utils.module_loading import import_string

from django_runstore import conf
from django_runstore.clocks import takeovers_blocked
from django_runstore.evidence import EvidenceKind, LivenessEvidence
from django_runstore.liveness.contract import ExaminingCheck, LivenessContext, LivenessVerdict
from django_runstore.owners import same_host_incarnation
from django_runstore.states import RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django_runstore.clocks import Clock
    from django_runstore.liveness.contract import Observed
    from django_runstore.owners import OwnerId
    from django_runstore.snapshots import RunRow

logger = logging.getLogger(__name__)

_MOST_OBSERVED_PAIRS: Final = 16
_MOST_OBSERVED_CHARACTERS: Final = 60
_GREATEST_SAFE_INTEGER: Final = 2**53 - 1


def gather_evidence(row: RunRow, observer: OwnerId, clock: Clock) -> LivenessEvidence | None:
    """
    Look whether the owner of a running row is gone.

    Args:
        row: The run as it was read; pass it on to ``steal()`` or ``claim_and_own()``.
        observer: Who would take the run over.
        clock: The store's clock.

    Returns:
        Evidence dated at this reading of the clock; pass its ``checked_at_ms`` as
        ``now_ms``. None when the stamp is not stale, when any check calls the owner alive
        or fails, or while the clock asks for no takeovers.
    """
    if row.status != RunStatus.RUNNING:
        return None
    return evidence_against(row.owner, row.heartbeat_at_ms, observer, clock)


def gather_claim_evidence(row: RunRow, observer: OwnerId, clock: Clock) -> LivenessEvidence | None:
    """
    Look whether the holder of a pending claim is gone, for ``recover_claim()``.

    The same as ``gather_evidence()``, with the time of the claim for a heartbeat.
    """
    return evidence_against(row.claim, row.claimed_at_ms, observer, clock)


def evidence_against(
    holder: OwnerId | None, stamp_ms: int | None, observer: OwnerId, clock: Clock
) -> LivenessEvidence | None:
    """
    Look whether an owner or claimant with this stamp is gone.

    What the two above come down to, for callers that have read no whole row.
    """
    if holder is None or stamp_ms is None:
        return None
    # Read before asking about jumps: reading is what discovers one.
    now_ms = math.floor(clock.now_ms())
    if takeovers_blocked(clock) or not conf.current().lease.is_stale(stamp_ms, now_ms):
        return None
    context = LivenessContext(observer, stamp_ms, now_ms)
    verdicts: list[LivenessVerdict] = []
    for path in conf.current().liveness:
        verdict = _examine(path, holder, context)
        if verdict.is_alive:
            return None
        verdicts.append(verdict)
    return LivenessEvidence(
        expected_owner=holder,
        checked_at_ms=now_ms,
        kind=_kind(holder, observer, verdicts),
        observed=_bounded(verdicts, {"age_ms": now_ms - stamp_ms}),
    )


def _examine(path: str, holder: OwnerId, context: LivenessContext) -> LivenessVerdict:
    try:
        check = import_string(path)
        if isinstance(check, ExaminingCheck):
            return check.examine(holder, context)
        # Only a plain False is death; a check that forgot to answer has not seen any.
        return LivenessVerdict(is_alive=check(holder, context) is not False)
    except Exception as error:  # noqa: BLE001 - whatever breaks in a check is no proof of death
        logger.warning(
            "liveness check failed; owner counts as alive",
            extra={"check": path, "owner": holder.describe(), "error": type(error).__name__},
        )
        return LivenessVerdict(is_alive=True)


def _kind(holder: OwnerId, observer: OwnerId, verdicts: Iterable[LivenessVerdict]) -> EvidenceKind:
    if not same_host_incarnation(holder, observer):
        return EvidenceKind.CROSS_HOST_UNREACHABLE_STALE
    if any(verdict.process_is_gone for verdict in verdicts):
        return EvidenceKind.SAME_HOST_PID_DEAD
    # Same host, but no configured check looks for processes: the lease is all there is.
    return EvidenceKind.LEASE_EXPIRED


def _bounded(verdicts: Iterable[LivenessVerdict], ours: Observed) -> Observed:
    """Keep what the ownership fact has room for; checks of a project may report anything."""
    kept: dict[str, str | int | bool] = {}
    for observed in (ours, *(verdict.observed for verdict in verdicts)):
        for key, value in observed.items():
            if len(kept) == _MOST_OBSERVED_PAIRS:
                return kept
            if not _plain(key):
                continue
            if isinstance(value, str):
                kept.setdefault(_plain(key), _plain(value))
            elif _is_safe_integer(value):
                kept.setdefault(_plain(key), value)
    return kept


def _is_safe_integer(value: object) -> bool:
    return isinstance(value, int) and abs(value) <= _GREATEST_SAFE_INTEGER


def _plain(text: object) -> str:
    """Cut to a length and an alphabet that keep sixteen pairs far below two kilobytes."""
    shown = str(text)[:_MOST_OBSERVED_CHARACTERS].encode("ascii", "replace").decode("ascii")
    return "".join(character if character.isprintable() else "?" for character in shown)
