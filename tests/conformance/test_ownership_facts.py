"""Spec 4.2 with D2 to D4 and D11: which facts an operation appends, and what they hold."""

import json

import pytest

from django_runstore import LivenessEvidence, RunRow
from django_runstore.models import JournalEntry
from tests.conformance.world import (
    SUSPENDED,
    A,
    B,
    C,
    P,
    World,
    fresh_evidence,
    owner_json,
    running,
)


def fact(name: str, owner, granted_at_ms, fence: int, **more) -> tuple[str, dict]:
    payload = {
        "run_id": "run",
        "owner": owner_json(owner),
        "granted_at_ms": granted_at_ms,
        "fence": fence,
    }
    return name, payload | more


@pytest.mark.conformance("D4")
def test_a_claim_is_one_fact(world: World):
    world.claimed(A)
    assert world.facts() == [fact("claimed", A, 0, 1)]


def test_an_activation_names_the_grant_it_spent(world: World):
    world.claimed(A)
    world.clock.set(900)
    world.store.activate("run", A, 0, P)
    assert world.facts()[1:] == [fact("activated", A, 0, 1)]


def test_an_activation_that_comes_too_late_releases_its_claim(world: World):
    world.claimed(A)
    world.store.activate("run", A, 0, SUSPENDED)
    assert world.facts()[1:] == [fact("released", A, 0, 1)]


def test_an_abandoned_claim_is_released(world: World):
    world.claimed(A)
    world.store.abandon_claim("run", A, 0)
    assert world.facts()[1:] == [fact("released", A, 0, 1)]


def test_claim_and_own_of_a_free_run_is_two_facts(world: World):
    world.pending()
    world.clock.set(500)
    world.store.claim_and_own("run", P, A, 400)
    assert world.facts() == [fact("claimed", A, 400, 1), fact("activated", A, 400, 1)]


@pytest.mark.conformance("D1")
def test_claim_and_own_of_ones_own_stale_run_releases_it_first(world: World):
    seen = world.active(A)
    world.clock.set(31_000)
    world.store.claim_and_own("run", seen, A, 31_000)
    assert world.facts()[2:] == [
        fact("released", A, None, 1),
        fact("claimed", A, 31_000, 2),
        fact("activated", A, 31_000, 2),
    ]


def taken_over(kind: str, observer, observed) -> dict:
    return {
        "kind": kind,
        "checked_at_ms": 31_000,
        "observer": owner_json(observer),
        "last_heartbeat_at_ms": 0,
        "observed": observed,
    }


@pytest.mark.conformance("D4", "D11")
def test_a_takeover_by_claim_and_own_says_on_what_evidence(world: World):
    seen = world.active(A)
    world.clock.set(31_000)
    evidence = LivenessEvidence(A, 31_000, "same-host-pid-dead", {"pid_exists": False, "pid": 101})
    world.store.claim_and_own("run", seen, B, 31_000, evidence)
    basis = taken_over("same-host-pid-dead", B, {"pid_exists": False, "pid": 101})
    assert world.facts()[2:] == [
        fact("stolen", B, 31_000, 2, evidence=basis),
        fact("activated", B, 31_000, 2),
    ]


@pytest.mark.conformance("D4")
def test_a_steal_says_on_what_evidence_and_its_activation_does_not_repeat_it(world: World):
    seen = world.active(A)
    world.clock.set(31_000)
    stolen = world.steal(C, seen)
    world.store.activate("run", C, stolen.claimed_at_ms, seen)
    basis = taken_over("cross-host-unreachable-stale", C, None)
    assert world.facts()[2:] == [
        fact("stolen", C, 31_000, 2, evidence=basis),
        fact("activated", C, 31_000, 2),
    ]


@pytest.mark.conformance("D4")
def test_a_recovered_claim_expired_on_evidence(world: World):
    world.claimed(A)
    world.clock.set(31_000)
    evidence = fresh_evidence(A, B, 31_000)
    world.store.recover_claim("run", A, 0, B, 31_000, evidence)
    basis = taken_over("same-host-pid-dead", B, None) | {"last_heartbeat_at_ms": None}
    assert world.facts()[1:] == [fact("expired", A, 0, 1, evidence=basis)]


