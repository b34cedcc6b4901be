"""Spec 4.1 and 4.3: what is complained of first, and that nothing is read before."""

from dataclasses import replace

import pytest

from django_runstore import InvalidRun
from tests.conformance.calls import CALLS, SINGLE
from tests.conformance.world import SKEW, A, World, tables

# Each operation with bad arguments from one position on.
BAD_SUFFIXES = [
    pytest.param(call, position, id=f"{call.operation}-{name}")
    for call in CALLS.values()
    for position, name in enumerate(call.arguments)
]


@pytest.mark.parametrize(("call", "position"), BAD_SUFFIXES)
def test_the_first_bad_argument_is_the_one_complained_of(
    world: World, call, position, django_assert_num_queries
):
    names = list(call.arguments)
    bad = {name: object() for name in names[position:]}
    with django_assert_num_queries(0), pytest.raises(InvalidRun) as caught:
        call.on(world.store, **bad)
    assert caught.value.operation == call.operation
    assert str(caught.value) == (f"invalid_run: RunStore.{call.operation}: run input is invalid")
    detail = caught.value.detail
    if call.fields[names[position]]:
        assert detail["field"] == call.fields[names[position]]
    else:
        assert {"state_json_length": None, "state_json_valid": False}.items() <= detail.items()


DETAILS = {
    "run_id": "must be well-formed durable text",
    "expected": "must be an inert snapshot record",
    "claimant": "must be an inert owner record",
    "owner": "must be an inert owner record",
    "stale_claimant": "must be an inert owner record",
    "observer": "must be an inert owner record",
    "now_ms": "must be a non-negative safe integer",
    "claimed_at_ms": "must be a non-negative safe integer",
    "evidence": "must be an inert evidence record",
    "to_status": "violates the durable contract",
    "guard": "must be an inert exact guard",
    "parent_run_id": "contains invalid ancestry or lineage",
    "lineage_id": "contains invalid ancestry or lineage",
    "round_ordinal": "contains invalid ancestry or lineage",
}


@pytest.mark.parametrize(
    ("call", "name"),
    [
        pytest.param(call, name, id=f"{call.operation}-{name}")
        for call in SINGLE.values()
        for name in call.arguments
        if name in DETAILS
    ],
)
def test_each_complaint_has_its_fixed_words(world: World, call, name):
    with pytest.raises(InvalidRun) as caught:
        call.on(world.store, **{name: object()})
    assert caught.value.detail == {"field": call.fields[name], "detail": DETAILS[name]}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_refused_call_writes_nothing(world: World, call):
    world.active(A)
    before = tables()
    for name in call.arguments:
        with pytest.raises(InvalidRun):
            call.on(world.store, **{name: object()})
    assert tables() == before


LEASE_READINGS = (
    "claim",
    "claim_and_own",
    "steal",
    "heartbeat",
    "reconfirm",
    "recover_claim",
)


@pytest.mark.parametrize("operation", LEASE_READINGS)
def test_a_lease_reading_beyond_the_skew_allowance_is_described_exactly(world: World, operation):
    world.clock.set(500.5)
    call = CALLS[operation]
    with pytest.raises(InvalidRun) as caught:
        call.on(world.store, now_ms=500 + SKEW + 1)
    context = {"run_id": "run"}
    if operation == "recover_claim":
        context["claimed_at_ms"] = 0
    assert caught.value.detail == {
        **context,
        "field": "now_ms",
        "now_ms": 10_501,
        "clock_ms": 500,
        "detail": "runs ahead of the store clock by more than the heartbeat skew allowance",
    }


@pytest.mark.parametrize("operation", LEASE_READINGS)
@pytest.mark.parametrize("reading", [500 + SKEW, 0], ids=["exactly ahead", "behind"])
def test_a_lease_reading_within_the_skew_allowance_is_admitted(world: World, operation, reading):
    world.clock.set(500)
    world.active(A)
    CALLS[operation].on(world.store, now_ms=reading)


@pytest.mark.parametrize("operation", ["activate", "abandon_claim", "recover_claim"])
def test_the_token_of_a_claim_is_not_compared_with_the_clock(world: World, operation):
    world.active(A)
    CALLS[operation].on(world.store, claimed_at_ms=2**53 - 1)


def test_evidence_from_beyond_the_skew_allowance_needs_a_reading_that_is_too(world: World):
    call = CALLS["steal"]
    late = replace(call.arguments["evidence"], checked_at_ms=SKEW + 1)
    with pytest.raises(InvalidRun) as caught:
        call.on(world.store, now_ms=None, evidence=late)
    assert caught.value.detail["field"] == "now_ms"
