"""Arbiters that each break one rule, by the test of the suite that has to catch it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.db import connection

from django_runstore.arbiters import Lease
from django_runstore.arbiters.lease import (
    AskActivate,
    AskClaim,
    AskGuard,
    AskRecover,
    AskRelease,
    AskRenew,
    AskSteal,
    Decision,
    Granted,
    Refused,
)
from django_runstore.arbiters.rules import decide

Rules = Callable[[Lease, Any, int], Decision]

CAUGHT: dict[str, Rules] = {}
MEMORY: dict[str, type] = {}


def caught_by(*tests: str) -> Callable[[Rules], Rules]:
    def enlist(rules: Rules) -> Rules:
        CAUGHT.update(dict.fromkeys(tests, rules))
        return rules

    return enlist


class Arbiter:
    """Decide by other rules, from the row alone."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def decide(self, _run_id, row_lease, request, *, stale_after_ms):
        return self._rules(row_lease, request, stale_after_ms)


def right(lease: Lease, request: Any, stale_after_ms: int) -> Decision:
    return decide(lease, request, stale_after_ms=stale_after_ms)


def changed(decision: Decision, **fields: Any) -> Decision:
    """The same answer, with another lease."""
    return replace(decision, lease=replace(decision.lease, **fields))


@caught_by("test_a_free_run_is_claimed_at_the_callers_reading")
def grants_at_another_time(lease, request, stale):
    if isinstance(request, AskClaim):
        request = replace(request, now_ms=request.now_ms + 1)
    return right(lease, request, stale)


@caught_by("test_a_claim_keeps_every_other_one_out")
def lets_a_claim_be_replaced(lease, request, stale):
    if isinstance(request, AskClaim):
        lease = replace(lease, claim=None, claimed_at_ms=None)
    return right(lease, request, stale)


@caught_by("test_an_owner_keeps_claims_out_however_stale")
def claims_what_is_owned(lease, request, stale):
    if isinstance(request, AskClaim):
        lease = replace(lease, owner=None)
    return right(lease, request, stale)


@caught_by("test_a_claim_becomes_ownership")
def keeps_the_claim_after_activation(lease, request, stale):
    decision = right(lease, request, stale)
    if isinstance(request, AskActivate) and isinstance(decision.answer, Granted):
        return changed(decision, claim=lease.claim, claimed_at_ms=lease.claimed_at_ms)
    return decision


@caught_by("test_only_the_claimant_activates")
def activates_for_anybody(lease, request, stale):
    if isinstance(request, AskActivate) and lease.claim is not None:
        request = replace(request, owner=lease.claim)
    return right(lease, request, stale)


@caught_by("test_only_the_exact_grant_time_activates")
def activates_with_any_token(lease, request, stale):
    if isinstance(request, AskActivate) and lease.claimed_at_ms is not None:
        request = replace(request, granted_at_ms=lease.claimed_at_ms)
    return right(lease, request, stale)


@caught_by("test_a_grant_is_spent_once")
def activates_again(lease, request, stale):
    if isinstance(request, AskActivate) and lease.owner == request.owner:
        return Decision(Granted(request.now_ms, lease.fence), lease)
    return right(lease, request, stale)


@caught_by("test_a_heartbeat_moves_forward_only")
def moves_a_heartbeat_back(lease, request, stale):
    decision = right(lease, request, stale)
    if isinstance(request, AskRenew) and isinstance(decision.answer, Granted):
        answer = replace(decision.answer, at_ms=request.now_ms)
        return Decision(answer, replace(decision.lease, heartbeat_at_ms=request.now_ms))
    return decision


@caught_by("test_nobody_but_the_owner_renews")
def renews_for_a_claimant(lease, request, stale):
    if isinstance(request, AskRenew) and lease.owner is None and lease.claim == request.owner:
        return Decision(Granted(request.now_ms, lease.fence), lease)
    return right(lease, request, stale)


@caught_by("test_a_heartbeat_ignores_a_thiefs_claim")
def loses_a_heartbeat_to_a_claim(lease, request, stale):
    if isinstance(request, AskRenew):
        request = replace(request, unclaimed=True)
    return right(lease, request, stale)


@caught_by("test_a_reconfirmation_renews_a_stale_lease_that_nobody_claimed")
def loses_a_reconfirmation_to_staleness(lease, request, stale):
    if isinstance(request, AskRenew) and (lease.heartbeat_at_ms or 0) < request.now_ms - stale:
        return Decision(Refused("not_owner"), lease)
    return right(lease, request, stale)


@caught_by("test_a_reconfirmation_is_lost_to_a_thief")
def reconfirms_over_a_claim(lease, request, stale):
    if isinstance(request, AskRenew):
        request = replace(request, unclaimed=False)
    return right(lease, request, stale)


@caught_by("test_a_strangers_release_changes_nothing")
def releases_for_anybody(lease, request, stale):
    if isinstance(request, AskRelease):
        return Decision(Granted(None, lease.fence), Lease(fence=lease.fence))
    return right(lease, request, stale)


@caught_by("test_an_owners_release_frees_the_run")
def keeps_the_grant_of_a_released_run(lease, request, stale):
    decision = right(lease, request, stale)
    return changed(decision, owner_fence=lease.owner_fence or decision.lease.owner_fence)


@caught_by("test_a_claimants_release_leaves_the_owner")
def releases_the_owner_with_the_claim(lease, request, stale):
    if isinstance(request, AskRelease) and request.owner in (lease.claim, lease.owner):
        return Decision(Granted(None, lease.fence), Lease(fence=lease.fence))
    return right(lease, request, stale)


