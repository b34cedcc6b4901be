"""The checker finds what it is there to find."""

import json
from types import SimpleNamespace

import pytest

from tests.chaos.checker import PREFIX, Effect, faults, read_effects

A = {"host_id": "h", "pid": 1, "nonce": "a"}
B = {"host_id": "h", "pid": 2, "nonce": "b"}
EVIDENCE = {"kind": "same-host-pid-dead", "checked_at_ms": 40_000, "last_heartbeat_at_ms": 1_000}


def fact(seq, what, owner, fence, evidence=None):
    payload = {"owner": owner, "fence": fence}
    if evidence:
        payload["evidence"] = evidence
    return SimpleNamespace(
        run_id="r", seq=seq, event_type=PREFIX + what, payload_json=json.dumps(payload)
    )


def history(*steps):
    return [fact(seq, *step) for seq, step in enumerate(steps)]


def run(**columns):
    settled = {
        "run_id": "r",
        "status": "completed",
        "fence": 1,
        "owner_fence": None,
        "owner_host_id": None,
        "owner_pid": None,
        "owner_nonce": None,
        "claim_host_id": None,
        "ownership_seq": 3,
    }
    return SimpleNamespace(**settled | columns)


ONCE = history(("claimed", A, 1), ("activated", A, 1), ("released", A, 1))
TAKEN = history(
    ("claimed", A, 1),
    ("activated", A, 1),
    ("stolen", B, 2, EVIDENCE),
    ("activated", B, 2),
    ("released", B, 2),
)
DONE = [Effect("r", 1, "0")]


def test_an_undisturbed_run_has_no_fault():
    assert list(faults([run()], ONCE, DONE)) == []


def test_a_takeover_with_evidence_has_no_fault():
    effects = [Effect("r", 1, "0"), Effect("r", 2, "0")]
    assert list(faults([run(fence=2, ownership_seq=5)], TAKEN, effects)) == []


@pytest.mark.parametrize(
    ("changes", "facts", "effects", "fault"),
    [
        ({"fence": 2}, ONCE, DONE, "fence is 2"),
        ({"ownership_seq": 4}, ONCE, DONE, "counts 4 facts"),
        ({}, [*ONCE[:1], *ONCE[2:]], DONE, "gaps"),
        (
            {"fence": 2, "ownership_seq": 4},
            history(("claimed", A, 1), ("activated", A, 1), ("claimed", B, 2), ("activated", B, 2)),
            DONE,
            "claimed as 2 while 1 owned it",
        ),
        (
            {"fence": 2, "ownership_seq": 5},
            history(
                *(
                    ("stolen", B, 2) if s[0] == "stolen" else s
                    for s in [
                        ("claimed", A, 1),
                        ("activated", A, 1),
                        ("stolen", B, 2),
                        ("activated", B, 2),
                        ("released", B, 2),
                    ]
                )
            ),
            DONE,
            "without evidence",
        ),
        (
            {"fence": 3},
            history(("claimed", A, 3), ("activated", A, 3), ("released", A, 3)),
            [Effect("r", 3, "0")],
            "grant 3 follows grant 0",
        ),
        (
            {},
            history(("claimed", A, 1), ("activated", B, 1), ("released", B, 1)),
            DONE,
            "without its claim",
        ),
        (
            {},
            history(("claimed", A, 1), ("activated", A, 1), ("released", B, 1)),
            DONE,
            "did not hold it",
        ),
        ({"ownership_seq": 2}, ONCE[:2], DONE, "the journal says (1"),
        ({}, ONCE, [Effect("r", 7, "0")], "never activated"),
        ({}, ONCE, [], "without any effect"),
        ({}, ONCE, [*DONE, *DONE], "happened twice under fence 1"),
        (
            {"fence": 2, "ownership_seq": 5},
            TAKEN,
            [Effect("r", 2, "0"), Effect("r", 1, "1")],
            "fence 1 acted after fence 2",
        ),
    ],
)
def test_a_contradiction_is_named(changes, facts, effects, fault):
    found = list(faults([run(**changes)], facts, effects))
    assert any(fault in line for line in found), found


def test_an_owner_that_was_beating_cannot_have_been_stolen_from():
    fresh = EVIDENCE | {"last_heartbeat_at_ms": 40_000}
    facts = history(
        ("claimed", A, 1),
        ("activated", A, 1),
        ("stolen", B, 2, fresh),
        ("activated", B, 2),
        ("released", B, 2),
    )
    found = list(faults([run(fence=2, ownership_seq=5)], facts, DONE))
    assert found == ["r: stolen as 2 from an owner that was beating"]


def test_facts_and_effects_of_unknown_runs_are_named():
    assert list(faults([], ONCE, DONE)) == ["r: facts without a run", "r: effects without a run"]


def test_effects_are_read_in_the_order_they_were_appended(tmp_path):
    path = tmp_path / "effects"
    path.write_text("b\t2\t0\na\t1\t9\n")
    assert read_effects(path) == [Effect("b", 2, "0"), Effect("a", 1, "9")]


def test_no_file_means_no_effects(tmp_path):
    assert read_effects(tmp_path / "none") == []
