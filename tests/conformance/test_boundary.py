"""Conformance notes, section F and 44, with departure D13: only this package's records."""

import datetime as dt

import pytest

from django_runstore import InvalidRun, LivenessEvidence, OwnerId, RunSnapshot, TransitionGuard
from django_runstore.outcomes import Transitioned
from tests.conformance.calls import CALLS
from tests.conformance.hostile import HOSTILE, Text, touched
from tests.conformance.world import SAFE, A, B, P, World, fresh_evidence, owner_json


@pytest.fixture(autouse=True)
def nobody_looked():
    touched.clear()
    yield
    assert touched == []


def refused_owner(world: World, owner: object) -> dict[str, object]:
    before = world.columns()
    with pytest.raises(InvalidRun) as caught:
        world.store.heartbeat("run", owner, 0)
    assert world.columns() == before
    return dict(caught.value.detail)


@pytest.mark.conformance(74, 75, "D13")
@pytest.mark.parametrize(
    "owner",
    [
        None,
        dt.date(2026, 1, 1),
        owner_json(A),
        (A.host_id, A.pid, A.nonce),
        object.__new__(OwnerId),
        OwnerId,
    ],
    ids=lambda owner: type.__repr__(type(owner)),
)
def test_only_an_owner_is_an_owner(world: World, owner):
    world.active(A)
    assert refused_owner(world, owner) == {
        "field": "owner",
        "detail": "must be an inert owner record",
    }


@pytest.mark.conformance(75)
@pytest.mark.parametrize(
    "owner",
    [
        OwnerId("", 1, "n"),
        OwnerId("h", 1, ""),
        OwnerId("h", -1, "n"),
        OwnerId("h", 1.0, "n"),
        OwnerId("h", True, "n"),
        OwnerId("h", SAFE + 1, "n"),
        OwnerId("h", "1", "n"),
        OwnerId("h\0", 1, "n"),
        OwnerId("h", 1, "\udc00"),
        OwnerId("h" * 1_025, 1, "n"),
        OwnerId(b"h", 1, "n"),
        OwnerId(None, None, None),
    ],
)
def test_an_owner_has_durable_texts_and_a_pid(world: World, owner):
    world.active(A)
    assert refused_owner(world, owner) == {
        "field": "owner",
        "detail": "must be a valid owner identity",
    }


@pytest.mark.conformance(75)
@pytest.mark.parametrize("owner", [OwnerId("h", 0, "n"), OwnerId("h", SAFE, "n" * 1_024)])
def test_the_extremes_of_an_identity_are_admitted(world: World, owner):
    world.active(owner)
    assert world.store.get("run").owner == owner


@pytest.mark.conformance(76)
@pytest.mark.parametrize("state", [None, 1, {}, b"{}", [], True])
def test_state_that_is_no_text_is_refused(store, state):
    with pytest.raises(InvalidRun) as caught:
        store.create("x", state)
    assert caught.value.operation == "create"
    detail = dict(caught.value.detail)
    detail.pop("detail")
    assert detail == {
        "run_id": "x",
        "parent_run_id": None,
        "lineage_id": None,
        "round_ordinal": None,
        "state_json_length": None,
        "state_json_valid": False,
    }


@pytest.mark.conformance(77, "D13")
@pytest.mark.parametrize(
    "options",
    [
        {"parent_run_id": 1},
        {"parent_run_id": dt.date(2026, 1, 1)},
        {"lineage_id": "line"},
        {"round_ordinal": 0},
        {"lineage_id": "line", "round_ordinal": -1},
        {"lineage_id": "line", "round_ordinal": 1.0},
        {"lineage_id": "line", "round_ordinal": True},
    ],
)
def test_options_of_create_are_judged(store, options):
    with pytest.raises(InvalidRun) as caught:
        store.create("x", "{}", **options)
    assert caught.value.detail["detail"] == "contains invalid ancestry or lineage"


def test_an_option_of_none_counts_as_absent(store):
    store.create("x", "{}", parent_run_id=None, lineage_id=None, round_ordinal=None)
    assert store.get("x").lineage_id is None


