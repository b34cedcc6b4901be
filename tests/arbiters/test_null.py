"""The arbiter that grants nothing, behind the store. Spec: run-store 6.6."""

import pytest

from django_runstore import LivenessEvidence, OwnerId, RunSnapshot, RunStore
from django_runstore.arbiters import NullArbiter
from django_runstore.models import JournalEntry, Run
from django_runstore.outcomes import (
    CancelRequested,
    ClaimChanged,
    ClaimLost,
    FenceLost,
    NotFound,
    SnapshotChanged,
)
from django_runstore.testing import FakeClock

A = OwnerId("host-a", 101, "owner-a")
B = OwnerId("host-a", 102, "owner-b")
P = RunSnapshot("pending")
EVIDENCE = LivenessEvidence(A, 31_000, "lease-expired")


@pytest.fixture
def store(db):
    """A store that never runs anything, over one pending and one raw running run."""
    store = RunStore(clock=FakeClock(31_000), arbiter=NullArbiter())
    store.create("pending", "{}")
    store.create("running", "{}")
    Run.unguarded.filter(pk="running").update(
        status="running",
        owner_host_id=A.host_id,
        owner_pid=A.pid,
        owner_nonce=A.nonce,
        heartbeat_at_ms=0,
        fence=1,
        owner_fence=1,
    )
    return store


@pytest.mark.conformance(122)
def test_the_store_answers_a_loss_that_the_row_can_explain(store):
    seen = RunSnapshot("running", A, 0)
    rows = list(Run.objects.order_by("pk").values())
    assert store.claim("pending", P, A, 31_000) == SnapshotChanged()
    assert store.claim_and_own("pending", P, A, 31_000) == SnapshotChanged()
    assert store.steal("running", seen, B, 31_000, EVIDENCE) == SnapshotChanged()
    assert store.claim_and_own("running", seen, B, 31_000, EVIDENCE) == SnapshotChanged()
    assert store.claim_many(A, 9) == ()
    for renew in (store.heartbeat, store.reconfirm):
        assert renew("running", A, 31_000) == FenceLost()
        assert renew("nobody", A, 31_000) == NotFound()
    assert store.heartbeat_many(A, [("running", 1)]) == {"running": FenceLost()}
    assert store.transition_owned("running", A, "completed") == FenceLost()
    assert store.save_progress("running", A, fence=1) == FenceLost()
    assert list(Run.objects.order_by("pk").values()) == rows
    assert not JournalEntry.objects.exists()


def test_what_needs_no_lease_works(store):
    assert store.request_cancel("pending", 1) == CancelRequested(1)
    assert store.get("pending").cancel_requested_at_ms == 1
    assert len(store.lineage("pending")) == 1


def test_a_claim_in_the_row_that_the_arbiter_does_not_know_is_cleared_on_activation(store):
    Run.unguarded.filter(pk="pending").update(
        claim_host_id=A.host_id, claim_pid=A.pid, claim_nonce=A.nonce, claimed_at_ms=0
    )
    assert store.recover_claim("pending", A, 0, B, 31_000, EVIDENCE) == ClaimChanged()
    assert store.activate("pending", A, 0, P) == ClaimLost()
    assert store.get("pending").claim is None
    assert not JournalEntry.objects.exists()
