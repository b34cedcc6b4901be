"""Who held a run from when to when, as a chart."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, assert_never

from django.utils.translation import gettext as _

from django_runstore.admin.run_page.bars import LEFT, RIGHT, Bar, BarChart, EndMark
from django_runstore.admin.run_page.tenures import Ending, Tenure
from django_runstore.admin.wording import duration, shown_text

MOST_TENURES: Final = 30
"""Tenures that are drawn, the latest."""

_END_MARKS: Final[Mapping[Ending, EndMark]] = {
    Ending.OPEN: "arrow",
    Ending.RELEASED: "tick",
    Ending.DISPLACED: "cross",
    Ending.EXPIRED: "cross",
}


class Scale:
    """
    Places moments on a line on which long stretches are shortened.

    A run that was taken over within seconds and then runs for hours would be one thin line
    on a true scale. Between two neighbouring moments the space grows with the logarithm of
    the time.
    """

    def __init__(self, moments: Iterable[int], start: int, end: int) -> None:
        ordered = sorted(set(moments))
        weights = [0.0]
        for earlier, later in pairwise(ordered):
            weights.append(weights[-1] + 1 + math.log2(1 + (later - earlier) / 1000))
        whole = weights[-1] or 1.0
        self._places: Mapping[int, int] = {
            at_ms: round(start + (end - start) * weight / whole)
            for at_ms, weight in zip(ordered, weights, strict=True)
        }

    def __call__(self, at_ms: int) -> int:
        """Place one of the moments that the scale was made for."""
        return self._places[at_ms]


def timeline_of(tenures: Sequence[Tenure], now_ms: int) -> BarChart | None:
    """
    Lay out the last ``MOST_TENURES``; None when there is nothing to draw.

    Args:
        now_ms: Where a tenure that lasts is cut off.
    """
    drawn = tenures[-MOST_TENURES:]
    moments = [at_ms for tenure in drawn for at_ms in tenure.moments()]
    if not moments:
        return None
    if any(tenure.ending == Ending.OPEN for tenure in drawn):
        moments.append(max([now_ms, *moments]))
    scale = Scale(moments, LEFT, RIGHT)
    first_ms, last_ms = min(moments), max(moments)
    bars = [_bar(tenure, scale, first_ms, last_ms) for tenure in drawn]
    return BarChart(bars, first_ms, last_ms)


def _bar(tenure: Tenure, scale: Scale, first_ms: int, last_ms: int) -> Bar:
    ended_at_ms = last_ms if tenure.ended_at_ms is None else tenure.ended_at_ms
    # What began before the history that was read is drawn from the edge on.
    begun_before = tenure.claimed_at_ms is None and tenure.owned_at_ms is None
    owned_at_ms = first_ms if begun_before else tenure.owned_at_ms
    since_ms = tenure.claimed_at_ms if tenure.owned_at_ms is None else tenure.owned_at_ms
    ending = _ending_in_words(tenure)
    lasted = None if since_ms is None else duration(max(0, ended_at_ms - since_ms))
    holder = shown_text(tenure.holder.describe())
    return Bar(
        label=holder if tenure.fence is None else f"#{tenure.fence} {holder}",
        note=ending if lasted is None else f"{lasted}, {ending}",
        kind=tenure.ending.value,
        start_x=None if owned_at_ms is None else scale(owned_at_ms),
        end_x=scale(ended_at_ms),
        mark_x=None if tenure.claimed_at_ms is None else scale(tenure.claimed_at_ms),
        end_mark=_END_MARKS[tenure.ending],
    )


def _ending_in_words(tenure: Tenure) -> str:
    is_claim = tenure.owned_at_ms is None and tenure.claimed_at_ms is not None
    match tenure.ending:
        case Ending.OPEN:
            return _("claims it") if is_claim else _("owns it")
        case Ending.RELEASED:
            return _("left the claim") if is_claim else _("gave it up")
        case Ending.DISPLACED:
            return _("lost it")
        case Ending.EXPIRED:
            return _("claim cleared")
        case _ as unreachable:
            assert_never(unreachable)
