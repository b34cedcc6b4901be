"""Attempts along a time line, as a chart."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from django_runstore.admin.run_page.attempt_line import AttemptLine
from django_runstore.admin.run_page.bars import LEFT, RIGHT, Bar, BarChart


def chart_of(lines: Sequence[AttemptLine], now_ms: int) -> BarChart | None:
    """
    Lay out attempts, the earliest first, on a true scale; None when there is none.

    Args:
        now_ms: Where an attempt that lasts is cut off.
    """
    if not lines:
        return None
    first_ms = min(line.started_at_ms for line in lines)
    ends = [_end(line, now_ms) for line in lines]
    span_ms = max(1, max(ends) - first_ms)

    def place(at_ms: int) -> int:
        return LEFT + (RIGHT - LEFT) * (at_ms - first_ms) // span_ms

    bars = [
        Bar(
            label=f"{line.step} #{line.attempt}",
            note=_note(line),
            kind=_kind(line),
            start_x=place(line.started_at_ms),
            end_x=place(end_ms),
            end_mark="arrow" if line.finished_at_ms is None else "cross" if line.has_error else "",
        )
        for line, end_ms in zip(lines, ends, strict=True)
    ]
    return BarChart(bars, first_ms, first_ms + span_ms)


def _end(line: AttemptLine, now_ms: int) -> int:
    """Where an attempt ends; a clock that was set back makes none end before it began."""
    return max(line.started_at_ms, now_ms if line.finished_at_ms is None else line.finished_at_ms)


def _kind(line: AttemptLine) -> str:
    if line.finished_at_ms is None:
        return "open"
    return "failed" if line.has_error else "done"


def _note(line: AttemptLine) -> str:
    values = {"state": line.state, "lasted": line.lasted}
    if line.has_error:
        return _("%(lasted)s, %(state)s, error") % values
    return _("%(lasted)s, %(state)s") % values