@pytest.mark.parametrize("status", ["suspended", "completed", "failed", "cancelled"])
def test_giving_a_run_up_releases_its_grant(world: World, status):
    world.active(A)
    world.store.transition_owned("run", A, status)
    assert world.facts()[2:] == [fact("released", A, None, 1)]


def test_a_save_a_beat_and_a_request_are_no_change_of_hands(world: World):
    world.active(A)
    before = world.facts()
    world.store.transition_owned("run", A, "running", "[]")
    world.store.heartbeat("run", A, 1)
    world.store.reconfirm("run", A, 1)
    world.store.save_progress("run", A, fence=1)
    world.store.request_cancel("run", 1)
    world.store.acknowledge_cancel("run", A, 1)
    assert world.facts() == before


def test_creating_a_run_is_no_change_of_hands(world: World):
    world.pending()
    assert not JournalEntry.objects.exists()


def test_what_is_refused_leaves_no_fact(world: World):
    seen = world.active(A)
    before = world.facts()
    store = world.store
    store.claim("run", P, B, 0)
    store.claim_and_own("run", seen, B, 0)
    store.activate("run", B, 0, seen)
    store.abandon_claim("run", B, 0)
    store.recover_claim("run", B, 0, C, 0, fresh_evidence(B, C, 0))
    store.steal("run", seen, B, 0, fresh_evidence(A, B, 0))
    store.transition_owned("run", B, "completed")
    store.heartbeat("run", B, 0)
    assert world.facts() == before


@pytest.mark.conformance("D2", "D3")
def test_a_fact_is_an_entry_of_the_companion_stream(world: World):
    world.pending()
    world.clock.set(500.9)
    world.store.claim("run", P, A, 450)
    (entry,) = JournalEntry.objects.all()
    assert (entry.run_id, entry.companion, entry.seq) == ("run", "run-store", 0)
    assert (entry.source_id, entry.source_seq) == ("runstore", 0)
    assert entry.event_type == "runstore.ownership.claimed"
    assert json.loads(entry.meta_json) == {"run_id": "run"}


def test_a_fact_is_dated_by_the_clock_and_not_by_the_callers_reading(world: World):
    seen = world.active(A)
    world.clock.set(40_000)
    world.store.claim_and_own("run", seen, A, 39_000)
    dates = set(JournalEntry.objects.filter(seq__gte=2).values_list("emitted_at_ms", flat=True))
    assert dates == {40_000}


def test_facts_are_numbered_without_gaps_over_a_runs_life(world: World):
    seen = world.active(A)
    world.clock.set(31_000)
    stolen = world.steal(B, seen)
    world.store.activate("run", B, stolen.claimed_at_ms, seen)
    world.store.transition_owned("run", B, "suspended")
    world.store.claim_many(C, 1)
    entries = JournalEntry.objects.order_by("seq")
    assert list(entries.values_list("seq", flat=True)) == list(range(7))
    assert list(entries.values_list("source_seq", flat=True)) == list(range(7))
    assert world.columns()["ownership_seq"] == 7
    assert world.fact_names() == [
        *("claimed", "activated"),
        *("stolen", "activated", "released"),
        *("claimed", "activated"),
    ]


@pytest.mark.conformance("D9")
def test_every_grant_has_a_higher_fence_and_the_outcome_says_which(world: World):
    world.pending()
    fences = []
    for reading in (0, 1, 2):
        world.clock.set(reading)
        fences.append(world.store.claim("run", P, A, reading).fence)
        assert world.store.get("run").fence == fences[-1]
        world.store.abandon_claim("run", A, reading)
    fences.append(world.store.claim_and_own("run", P, A, 2).fence)
    row: RunRow = world.store.get("run")
    assert fences == [1, 2, 3, 4]
    assert (row.fence, row.owner_fence, row.snapshot) == (4, 4, running(A, 2))
