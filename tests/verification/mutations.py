"""Mistakes that the services could make, each to be found by the machine."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

from django_runstore.arbiters import rules
from django_runstore.arbiters.lease import AskRenew, Decision, Granted
from django_runstore.db import pulse_statements
from django_runstore.durations import LeaseDurations
from django_runstore.evidence import matches_evidence
from django_runstore.models import Run
from django_runstore.outcomes import SnapshotChanged
from django_runstore.services import (
    arguments,
    attempt_store,
    batches,
    cancelling,
    claiming,
    core,
    leasing,
    settling,
    taking_over,
)
from django_runstore.services.core import classify_claim_loss
from django_runstore.services.journal.core import JournalCore
from django_runstore.services.locked_run import LockedRun
from django_runstore.snapshots import TransitionGuard
from django_runstore.states import CLAIMABLE_STATUSES, RunStatus

Mutation = Callable[[], AbstractContextManager[Any]]


def replaced(*targets: tuple[Any, str], by: Any) -> Mutation:
    """Put one thing in the place of others."""

    @contextmanager
    def mutation():
        with ExitStack() as stack:
            for owner, name in targets:
                stack.enter_context(mock.patch.object(owner, name, by))
            yield

    return mutation


def same_owner(row: LockedRun, owner: Any, _fence: Any) -> bool:
    return row.status == RunStatus.RUNNING and row.owner == owner


@contextmanager
def owners_are_known_by_identity_alone():
    with (
        mock.patch.object(LockedRun, "is_owned_by", same_owner),
        mock.patch.object(rules, "_is_owner", lambda lease, owner, _: lease.owner == owner),
    ):
        yield


def same_grant_again(lease, claimant, now_ms):
    granted = replace(lease, claim=claimant, claimed_at_ms=now_ms, fence=max(lease.fence, 1))
    return Decision(Granted(now_ms, granted.fence), granted)


def fresh_is_stale(row, now_ms):
    loss = classify_claim_loss(row, now_ms)
    return SnapshotChanged() if loss.code == "heartbeat_fresh" else loss


def evidence_of_any_moment(expected, observer, now_ms, evidence):
    return matches_evidence(expected, observer, now_ms, replace(evidence, checked_at_ms=now_ms))


def moves_back(lease, request):
    decision = RENEW(lease, request)
    if not isinstance(decision.answer, Granted):
        return decision
    return Decision(
        Granted(request.now_ms, lease.fence),
        replace(decision.lease, heartbeat_at_ms=request.now_ms),
    )


@contextmanager
def a_heartbeat_moves_back():
    # Kept twice, by the rules of the lease and by the store.
    with (
        mock.patch.object(rules, "_renew", moves_back),
        mock.patch.object(leasing, "max", lambda _first, second: second, create=True),
    ):
        yield


def keeps_the_claim(self, row, owner, move, now_ms):
    columns = GIVE_UP(self, row, owner, move, now_ms)
    return {name: value for name, value in columns.items() if not name.startswith("claim")}


def forgets_releases(using, rows, emitted_at_ms):
    kept = [
        (run_id, seq, [fact for fact in facts if fact.transition != "released"])
        for run_id, seq, facts in rows
    ]
    APPEND(using, kept, emitted_at_ms)


def any_time_is_due(self, queues, readable, now_ms):
    return DUE(self, queues, readable, now_ms + 1_000_000)


def beats_under_any_fence(using, owner, runs, now_ms):
    present = dict(Run.objects.filter(pk__in=dict(runs)).values_list("run_id", "owner_fence"))
    pairs = [(run_id, present.get(run_id) or fence) for run_id, fence in runs]
    return BEAT_MANY(using, owner, pairs, now_ms)


def reconfirms_over_a_claim(lease, request: AskRenew):
    return RENEW(lease, replace(request, unclaimed=False))


def finds_what_was_asked_too(runs):
    return runs.filter(status__in=["pending", "running", "suspended"])


RENEW = rules._renew
BEAT_MANY = pulse_statements.beat_many
GIVE_UP = settling.Settling._giving_up
APPEND = core.append_facts
DUE = batches.Batches._due

MUTATIONS: dict[str, Mutation] = {
    "a snapshot is not compared": replaced((LockedRun, "matches"), by=lambda *_: True),
    "a fence is not compared": owners_are_known_by_identity_alone,
    "a claim's time and fence are not compared": replaced(
        (LockedRun, "matches_claim"), by=lambda row, claimant, *_: row.claim == claimant
    ),
    "a grant has the number of the one before": replaced(
        (rules, "_grant_claim"), by=same_grant_again
    ),
    "a fresh owner is taken for stale": replaced(
        (claiming, "classify_claim_loss"), (taking_over, "classify_claim_loss"), by=fresh_is_stale
    ),
    "exactly stale is taken for stale": replaced(
        (LeaseDurations, "is_stale"),
        by=lambda self, stamp_ms, now_ms: stamp_ms <= now_ms - self.stale_after_ms,
    ),
    "evidence of another moment is believed": replaced(
        (claiming, "matches_evidence"),
        (taking_over, "matches_evidence"),
        (rules, "matches_evidence"),
        by=evidence_of_any_moment,
    ),
    "a group heartbeat does not compare fences": replaced(
        (pulse_statements, "beat_many"), by=beats_under_any_fence
    ),
    "a heartbeat moves back": a_heartbeat_moves_back,
    "a reconfirmation ignores a claim": replaced((rules, "_renew"), by=reconfirms_over_a_claim),
    "giving up keeps a thief's claim": replaced(
        (settling.Settling, "_giving_up"), by=keeps_the_claim
    ),
    "a release leaves no fact": replaced((core, "append_facts"), by=forgets_releases),
    "a guard is not looked at": replaced((arguments, "guard"), by=lambda *_: TransitionGuard()),
    "a settled run can be claimed": replaced(
        (claiming, "CLAIMABLE_STATUSES"),
        (batches, "CLAIMABLE_STATUSES"),
        by=frozenset({*CLAIMABLE_STATUSES, "completed", "failed", "cancelled"}),
    ),
    "a run is claimed before it is due": replaced((batches.Batches, "_due"), by=any_time_is_due),
    "a second request overwrites the first": replaced(
        (cancelling, "_unasked"), by=finds_what_was_asked_too
    ),
    "a second acknowledgement overwrites the first": replaced(
        (cancelling, "Coalesce"), by=lambda _first, second: second
    ),
    "a reading may lie as far ahead as it likes": replaced(
        (arguments, "within_skew"), by=lambda _operation, now_ms, *_: now_ms
    ),
    "an event is appended without the fence": replaced(
        (JournalCore, "_fenced"), by=lambda self, _operation, run_id, *_: self._lock(run_id)
    ),
    "true is taken for 1": replaced(
        (attempt_store, "same_content"), by=lambda first, second: first == second
    ),
    "fractions are rounded up": replaced(
        (core, "math"), by=SimpleNamespace(floor=math.ceil, isfinite=math.isfinite)
    ),
}
