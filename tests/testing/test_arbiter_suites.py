"""The public arbiter suites catch every arbiter that breaks a rule, and say which."""

from dataclasses import replace
from functools import partial

import pytest

from django_runstore.arbiters import DatabaseArbiter, Lease, LocalArbiter
from django_runstore.arbiters.lease import AskGuard, AskRelease, Decision, Granted, Refused
from django_runstore.testing.conformance import (
    ArbiterConformance,
    ArbitratedStoreConformance,
    RefusingArbiterConformance,
)
from tests.testing.suites import assert_caught_by, failures_of, names_of, run_under_unittest
from tests.testing.wrong_arbiters import CAUGHT, MEMORY, Arbiter, OneForAll, right

WRONG = {name: partial(Arbiter, rules) for name, rules in CAUGHT.items()} | MEMORY


@pytest.mark.django_db
@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_broken_rule_is_caught_by_its_test(name):
    make = WRONG[name]
    assert_caught_by(name, ArbiterConformance, make_arbiter=lambda _: make())


def test_every_test_of_the_suite_is_seen_to_fail():
    assert sorted(WRONG) == names_of(ArbiterConformance)


def test_a_refusal_that_changes_the_lease_is_caught():
    def spoils(lease, request, stale):
        decision = right(lease, request, stale)
        if isinstance(decision.answer, Refused):
            return Decision(decision.answer, Lease(fence=lease.fence + 1))
        return decision

    failures = failures_of(ArbiterConformance, make_arbiter=lambda _: Arbiter(spoils))
    assert "changes nothing" in str(failures["test_a_claim_keeps_every_other_one_out"])


def test_a_failure_names_the_rule_what_was_expected_and_what_came():
    wrong = CAUGHT["test_a_heartbeat_moves_forward_only"]
    failures = failures_of(ArbiterConformance, make_arbiter=lambda _: Arbiter(wrong))
    assert str(failures["test_a_heartbeat_moves_forward_only"]) == (
        "a late reading leaves the stamp where it is: expected [250, 250], got [250, 150]"
    )


def test_the_suite_runs_under_unittest_too():
    result = run_under_unittest(ArbiterConformance, make_arbiter=lambda _: DatabaseArbiter())
    assert result.testsRun == len(names_of(ArbiterConformance))
    assert result.wasSuccessful(), result.failures
    wrong = CAUGHT["test_a_grant_is_spent_once"]
    result = run_under_unittest(ArbiterConformance, make_arbiter=lambda _: Arbiter(wrong))
    assert len(result.failures) == 1


def test_a_suite_without_a_subject_says_what_is_missing():
    failures = failures_of(ArbiterConformance)
    assert {str(error) for error in failures.values()} == {
        "Subject must say how its arbiter is made"
    }


REFUSING = {
    "test_no_run_can_be_had": DatabaseArbiter,
    "test_no_run_can_be_kept": lambda: Arbiter(
        lambda lease, request, _: Decision(
            Granted(None, lease.fence)
            if isinstance(request, AskGuard | AskRelease)
            else Refused("unavailable"),
            lease,
        )
    ),
    "test_there_is_nothing_to_release": lambda: Arbiter(
        lambda _, request, __: Decision(
            Granted(None, 0) if isinstance(request, AskRelease) else Refused("unavailable"), Lease()
        )
    ),
}


@pytest.mark.parametrize("name", names_of(RefusingArbiterConformance))
def test_an_arbiter_that_does_not_refuse_everything_is_caught(name):
    made = REFUSING[name]
    assert_caught_by(name, RefusingArbiterConformance, make_arbiter=lambda _: made())


def grants_nothing(lease, _request, _stale):
    return Decision(Refused("unavailable"), lease)


def says_the_same_fence_each_time(lease, request, stale):
    decision = right(lease, request, stale)
    if isinstance(decision.answer, Granted):
        return Decision(replace(decision.answer, fence=1), decision.lease)
    return decision


def guards_nobody(lease, request, stale):
    if isinstance(request, AskGuard):
        return Decision(Refused("not_owner"), lease)
    return right(lease, request, stale)


class ReleasesBoth(LocalArbiter):
    """Whoever gives its claim back gives up what it owns as well."""

    def decide(self, run_id, row_lease, request, *, stale_after_ms):
        if isinstance(request, AskRelease):
            request = replace(request, claim_only=False)
        return super().decide(run_id, row_lease, request, stale_after_ms=stale_after_ms)


class ForgetsNoClaim(LocalArbiter):
    """Release lets go of the owner only, so that a thief's claim outlives the ownership."""

    def decide(self, run_id, row_lease, request, *, stale_after_ms):
        remembered = self._leases.get(run_id, Lease())
        if isinstance(request, AskRelease) and request.owner == remembered.claim:
            return Decision(Granted(None, remembered.fence), remembered)
        return super().decide(run_id, row_lease, request, stale_after_ms=stale_after_ms)


# Most rules the store keeps by itself, from the row: under it only some mistakes show.
UNDER_A_STORE = dict.fromkeys(
    names_of(ArbitratedStoreConformance), partial(Arbiter, grants_nothing)
)
UNDER_A_STORE |= {
    "test_an_old_execution_of_the_same_owner_writes_nothing": partial(
        Arbiter, says_the_same_fence_each_time
    ),
    "test_every_change_of_hands_is_a_fact_and_nothing_else_is": partial(
        Arbiter, says_the_same_fence_each_time
    ),
    "test_the_new_owner_may_write": partial(Arbiter, guards_nobody),
    "test_an_owner_that_beats_before_the_thief_activates_keeps_its_run": partial(
        Arbiter, CAUGHT["test_a_heartbeat_ignores_a_thiefs_claim"]
    ),
    "test_who_stole_from_itself_and_gives_up_keeps_its_run": ReleasesBoth,
    "test_who_stole_from_itself_and_comes_too_late_keeps_its_run": ReleasesBoth,
    "test_no_claim_is_stranded_by_an_owner_that_gives_up": ForgetsNoClaim,
    "test_runs_claimed_as_a_set_have_grants_of_their_own": OneForAll,
}


@pytest.mark.django_db
@pytest.mark.parametrize("name", UNDER_A_STORE)
def test_a_store_over_a_wrong_arbiter_is_caught(name):
    make = UNDER_A_STORE[name]
    assert_caught_by(name, ArbitratedStoreConformance, make_arbiter=lambda _: make())
