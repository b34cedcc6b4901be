"""The actors of the conformance notes: three processes, a clock, a store and its tables."""

import json
from dataclasses import dataclass, field
from typing import Any

from django_runstore import LivenessEvidence, OwnerId, RunSnapshot
from django_runstore.arbiters import DatabaseArbiter, LocalArbiter
from django_runstore.arbiters.protocol import LeaseArbiter
from django_runstore.models import JournalEntry, Run
from django_runstore.outcomes import Activated, Claimed
from django_runstore.services import RunStore
from django_runstore.testing import FakeClock

A = OwnerId("host-a", 101, "owner-a")
B = OwnerId("host-a", 102, "owner-b")
C = OwnerId("host-b", 103, "owner-c")

P = RunSnapshot("pending")
SUSPENDED = RunSnapshot("suspended")

STALE_AFTER = 30_000
SKEW = 10_000
SAFE = 2**53 - 1

ARBITERS = {"database": DatabaseArbiter, "local": LocalArbiter}

OWNER_COLUMNS = ("owner_host_id", "owner_pid", "owner_nonce", "heartbeat_at_ms", "owner_fence")
CLAIM_COLUMNS = ("claim_host_id", "claim_pid", "claim_nonce", "claimed_at_ms")


def running(owner: OwnerId, heartbeat_at_ms: int) -> RunSnapshot:
    return RunSnapshot("running", owner, heartbeat_at_ms)


def fresh_evidence(expected: OwnerId, observer: OwnerId, checked_at_ms: int) -> LivenessEvidence:
    """Evidence of the kind that the two hosts' relation calls for."""
    same_host = expected.host_id == observer.host_id
    kind = "same-host-pid-dead" if same_host else "cross-host-unreachable-stale"
    return LivenessEvidence(expected, checked_at_ms, kind)


def owner_columns(owner: OwnerId, heartbeat_at_ms: int, fence: int) -> dict[str, object]:
    values = (owner.host_id, owner.pid, owner.nonce, heartbeat_at_ms, fence)
    return dict(zip(OWNER_COLUMNS, values, strict=True))


def claim_columns(claimant: OwnerId, claimed_at_ms: int) -> dict[str, object]:
    values = (claimant.host_id, claimant.pid, claimant.nonce, claimed_at_ms)
    return dict(zip(CLAIM_COLUMNS, values, strict=True))


NO_OWNER: dict[str, object] = dict.fromkeys(OWNER_COLUMNS)
NO_CLAIM: dict[str, object] = dict.fromkeys(CLAIM_COLUMNS)


def owner_json(owner: OwnerId) -> dict[str, object]:
    return {"host_id": owner.host_id, "pid": owner.pid, "nonce": owner.nonce}


def tables() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Every column of every row there is."""
    return (
        list(Run.objects.order_by("run_id").values()),
        list(JournalEntry.objects.order_by("run_id", "companion", "seq").values()),
    )


def unnumbered_tables() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """All of it but what the database numbers by itself, to compare two lives of one run."""
    runs, entries = tables()
    for run in runs:
        del run["revision"], run["revision_xid"]
    for entry in entries:
        del entry["id"]
    return runs, entries


@dataclass
class World:
    """A store over a clock that stands still until a test moves it."""

    arbiter: LeaseArbiter = field(default_factory=DatabaseArbiter)
    clock: FakeClock = field(default_factory=lambda: FakeClock(0))

    def __post_init__(self) -> None:
        self.store = RunStore(clock=self.clock, arbiter=self.arbiter)

    @property
    def now(self) -> int:
        return int(self.clock.now_ms())

    def pending(self, run_id: str = "run", state: str = "{}", **options: Any) -> str:
        self.store.create(run_id, state, **options)
        return run_id

    def claimed(self, claimant: OwnerId = A, run_id: str = "run") -> Claimed:
        """Create a run and have it claimed at the clock's reading."""
        self.pending(run_id)
        return self.reclaimed(claimant, run_id)

    def reclaimed(self, claimant: OwnerId, run_id: str = "run") -> Claimed:
        outcome = self.store.claim(run_id, self.store.get(run_id), claimant, self.now)
        assert isinstance(outcome, Claimed)
        return outcome

    def active(self, owner: OwnerId = A, run_id: str = "run", **options: Any) -> RunSnapshot:
        """Create a run and have it owned at the clock's reading; give what its row shows."""
        self.pending(run_id, **options)
        return self.reactivated(owner, run_id)

    def reactivated(self, owner: OwnerId, run_id: str = "run") -> RunSnapshot:
        seen = self.store.get(run_id)
        claimed = self.reclaimed(owner, run_id)
        outcome = self.store.activate(run_id, owner, claimed.claimed_at_ms, seen)
        assert isinstance(outcome, Activated)
        return running(owner, self.now)

    def steal(self, thief: OwnerId, expected: RunSnapshot, run_id: str = "run") -> Any:
        """Steal with evidence that fits, at the clock's reading."""
        assert expected.owner is not None
        evidence = fresh_evidence(expected.owner, thief, self.now)
        return self.store.steal(run_id, expected, thief, self.now, evidence)

    def columns(self, run_id: str = "run") -> dict[str, Any]:
        return Run.objects.values().get(pk=run_id)

    def facts(self, run_id: str = "run") -> list[tuple[str, dict[str, Any]]]:
        """The ownership facts of a run, in order: short name and payload."""
        entries = JournalEntry.objects.filter(run_id=run_id, companion="run-store").order_by("seq")
        return [
            (entry.event_type.removeprefix("runstore.ownership."), json.loads(entry.payload_json))
            for entry in entries
        ]

    def fact_names(self, run_id: str = "run") -> list[str]:
        return [name for name, _ in self.facts(run_id)]
