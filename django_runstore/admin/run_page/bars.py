"""A chart of bars along a time line: numbers and words for a drawing, and no markup."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from django_runstore.admin.wording import moment

WIDTH: Final = 960
LEFT: Final = 250
"""How far from the left the time begins; before it stands what the bar is about."""

RIGHT: Final = 760
"""Where the time ends; behind it stands what there is to say about the bar."""

ROW: Final = 30
TOP: Final = 34
FOOT: Final = 10
NARROWEST_BAR: Final = 4
LONGEST_LABEL: Final = 34

EndMark = Literal["", "cross", "arrow", "tick"]


@dataclass(frozen=True, slots=True)
class Bar:
    """
    One line of the chart; lengths in units of the drawing.

    Attributes:
        kind: Chooses the colour; whatever it tells is told by ``note`` as well.
        start_x: None when there is no bar on the line.
        mark_x: Where a diamond stands, if one does.
    """

    label: str
    note: str
    kind: str
    start_x: int | None
    end_x: int
    mark_x: int | None = None
    end_mark: EndMark = ""

    @property
    def width(self) -> int:
        """How long the bar is; the shortest can still be seen."""
        return 0 if self.start_x is None else max(NARROWEST_BAR, self.end_x - self.start_x)

    @property
    def short_label(self) -> str:
        """The label, cut to the room there is."""
        if len(self.label) <= LONGEST_LABEL:
            return self.label
        return f"{self.label[: LONGEST_LABEL - 1]}…"


@dataclass(frozen=True, slots=True)
class BarChart:
    """Bars from top to bottom, between two moments."""

    bars: Sequence[Bar]
    first_ms: int
    last_ms: int

    width: int = WIDTH
    left: int = LEFT
    right: int = RIGHT
    top: int = TOP

    def placed(self) -> Iterator[tuple[int, Bar]]:
        """Yield each bar with the upper edge of its line."""
        for index, bar in enumerate(self.bars):
            yield TOP + ROW * index, bar

    @property
    def first(self) -> str:
        """The moment at the left end."""
        return moment(self.first_ms)

    @property
    def last(self) -> str:
        """The moment at the right end."""
        return moment(self.last_ms)

    @property
    def foot(self) -> int:
        """Where the lines of the frame end."""
        return TOP + ROW * len(self.bars)

    @property
    def height(self) -> int:
        """How high the drawing is."""
        return self.foot + FOOT

    @property
    def summary(self) -> str:
        """What there is to see, for those who do not see it."""
        return "; ".join(f"{bar.label}: {bar.note}" for bar in self.bars)
