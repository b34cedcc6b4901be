"""The rounds of a logical run, what they descend from, and what descends from them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django_runstore.models import Run


class Kinship(StrEnum):
    """How a run is related to the lineage."""

    ROUND = "round"
    PARENT = "parent"
    CHILD = "child"
    """It descends from the lineage and has none of its own."""

    FORK = "fork"
    """It descends from the lineage and belongs to another one."""


class EdgeKind(StrEnum):
    """What a line between two runs means."""

    PARENT = "parent"
    NEXT_ROUND = "next_round"


@dataclass(frozen=True, slots=True)
class Kin:
    """
    A run of the family.

    Attributes:
        generation: 0 for the rounds, negative for what they descend from, positive for what
            descends from them.
    """

    run: Run
    kinship: Kinship
    generation: int

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return str(self.run.run_id)

    @property
    def ran_ms(self) -> int | None:
        """How long it took from its first start to its end, if it has ended."""
        started_at_ms, finished_at_ms = self.run.started_at_ms, self.run.finished_at_ms
        if started_at_ms is None or finished_at_ms is None:
            return None
        return int(max(0, finished_at_ms - started_at_ms))


@dataclass(frozen=True, slots=True)
class Edge:
    """A line from one run of the family to another."""

    source: str
    target: str
    kind: EdgeKind


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all that was read."""

    runs: int
    rounds: int
    by_status: Mapping[str, int]
    failures: int
    recoveries: int
    ran_ms: int


@dataclass(frozen=True, slots=True)
class Family:
    """
    Everything that the page and the exports show.

    Attributes:
        kin: Ancestors first, then the rounds in order, then descendants.
        is_complete: Whether there is nothing beyond what was read.
    """

    origin: Run
    kin: Sequence[Kin]
    is_complete: bool
    edges: Sequence[Edge]

    @property
    def logical_id(self) -> str:
        """The name of the logical run."""
        return str(self.origin.lineage_id or self.origin.run_id)

    def totals(self) -> Totals:
        """Add up."""
        return Totals(
            runs=len(self.kin),
            rounds=sum(each.kinship == Kinship.ROUND for each in self.kin),
            by_status=Counter(each.run.status for each in self.kin),
            failures=sum(each.run.failure_count for each in self.kin),
            recoveries=sum(each.run.recovery_count for each in self.kin),
            ran_ms=sum(each.ran_ms or 0 for each in self.kin),
        )
