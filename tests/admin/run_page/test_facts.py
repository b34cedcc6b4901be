import json

from django_runstore.admin.run_page.facts import hand_overs
from django_runstore.models import JournalEntry
from django_runstore.owners import OwnerId

A = {"host_id": "web-1", "pid": 1, "nonce": "a"}
B = {"host_id": "web-2", "pid": 2, "nonce": "b"}
EVIDENCE = {"kind": "lease-expired", "observer": B, "checked_at_ms": 40_000}


def entry(change, holder, seq=0, **more):
    return JournalEntry(
        seq=seq,
        emitted_at_ms=seq,
        event_type=f"runstore.ownership.{change}",
        payload_json=json.dumps({"owner": holder, "fence": seq, **more}),
    )


def displaced(*entries):
    return [fact.displaced for fact in hand_overs(entries)]


def test_a_takeover_takes_from_whoever_was_the_owner_last():
    assert displaced(
        entry("claimed", A), entry("activated", A), entry("stolen", B, evidence=EVIDENCE)
    ) == [None, None, OwnerId("web-1", 1, "a")]


def test_an_owner_that_gave_it_up_is_not_taken_from():
    assert displaced(entry("activated", A), entry("released", A), entry("stolen", B)) == [None] * 3


def test_a_claim_that_somebody_else_left_does_not_end_an_ownership():
    found = displaced(entry("activated", A), entry("released", B), entry("stolen", B))
    assert found[-1] == OwnerId("web-1", 1, "a")


def test_a_reason_needs_evidence():
    (fact,) = hand_overs([entry("stolen", B)])
    assert fact.reason == ""


def test_the_gap_is_left_out_where_no_heartbeat_was_known():
    (fact,) = hand_overs([entry("expired", A, evidence=EVIDENCE)])
    assert fact.reason == (
        "claim of web-1 pid 1 (a) cleared because the lease of process 1 on web-1 expired"
    )


def test_evidence_of_another_change_has_its_grounds():
    (fact,) = hand_overs([entry("blessed", A, evidence=EVIDENCE)])
    assert fact.reason == "the lease of its process expired"


def test_truth_values_are_no_numbers():
    (fact,) = hand_overs([entry("claimed", {**A, "pid": True}, fence=True)])
    assert (fact.holder, fact.holder_name, fact.fence) == (None, "-", None)
