"""The narrow part of a run row, read under its lock: what decisions are made from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django_runstore.arbiters import Lease
from django_runstore.owners import OwnerId
from django_runstore.snapshots import RunSnapshot
from django_runstore.states import RunStatus

# Everything a decision needs and nothing wide: a large state is never read under the lock.
LOCKED_COLUMNS: Final = (
    "run_id",
    "status",
    "queue",
    "concurrency_key",
    "started_at_ms",
    "owner_host_id",
    "owner_pid",
    "owner_nonce",
    "heartbeat_at_ms",
    "owner_fence",
    "claim_host_id",
    "claim_pid",
    "claim_nonce",
    "claimed_at_ms",
    "fence",
    "cancel_requested_at_ms",
    "recovery_count",
    "failure_count",
    "deadline_at_ms",
    "waiting_reason",
    "journal_seq",
    "ownership_seq",
)


@dataclass(frozen=True, slots=True)
class LockedRun:
    """The narrow part of a run row, read under its lock and not decoded. Spec: run-store 4.1."""

    run_id: str
    status: str
    queue: str
    concurrency_key: str
    started_at_ms: int | None
    owner: OwnerId | None
    heartbeat_at_ms: int | None
    owner_fence: int | None
    claim: OwnerId | None
    claimed_at_ms: int | None
    fence: int
    cancel_requested_at_ms: int | None
    recovery_count: int
    failure_count: int
    deadline_at_ms: int | None
    waiting_reason: str | None
    journal_seq: int
    ownership_seq: int

    @property
    def lease(self) -> Lease:
        """The lease that the row holds."""
        return Lease(
            self.owner,
            self.heartbeat_at_ms,
            self.owner_fence,
            self.claim,
            self.claimed_at_ms,
            self.fence,
        )

    def matches(self, expected: RunSnapshot) -> bool:
        """Tell whether the row is still what the caller saw."""
        return (
            self.status == expected.status
            and self.owner == expected.owner
            and self.heartbeat_at_ms == expected.heartbeat_at_ms
        )

    def matches_claim(self, claimant: OwnerId, claimed_at_ms: int, fence: int | None) -> bool:
        """Tell whether the pending claim is exactly this one."""
        return (
            self.claim == claimant
            and self.claimed_at_ms == claimed_at_ms
            and fence in (None, self.fence)
        )

    def is_owned_by(self, owner: OwnerId, fence: int | None) -> bool:
        """Tell whether the row is running under this owner and, when given, this grant."""
        return (
            self.status == RunStatus.RUNNING
            and self.owner == owner
            and fence in (None, self.owner_fence)
        )


def _identity(columns: Mapping[str, Any], role: str) -> OwnerId | None:
    host_id, pid, nonce = (columns[f"{role}_{part}"] for part in ("host_id", "pid", "nonce"))
    if host_id is None and pid is None and nonce is None:
        return None
    return OwnerId(host_id, pid, nonce)


def locked_run(columns: Mapping[str, Any]) -> LockedRun:
    """Build the value from a row of ``LOCKED_COLUMNS``."""
    plain = {
        name: columns[name] for name in LockedRun.__dataclass_fields__ if name in LOCKED_COLUMNS
    }
    return LockedRun(owner=_identity(columns, "owner"), claim=_identity(columns, "claim"), **plain)
