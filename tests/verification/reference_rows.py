"""The values of the reference model, and the rules that are about values alone."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

STALE_AFTER = 30_000
SKEW_ALLOWANCE = 10_000
TERMINAL = ("completed", "failed", "cancelled")
CLAIMABLE = ("pending", "suspended")

Owner = tuple[str, int, str]
Snapshot = tuple[str, Owner | None, int | None]
Evidence = tuple[Owner, int, str]
Answer = tuple[Any, ...]


class At(NamedTuple):
    """The reading a caller brings, and what its own store's clock reads, floored."""

    now: int
    clock: int

    @property
    def is_invalid(self) -> bool:
        """1.4: it may lead the clock by the allowance and no more."""
        return self.now > self.clock + SKEW_ALLOWANCE


class By(NamedTuple):
    """Who acts, and under which grant if it says so (D9)."""

    owner: Owner
    fence: int | None


@dataclass
class Run:
    """One row: what a reader of the store can see of it."""

    created: int
    available: int | None
    state: str
    status: str = "pending"
    started: int | None = None
    finished: int | None = None
    owner: Owner | None = None
    heartbeat: int | None = None
    owner_fence: int | None = None
    claim: Owner | None = None
    claimed: int | None = None
    fence: int = 0
    cancel: int | None = None
    acknowledged: tuple[int, Owner] | None = None
    waiting: tuple[str, int | None] | None = None
    facts: list[tuple[str, Owner, int | None, int | None]] = field(default_factory=list)
    events: list[tuple[str, int, str]] = field(default_factory=list)

    @property
    def snapshot(self) -> Snapshot:
        return self.status, self.owner, self.heartbeat

    def is_owned(self, by: By) -> bool:
        mine = self.status == "running" and self.owner == by.owner
        return mine and by.fence in (None, self.owner_fence)

    def is_claimed(self, by: By, token: int) -> bool:
        mine = (self.claim, self.claimed) == (by.owner, token)
        return mine and by.fence in (None, self.fence)

    def unclaim(self) -> None:
        self.claim = self.claimed = None

    def disown(self) -> None:
        self.owner = self.heartbeat = self.owner_fence = None

    def note(self, what: str, owner: Owner, granted: int | None, fence: int | None) -> None:
        self.facts.append((what, owner, granted, fence))


def is_stale(stamp: int, now: int) -> bool:
    """1.3: strictly older."""
    return stamp < now - STALE_AFTER


def matches_evidence(expected: Owner, observer: Owner, now: int, evidence: Evidence) -> bool:
    """3.2."""
    subject, checked, kind = evidence
    same_host = expected[0] == observer[0]
    fits = {
        "same-host-pid-dead": same_host,
        "cross-host-unreachable-stale": not same_host,
        "lease-expired": True,
    }
    return subject == expected and checked == now and fits[kind]
