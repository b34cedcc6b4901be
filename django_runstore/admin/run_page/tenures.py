"""Ownership facts put together: who held the run from when to when, and how that ended."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from django_runstore.admin.run_page.facts import CHANGES, HandOver
from django_runstore.owners import OwnerId


class Ending(StrEnum):
    """How a tenure ended."""

    OPEN = "open"
    RELEASED = "released"
    DISPLACED = "displaced"
    EXPIRED = "expired"


@dataclass(slots=True)
class Tenure:
    """
    One grant, from the claim on.

    Attributes:
        claimed_at_ms: None when that lies before the history that was read.
        owned_at_ms: When the claimant became the owner; None if it never did.
        ended_at_ms: None while it lasts.
    """

    fence: int | None
    holder: OwnerId
    claimed_at_ms: int | None = None
    owned_at_ms: int | None = None
    ended_at_ms: int | None = None
    ending: Ending = Ending.OPEN

    def moments(self) -> Iterable[int]:
        """List its known times."""
        return (
            at_ms
            for at_ms in (self.claimed_at_ms, self.owned_at_ms, self.ended_at_ms)
            if at_ms is not None
        )

    def end(self, at_ms: int, ending: Ending) -> None:
        """Let it be over."""
        self.ended_at_ms, self.ending = at_ms, ending


def tenures_of(facts: Iterable[HandOver]) -> list[Tenure]:
    """Put facts in ascending order together, the first grant first."""
    found: list[Tenure] = []
    for fact in facts:
        if fact.holder is None or fact.change not in CHANGES:
            continue
        tenure = _tenure_of(fact.fence, fact.holder, found)
        match fact.change:
            case "claimed" | "stolen":
                tenure.claimed_at_ms = fact.at_ms
            case "activated":
                _displace_others(found, tenure, fact.at_ms)
                tenure.owned_at_ms = fact.at_ms
            case "released":
                tenure.end(fact.at_ms, Ending.RELEASED)
            case "expired":
                tenure.end(fact.at_ms, Ending.EXPIRED)
    return found


def _tenure_of(fence: int | None, holder: OwnerId, known: list[Tenure]) -> Tenure:
    """Find the grant that a fact speaks of; a fence is never handed out twice."""
    for tenure in reversed(known):
        if tenure.fence == fence and tenure.holder == holder:
            return tenure
    tenure = Tenure(fence, holder)
    known.append(tenure)
    return tenure


def _displace_others(known: list[Tenure], new: Tenure, at_ms: int) -> None:
    for tenure in known:
        if tenure is not new and tenure.owned_at_ms is not None and tenure.ending == Ending.OPEN:
            tenure.end(at_ms, Ending.DISPLACED)