@pytest.mark.conformance(44, 78, "D13")
@pytest.mark.parametrize(
    ("expected", "detail"),
    [
        (None, "must be an inert snapshot record"),
        ({"status": "pending"}, "must be an inert snapshot record"),
        (object.__new__(RunSnapshot), "must be an inert snapshot record"),
        (RunSnapshot("paused"), "contains an invalid status or heartbeat"),
        (RunSnapshot("running", A, -1), "contains an invalid status or heartbeat"),
        (RunSnapshot("running", A, 1.0), "contains an invalid status or heartbeat"),
        (RunSnapshot("pending", A, 0), "violates ownership invariants"),
        (RunSnapshot("pending", A), "violates ownership invariants"),
        (RunSnapshot("pending", None, 0), "violates ownership invariants"),
        (RunSnapshot("running"), "violates ownership invariants"),
        (RunSnapshot("running", A), "violates ownership invariants"),
        (RunSnapshot("running", None, 0), "violates ownership invariants"),
    ],
)
def test_snapshots_are_judged(world: World, expected, detail):
    world.pending()
    with pytest.raises(InvalidRun) as caught:
        world.store.claim("run", expected, A, 0)
    assert caught.value.detail == {"field": "expected", "detail": detail}
    assert world.store.get("run").status == "pending"


@pytest.mark.conformance(78)
def test_the_owner_of_a_snapshot_is_judged_under_its_own_name(world: World):
    with pytest.raises(InvalidRun) as caught:
        world.store.claim("run", RunSnapshot("running", OwnerId("", 1, "n"), 0), A, 0)
    assert caught.value.detail == {
        "field": "expected.owner",
        "detail": "must be a valid owner identity",
    }


@pytest.mark.conformance(79, "D13")
@pytest.mark.parametrize(
    ("evidence", "field"),
    [
        (None, "evidence"),
        ({"expected_owner": A, "checked_at_ms": 0, "kind": "lease-expired"}, "evidence"),
        (object.__new__(LivenessEvidence), "evidence"),
        (LivenessEvidence(None, 0, "lease-expired"), "evidence.expected_owner"),
        (LivenessEvidence(A, -1, "lease-expired"), "evidence.checked_at_ms"),
        (LivenessEvidence(A, 0, "hearsay"), "evidence.kind"),
        (LivenessEvidence(A, 0, "lease-expired", observed=[]), "evidence.observed"),
        (LivenessEvidence(A, 0, "lease-expired", observed={"a": 1.5}), "evidence.observed"),
        (LivenessEvidence(A, 0, "lease-expired", observed={1: "a"}), "evidence.observed"),
    ],
)
def test_evidence_is_judged(world: World, evidence, field):
    seen = world.active(A)
    with pytest.raises(InvalidRun) as caught:
        world.store.steal("run", seen, B, 0, evidence)
    assert caught.value.detail["field"] == field


@pytest.mark.conformance("D11")
@pytest.mark.parametrize(
    ("observed", "admitted"),
    [
        ({f"k{n}": n for n in range(16)}, True),
        ({f"k{n}": n for n in range(17)}, False),
        ({"k": "x" * 1_024}, True),
        ({"k": "x" * 1_024, "l": "x" * 1_023}, False),
        ({"text": "", "integer": -15, "flag": True}, True),
    ],
    ids=["16 pairs", "17 pairs", "1 kB", "over 2 kB", "every type"],
)
def test_observations_are_few_and_small(world: World, observed, admitted):
    seen = world.active(A)
    world.clock.set(31_000)
    evidence = LivenessEvidence(A, 31_000, "lease-expired", observed)
    if admitted:
        assert world.store.steal("run", seen, B, 31_000, evidence).code == "claimed"
    else:
        with pytest.raises(InvalidRun):
            world.store.steal("run", seen, B, 31_000, evidence)


