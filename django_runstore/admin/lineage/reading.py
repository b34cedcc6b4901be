"""Read the family of a run, within bounds: one query for the rounds and one per generation."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from django_runstore.admin.lineage.family import Edge, EdgeKind, Family, Kin, Kinship
from django_runstore.models import Run
from django_runstore.querysets import RunQuerySet

MOST_ROUNDS: Final = 200
"""Rounds that are read, the newest; the run that was asked for is always among them."""

MOST_RELATIVES: Final = 200
"""Parents, children and forks that are read, the nearest."""

ANCESTOR_LEVELS: Final = 2
DESCENDANT_LEVELS: Final = 3

_COLUMNS: Final = (
    "run_id",
    "status",
    "handler",
    "queue",
    "lineage_id",
    "round_ordinal",
    "parent_run_id",
    "created_at_ms",
    "started_at_ms",
    "finished_at_ms",
    "cancel_requested_at_ms",
    "failure_count",
    "recovery_count",
)


def family_of(origin: Run, runs: RunQuerySet) -> Family:
    """
    Read what belongs to a run.

    Args:
        origin: Any round; a run without a lineage is a round of its own.
        runs: Those that the reader may see; the others are no part of any family.
    """
    newest = list(runs.lineage_of(origin.run_id).only(*_COLUMNS).reverse()[: MOST_ROUNDS + 1])
    rounds = newest[:MOST_ROUNDS][::-1]
    if origin.run_id not in {each.run_id for each in rounds}:
        rounds = [*runs.filter(pk=origin.run_id).only(*_COLUMNS), *rounds]
    logical_id = origin.lineage_id or origin.run_id
    # Rounds that are out of sight are no relatives of those in sight.
    others = runs.exclude(lineage_id=logical_id).exclude(pk=logical_id).only(*_COLUMNS)
    relatives = _Relatives(others, rounds)
    relatives.read_ancestors()
    relatives.read_descendants()
    kin = sorted(relatives.found.values(), key=lambda each: each.generation)
    is_complete = len(newest) <= MOST_ROUNDS and not relatives.has_more
    return Family(origin, kin, is_complete, tuple(_edges(kin, rounds)))


class _Relatives:
    """Collects a family, generation by generation."""

    def __init__(self, runs: RunQuerySet, rounds: Sequence[Run]) -> None:
        self._runs = runs
        self._room = MOST_RELATIVES
        self.has_more = False
        self.found = {each.run_id: Kin(each, Kinship.ROUND, 0) for each in rounds}

    def read_ancestors(self) -> None:
        """Go up from the rounds."""
        below: Iterable[Run] = [each.run for each in self.found.values()]
        for level in range(1, ANCESTOR_LEVELS + 1):
            wanted = {each.parent_run_id for each in below} - {None, *self.found}
            if not wanted:
                return
            below = self._take(self._runs.filter(pk__in=wanted).order_by("run_id"))
            self._add(below, Kinship.PARENT, -level)
        self.has_more |= any(each.parent_run_id not in {None, *self.found} for each in below)

    def read_descendants(self) -> None:
        """Go down from the rounds; one level more than is shown tells whether there is more."""
        above = [each.run_id for each in self.found.values() if each.generation == 0]
        for level in range(1, DESCENDANT_LEVELS + 1):
            children = self._runs.filter(parent_run_id__in=above).exclude(pk__in=self.found)
            new = self._take(children.order_by("created_at_ms", "run_id"))
            for each in new:
                kinship = Kinship.CHILD if each.lineage_id is None else Kinship.FORK
                self._add([each], kinship, level)
            above = [each.run_id for each in new]
            if not above:
                return
        self.has_more |= self._runs.filter(parent_run_id__in=above).exists()

    def _take(self, runs: RunQuerySet) -> list[Run]:
        taken = list(runs[: self._room + 1])
        self.has_more |= len(taken) > self._room
        taken = taken[: self._room]
        self._room -= len(taken)
        return taken

    def _add(self, runs: Iterable[Run], kinship: Kinship, generation: int) -> None:
        for run in runs:
            self.found[run.run_id] = Kin(run, kinship, generation)


def _edges(kin: Iterable[Kin], rounds: Sequence[Run]) -> Iterator[Edge]:
    """Draw a line for each descent, and one between rounds that follow without one."""
    kin = list(kin)
    known = {each.run_id for each in kin}
    descents = {
        (each.run.parent_run_id, each.run_id) for each in kin if each.run.parent_run_id in known
    }
    for each in kin:
        if each.run.parent_run_id in known:
            yield Edge(str(each.run.parent_run_id), each.run_id, EdgeKind.PARENT)
    for earlier, later in pairwise(rounds):
        if (earlier.run_id, later.run_id) not in descents:
            yield Edge(earlier.run_id, later.run_id, EdgeKind.NEXT_ROUND)
