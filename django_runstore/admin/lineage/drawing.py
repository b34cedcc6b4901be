"""Where the runs of a family go in a picture: numbers and words, and no markup."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_runstore.admin.lineage.family import EdgeKind, Family, Kin, Kinship
from django_runstore.admin.wording import shown_text

MOST_DRAWN: Final = 60
"""Runs in a picture; the table has all that were read."""

NODE_WIDTH: Final = 190
NODE_HEIGHT: Final = 46
STEP: Final = 66
COLUMN: Final = 252
MARGIN: Final = 30
HEADINGS: Final = 24
BEND: Final = 35
LONGEST_NAME: Final = 22

KINSHIPS: Final[Mapping[Kinship, Promise]] = {
    Kinship.ROUND: gettext_lazy("round"),
    Kinship.PARENT: gettext_lazy("parent"),
    Kinship.CHILD: gettext_lazy("child"),
    Kinship.FORK: gettext_lazy("fork"),
}


@dataclass(frozen=True, slots=True)
class Node:
    """A run in the picture; ``x`` and ``y`` are its upper left corner."""

    kin: Kin
    x: int
    y: int
    is_origin: bool

    @property
    def name(self) -> str:
        """The id, cut to the room there is."""
        name = shown_text(self.kin.run_id)
        return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"

    @property
    def place(self) -> str:
        """What it is to the lineage, and its status."""
        run = self.kin.run
        kinship = str(KINSHIPS[self.kin.kinship])
        if run.round_ordinal is not None:
            kinship = f"{kinship} {run.round_ordinal}"
        return f"{kinship} · {run.get_status_display()}"

    @property
    def title(self) -> str:
        """All of it, for those who do not see the picture or want to know exactly."""
        return f"{shown_text(self.kin.run_id)}: {self.place}"


@dataclass(frozen=True, slots=True)
class Line:
    """A line between two runs, as the commands of an SVG path."""

    path: str
    is_descent: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """
    Runs in columns, one per generation.

    Attributes:
        headings: What the columns are, and where.
        undrawn: How many runs were left out.
    """

    nodes: Sequence[Node]
    lines: Sequence[Line]
    headings: Sequence[tuple[int, str]]
    width: int
    height: int
    undrawn: int
    node_width: int = NODE_WIDTH
    node_height: int = NODE_HEIGHT


def picture_of(family: Family) -> Picture:
    """Lay out the run itself, the newest rounds and the nearest relatives."""
    drawn = _chosen(family)
    first = min(kin.generation for kin in drawn)
    last = max(kin.generation for kin in drawn)
    rows = _Rows(drawn).place()
    origin = family.origin.run_id
    nodes = [
        Node(
            kin,
            MARGIN + COLUMN * (kin.generation - first),
            HEADINGS + MARGIN // 2 + STEP * rows[kin.run_id],
            kin.run_id == origin,
        )
        for kin in drawn
    ]
    headings = [
        (MARGIN + COLUMN * (generation - first), _heading(generation))
        for generation in range(first, last + 1)
    ]
    by_id = {node.kin.run_id: node for node in nodes}
    lines = [
        Line(_path(by_id[edge.source], by_id[edge.target], nodes), edge.kind == EdgeKind.PARENT)
        for edge in family.edges
        if edge.source in by_id and edge.target in by_id
    ]
    return Picture(
        nodes,
        lines,
        headings,
        width=2 * MARGIN + COLUMN * (last - first) + NODE_WIDTH,
        height=HEADINGS + MARGIN + STEP * (max(rows.values()) + 1),
        undrawn=len(family.kin) - len(drawn),
    )


def _chosen(family: Family) -> list[Kin]:
    """Keep the run itself, the newest rounds, and the nearest relatives of what is kept."""
    rounds = [kin for kin in family.kin if kin.generation == 0]
    others = [kin for kin in family.kin if kin.generation != 0]
    room = max(MOST_DRAWN // 2, MOST_DRAWN - len(others))
    kept = {kin.run_id for kin in rounds[-room:]}
    if family.origin.run_id not in kept:
        kept = {family.origin.run_id, *(kin.run_id for kin in rounds[1 - room :])}
    for kin in sorted(others, key=lambda kin: abs(kin.generation)):
        # What hangs from nothing in the picture would have no place in it.
        hangs = kin.generation < 0 or kin.run.parent_run_id in kept
        if hangs and len(kept) < MOST_DRAWN:
            kept.add(kin.run_id)
    return [kin for kin in family.kin if kin.run_id in kept]


class _Rows:
    """Gives each run a row: rounds one below the other, descendants beside their parents."""

    def __init__(self, drawn: Sequence[Kin]) -> None:
        self._drawn = drawn
        self._rows: dict[str, int] = {}
        self._children: dict[str, list[Kin]] = {}
        for kin in drawn:
            if kin.generation > 0:
                self._children.setdefault(str(kin.run.parent_run_id), []).append(kin)

    def place(self) -> dict[str, int]:
        """Return the row of each run by its id."""
        row = 0
        for kin in self._drawn:
            if kin.generation == 0:
                row = self._place(kin, row)
        above = {kin.generation for kin in self._drawn if kin.generation < 0}
        for generation in sorted(above, reverse=True):
            self._place_ancestors(generation)
        return self._rows

    def _place(self, kin: Kin, row: int) -> int:
        """Place a run and what descends from it; the first row that is free below."""
        self._rows[kin.run_id] = row
        below = row
        for child in self._children.get(kin.run_id, ()):
            below = self._place(child, below)
        return max(row + 1, below)

    def _place_ancestors(self, generation: int) -> None:
        """Place each beside the first run that descends from it."""
        beside: dict[str, int] = {}
        for kin in self._drawn:
            parent = kin.run.parent_run_id
            if kin.generation > generation and parent is not None and kin.run_id in self._rows:
                beside[parent] = min(beside.get(parent, len(self._drawn)), self._rows[kin.run_id])
        here = [kin for kin in self._drawn if kin.generation == generation]
        free = 0
        for kin in sorted(here, key=lambda kin: beside.get(kin.run_id, 0)):
            self._rows[kin.run_id] = max(free, beside.get(kin.run_id, 0))
            free = self._rows[kin.run_id] + 1


def _path(source: Node, target: Node, nodes: Iterable[Node]) -> str:
    """Lead from one run to another without crossing a third of the same column."""
    if source.x != target.x:
        x, y = source.x + NODE_WIDTH, source.y + NODE_HEIGHT // 2
        to_x, to_y = target.x, target.y + NODE_HEIGHT // 2
        return f"M{x} {y}C{x + BEND} {y} {to_x - BEND} {to_y} {to_x} {to_y}"
    upper, lower = sorted((source.y, target.y))
    if not any(node.x == source.x and upper < node.y < lower for node in nodes):
        x = source.x + NODE_WIDTH // 2
        if source.y < target.y:
            return f"M{x} {source.y + NODE_HEIGHT}V{target.y}"
        return f"M{x} {source.y}V{target.y + NODE_HEIGHT}"
    x, y, to_y = source.x, source.y + NODE_HEIGHT // 2, target.y + NODE_HEIGHT // 2
    return f"M{x} {y}C{x - MARGIN} {y} {x - MARGIN} {to_y} {x} {to_y}"


def _heading(generation: int) -> str:
    if generation == 0:
        return _("Rounds")
    if generation < 0:
        return _("Parents") if generation == -1 else _("Parents of parents")
    return _("Children and forks") if generation == 1 else _("Their children and forks")