@pytest.mark.conformance(80, 91, "D13")
@pytest.mark.parametrize(
    ("guard", "field"),
    [
        (dt.date(2026, 1, 1), "guard"),
        ({"cancel_requested": "absent"}, "guard"),
        ({}, "guard"),
        ("absent", "guard"),
        (object.__new__(TransitionGuard), "guard"),
        (TransitionGuard("unknown"), "guard.cancel_requested"),
        (TransitionGuard("typo"), "guard.cancel_requested"),
        (TransitionGuard(""), "guard.cancel_requested"),
        (TransitionGuard(True), "guard.cancel_requested"),
    ],
)
def test_guards_are_judged(world: World, guard, field):
    world.active(A)
    before = world.columns()
    with pytest.raises(InvalidRun) as caught:
        world.store.transition_owned("run", A, "completed", None, guard)
    assert caught.value.detail["field"] == field
    assert world.columns() == before


@pytest.mark.conformance(80)
@pytest.mark.parametrize("state", [1, {}, b"{}"], ids=["integer", "dict", "bytes"])
def test_a_state_of_a_transition_must_be_text(world: World, state):
    world.active(A)
    with pytest.raises(InvalidRun) as caught:
        world.store.transition_owned("run", A, "running", state)
    assert {"run_id": "run", "state_json_length": None, "state_json_valid": False}.items() <= (
        caught.value.detail.items()
    )


RECORDS = [
    (call, name) for call in CALLS.values() for name in call.arguments if name != "parent_run_id"
]


@pytest.mark.conformance(44, 74, 75, 78, 79, 80)
@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize(
    ("call", "name"), RECORDS, ids=[f"{call.operation}-{name}" for call, name in RECORDS]
)
def test_an_object_with_code_of_its_own_is_refused_without_running_it(
    database_world: World, call, name, make
):
    with pytest.raises(InvalidRun):
        call.on(database_world.store, **{name: make()})


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize(
    "wrap",
    [
        lambda value: {"owner": OwnerId(value, 1, "n")},
        lambda value: {"owner": OwnerId("h", value, "n")},
        lambda value: {"owner": OwnerId("h", 1, value)},
        lambda value: {"expected": RunSnapshot(value)},
        lambda value: {"expected": RunSnapshot("pending", value)},
        lambda value: {"expected": RunSnapshot("running", A, value)},
        lambda value: {"evidence": LivenessEvidence(value, 0, "lease-expired")},
        lambda value: {"evidence": LivenessEvidence(A, value, "lease-expired")},
        lambda value: {"evidence": LivenessEvidence(A, 0, value)},
        lambda value: {"evidence": LivenessEvidence(A, 0, "lease-expired", value)},
        lambda value: {"evidence": LivenessEvidence(A, 0, "lease-expired", {"k": value})},
    ],
    ids=[
        *("owner.host_id", "owner.pid", "owner.nonce"),
        *("expected.status", "expected.owner", "expected.heartbeat_at_ms"),
        *("evidence.expected_owner", "evidence.checked_at_ms", "evidence.kind"),
        *("evidence.observed", "evidence.observed member"),
    ],
)
def test_a_field_with_code_of_its_own_is_refused_without_running_it(
    database_world: World, make, wrap
):
    with pytest.raises(InvalidRun):
        CALLS["claim_and_own"].on(database_world.store, **wrap(make()))


def test_a_subclass_of_text_is_copied_and_never_asked(world: World):
    world.store.create(Text("run"), Text('{"a":1}'), queue=Text("q"))
    owner = OwnerId(Text("host-a"), 101, Text("owner-a"))
    assert world.store.claim_and_own(Text("run"), RunSnapshot(Text("pending")), owner, 0).code == (
        "activated"
    )
    moved = world.store.transition_owned(
        Text("run"), A, Text("completed"), guard=TransitionGuard(Text("absent"))
    )
    assert moved == Transitioned()
    assert world.store.get("run").queue == "q"


def test_what_a_caller_changes_afterwards_changes_nothing(world: World):
    seen = world.active(A)
    world.clock.set(31_000)
    observed = {"exists": False}
    evidence = LivenessEvidence(A, 31_000, "lease-expired", observed)
    world.store.steal("run", seen, B, 31_000, evidence)
    observed["exists"] = True
    assert world.facts()[-1][1]["evidence"]["observed"] == {"exists": False}


def test_a_plain_evidence_of_a_pending_snapshot_is_judged_all_the_same(world: World):
    world.pending()
    evidence = fresh_evidence(A, B, 0)
    assert world.store.claim_and_own("run", P, B, 0, evidence).code == "activated"
