"""What a sweep found and did, for logs, people and programs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

OWNER_MAY_LIVE: Final = "the owner is not provably dead"
CLAIMANT_MAY_LIVE: Final = "the claimant is not provably dead"
CLOCK_MOVED: Final = "the clock moved; this process takes nothing over for a while"


@dataclass(frozen=True, slots=True)
class SweepReport:
    """
    One sweep. Every attribute holds run ids, or pairs of a run id and a word about it.

    Attributes:
        put_back: Taken from a dead owner and claimable again.
        cancelled: Taken from a dead owner and settled, since somebody had asked it to stop.
        failed: Taken from a dead owner, lost once too often, and settled as failed.
        claims_cleared: A dead claimant's claim is gone.
        watched: Stale, and not yet seen unchanged for two intervals.
        unproven: Stale, but nobody knows that its holder is gone; with the reason.
        moved: Somebody else was faster, or the holder came back; with the outcome.
        broken: Left alone because the row or the database made trouble; with the error code.
    """

    put_back: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    claims_cleared: tuple[str, ...] = ()
    watched: tuple[str, ...] = ()
    unproven: tuple[tuple[str, str], ...] = ()
    moved: tuple[tuple[str, str], ...] = ()
    broken: tuple[tuple[str, str], ...] = ()

    def as_json(self) -> dict[str, list[object]]:
        """Give the report as plain lists."""
        return {field.name: list(getattr(self, field.name)) for field in fields(self)}