@caught_by("test_who_releases_its_claim_alone_keeps_what_it_owns")
def releases_both_where_one_was_meant(lease, request, stale):
    if isinstance(request, AskRelease):
        request = replace(request, claim_only=False)
    return right(lease, request, stale)


@caught_by("test_a_fresh_owner_is_not_stolen_from")
def takes_exactly_stale_for_stale(lease, request, stale):
    return right(lease, request, stale - 1 if isinstance(request, AskSteal) else stale)


@caught_by("test_the_configured_stale_after_is_the_one_that_counts")
def has_a_stale_after_of_its_own(lease, request, _stale):
    return right(lease, request, 30_000)


@caught_by("test_a_steal_needs_evidence_of_the_owner_it_displaces")
def takes_evidence_of_anybody(lease, request, stale):
    if isinstance(request, AskSteal) and lease.owner is not None:
        evidence = replace(request.evidence, expected_owner=lease.owner)
        request = replace(request, evidence=evidence)
    return right(lease, request, stale)


@caught_by(
    "test_a_steal_needs_evidence_of_this_very_moment",
    "test_a_recovery_needs_evidence_of_this_very_moment",
)
def takes_evidence_of_any_moment(lease, request, stale):
    if isinstance(request, AskSteal | AskRecover):
        evidence = replace(request.evidence, checked_at_ms=request.now_ms)
        request = replace(request, evidence=evidence)
    return right(lease, request, stale)


@caught_by("test_a_steal_needs_evidence_that_the_thief_can_have")
def takes_every_kind_from_anybody(lease, request, stale):
    if isinstance(request, AskSteal):
        request = replace(request, evidence=replace(request.evidence, kind="lease-expired"))
    return right(lease, request, stale)


@caught_by("test_a_stale_owner_is_stolen_from_on_every_kind_of_evidence")
def knows_no_expired_lease_from_another_host(lease, request, stale):
    if (
        isinstance(request, AskSteal)
        and request.evidence.kind == "lease-expired"
        and request.claimant.host_id != request.evidence.expected_owner.host_id
    ):
        return Decision(Refused("evidence_invalid"), lease)
    return right(lease, request, stale)


@caught_by("test_a_run_is_stolen_once")
def steals_from_a_thief(lease, request, stale):
    if isinstance(request, AskSteal):
        lease = replace(lease, claim=None, claimed_at_ms=None)
    return right(lease, request, stale)


@caught_by("test_a_steal_leaves_the_owner_in_place_until_it_is_activated")
def displaces_at_the_steal(lease, request, stale):
    decision = right(lease, request, stale)
    if isinstance(request, AskSteal) and isinstance(decision.answer, Granted):
        return changed(decision, owner_fence=decision.lease.fence)
    return decision


@caught_by("test_a_recovery_names_the_claim_it_clears")
def recovers_whatever_is_claimed(lease, request, stale):
    if isinstance(request, AskRecover) and lease.claim is not None:
        evidence = replace(request.evidence, expected_owner=lease.claim)
        request = replace(request, stale_claimant=lease.claim, evidence=evidence)
    return right(lease, request, stale)


@caught_by("test_a_fresh_claim_is_not_recovered")
def takes_an_exactly_stale_claim_for_stale(lease, request, stale):
    return right(lease, request, stale - 1 if isinstance(request, AskRecover) else stale)


@caught_by("test_a_recovered_run_is_free")
def leaves_a_recovered_claim(lease, request, stale):
    decision = right(lease, request, stale)
    return Decision(decision.answer, lease) if isinstance(request, AskRecover) else decision


@caught_by("test_a_recovered_steal_leaves_the_owner")
def recovers_the_owner_too(lease, request, stale):
    decision = right(lease, request, stale)
    if isinstance(request, AskRecover) and isinstance(decision.answer, Granted):
        return changed(decision, owner=None, heartbeat_at_ms=None, owner_fence=None)
    return decision


@caught_by("test_the_guard_asks_for_the_owner_and_for_nothing_else")
def guards_for_a_thief(lease, request, stale):
    if isinstance(request, AskGuard) and request.owner == lease.claim:
        return Decision(Granted(None, lease.fence), lease)
    return right(lease, request, stale)


@caught_by("test_a_given_fence_must_be_the_owners", "test_a_given_fence_must_be_the_claims")
def knows_an_execution_by_its_owner_alone(lease, request, stale):
    if hasattr(request, "fence"):
        request = replace(request, fence=None)
    return right(lease, request, stale)


@caught_by("test_fences_rise_with_every_grant_and_are_never_handed_out_again")
def hands_a_fence_out_again(lease, request, stale):
    decision = right(lease, request, stale)
    return changed(decision, fence=0) if isinstance(request, AskRelease) else decision


@caught_by("test_it_decides_without_a_database")
def asks_the_database(lease, request, stale):
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return right(lease, request, stale)


class Forgetful:
    """Remembers leases, but not what the row knows of earlier grants."""

    def __init__(self):
        self._leases = {}

    def decide(self, run_id, _row_lease, request, *, stale_after_ms):
        decision = right(self._leases.get(run_id, Lease()), request, stale_after_ms)
        self._leases[run_id] = decision.lease
        return decision


class OneForAll:
    """Remembers one lease, whichever run it is asked about."""

    def __init__(self):
        self._lease = Lease()

    def decide(self, _run_id, row_lease, request, *, stale_after_ms):
        lease = replace(self._lease, fence=max(self._lease.fence, row_lease.fence))
        decision = right(lease, request, stale_after_ms)
        self._lease = decision.lease
        return decision


MEMORY["test_a_fence_that_only_the_row_remembers_is_not_handed_out_again"] = Forgetful
MEMORY["test_each_run_has_a_lease_of_its_own"] = OneForAll
