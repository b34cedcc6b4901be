"""What was settled per hour as a drawing that needs no script and no style of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.formats import date_format

from django_runstore.admin.overview.figures import Hour
from django_runstore.admin.wording import local_time

HEIGHT: Final = 120
STEP: Final = 44
BAR: Final = 34
_ROUND_TOPS: Final = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class Bar:
    """One hour: what went well at the bottom, failures and cancellations stacked on it."""

    x: int
    middle_x: int
    label: str
    is_labelled: bool
    hour: Hour
    completed_y: float
    completed_height: float
    cancelled_y: float
    cancelled_height: float
    failed_y: float
    failed_height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """
    The bars, and the scale that they are drawn to.

    Attributes:
        top: The number at the upper end, one that reads easily.
    """

    bars: list[Bar]
    top: int
    width: int
    height: int = HEIGHT
    bar_width: int = BAR

    @property
    def middle(self) -> float:
        """The number half way up."""
        return self.top / 2


def chart_of(hours: Sequence[Hour]) -> Chart:
    """Draw the hours, the current one at the right."""
    top = _round_top(
        max((hour.completed + hour.failed + hour.cancelled for hour in hours), default=0)
    )
    scale = HEIGHT / top
    bars = []
    for number, hour in enumerate(hours):
        completed, cancelled, failed = (
            round(count * scale, 2) for count in (hour.completed, hour.cancelled, hour.failed)
        )
        bars.append(
            Bar(
                x=number * STEP + (STEP - BAR) // 2,
                middle_x=number * STEP + STEP // 2,
                label=date_format(local_time(hour.begins_at_ms), "H:i"),
                is_labelled=(len(hours) - 1 - number) % 4 == 0,
                hour=hour,
                completed_y=HEIGHT - completed,
                completed_height=completed,
                cancelled_y=round(HEIGHT - completed - cancelled, 2),
                cancelled_height=cancelled,
                failed_y=round(HEIGHT - completed - cancelled - failed, 2),
                failed_height=failed,
            )
        )
    return Chart(bars, top, width=len(hours) * STEP)


def _round_top(most: int) -> int:
    """Give the next number of the kind 1, 2, 5, 10, 20, 50 that all bars fit under."""
    power = 1
    while True:
        for factor in _ROUND_TOPS:
            if factor * power >= most:
                return factor * power
        power *= 10
