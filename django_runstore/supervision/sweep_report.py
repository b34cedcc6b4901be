"""What a sweep did, in a form that can be printed, counted and sent as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping


class SweepAnswer(StrEnum):
    """What became of one stale row. In a dry run: what would have."""

    PUT_BACK = "put_back"
    """The owner is dead; the run can be claimed again."""

    FAILED = "failed"
    """The owner is dead, and the run has lost too many of them to be tried again."""

    CANCELLED = "cancelled"
    """The owner is dead, and somebody had asked the run to stop."""

    CLAIM_CLEARED = "claim_cleared"
    """The claimant is dead; the run can be claimed again."""

    WATCHED = "watched"
    """Not yet seen unchanged for long enough."""

    NOT_PROVABLY_DEAD = "not_provably_dead"
    """Stale, but nothing proves that the holder is gone."""

    MOVED_ON = "moved_on"
    """Somebody was faster: its holder, another sweeper, or whoever ended it."""

    HELD = "held"
    """Locked by another transaction; it is looked at again."""

    UNDECODABLE = "undecodable"
    """The row breaks the invariants; a person has to see to it."""

    BROKEN = "broken"
    """Looking after the row failed; a person has to see to it."""


TAKEN: Final = frozenset(
    {
        SweepAnswer.PUT_BACK,
        SweepAnswer.FAILED,
        SweepAnswer.CANCELLED,
        SweepAnswer.CLAIM_CLEARED,
    }
)
NEEDS_A_PERSON: Final = frozenset({SweepAnswer.UNDECODABLE, SweepAnswer.BROKEN})

HeldAs: TypeAlias = Literal["claim", "ownership"]

_HOLDERS: Final[Mapping[HeldAs, str]] = {"claim": "claimant", "ownership": "owner"}
_WORDS: Final[Mapping[SweepAnswer, str]] = {
    SweepAnswer.PUT_BACK: "put back",
    SweepAnswer.FAILED: "failed after too many losses",
    SweepAnswer.CANCELLED: "cancelled as requested",
    SweepAnswer.CLAIM_CLEARED: "claim cleared",
    SweepAnswer.WATCHED: "watched",
    SweepAnswer.NOT_PROVABLY_DEAD: "stale, not provably dead",
    SweepAnswer.MOVED_ON: "left alone, it moved on",
    SweepAnswer.HELD: "left for the next sweep",
    SweepAnswer.UNDECODABLE: "cannot be read",
    SweepAnswer.BROKEN: "could not be looked after",
}


@dataclass(frozen=True, slots=True)
class SweptRun:
    """
    One stale row and what became of it.

    Attributes:
        held_as: Whether its holder owns the run or has only claimed it.
        holder: The owner or claimant on one readable line.
        silent_for_ms: How old its stamp was.
        reason: The kind of the evidence, the race that was lost, or why nothing was done.
    """

    run_id: str
    held_as: HeldAs
    answer: SweepAnswer
    holder: str
    silent_for_ms: int
    reason: str

    def describe(self) -> str:
        """Say on one line what became of the row and why; the run id is left to the caller."""
        silence = f"silent for {self.silent_for_ms / 1_000:.1f} s"
        holder = f"{_HOLDERS[self.held_as]} {self.holder}, {silence}"
        if self.answer in TAKEN:
            return f"{_WORDS[self.answer]}; {holder}, is gone ({self.reason})"
        return f"{_WORDS[self.answer]}; {holder}; {self.reason}"


@dataclass(frozen=True, slots=True)
class SweepReport:
    """
    What one sweep saw and did.

    Attributes:
        runs: The stale rows of this sweep, claims first, each by run id.
        has_more: Not every stale row has had its turn: some are still watched, or there are
            more of them than one sweep looks at. Sweep again.
        takeovers_blocked: The clock of this process has jumped, so nothing was looked at.
        dry_run: Nothing was written; the answers say what would have become of the rows.
    """

    runs: tuple[SweptRun, ...] = ()
    has_more: bool = False
    takeovers_blocked: bool = False
    dry_run: bool = False

    @property
    def taken(self) -> tuple[SweptRun, ...]:
        """The rows that were taken from a dead holder."""
        return tuple(swept for swept in self.runs if swept.answer in TAKEN)

    @property
    def needs_a_person(self) -> tuple[SweptRun, ...]:
        """The rows that no further sweep will put right."""
        return tuple(swept for swept in self.runs if swept.answer in NEEDS_A_PERSON)

    def counts(self) -> dict[str, int]:
        """Count the answers, in the order in which ``SweepAnswer`` lists them."""
        found = Counter(swept.answer for swept in self.runs)
        return {str(answer): found[answer] for answer in SweepAnswer if answer in found}

    def as_json(self) -> dict[str, Any]:
        """Give plain lists, dicts, texts and numbers."""
        return {**asdict(self), "runs": [asdict(swept) for swept in self.runs]}
