"""When a run was created, from the year down to the day, by way of the index on that time."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.db import router
from django.db.models import Max, Min, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from django_runstore.clocks import clock_for
from django_runstore.models import Run

_HOUR_MS: Final = 3_600_000
_SPANS: Final[dict[str, tuple[int, Promise]]] = {
    "1h": (1, _("in the past hour")),
    "24h": (24, _("in the past day")),
    "7d": (168, _("in the past 7 days")),
}
_DATE: Final = re.compile(r"([0-9]{4})(?:-([01][0-9])(?:-([0-3][0-9]))?)?", re.ASCII)
_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 9998
_LAST_MS: Final = 253_370_678_399_999
"""Of year 9998, so that no time zone leads past what Python can read."""
_MOST_YEARS: Final = 20
_FORMATS: Final = {1: "Y", 2: "YEAR_MONTH_FORMAT", 3: "DATE_FORMAT"}


@dataclass(frozen=True, slots=True)
class Period:
    """A year, a month or a day of the time zone in force, as its one to three numbers."""

    parts: tuple[int, ...]

    @classmethod
    def read(cls, value: str) -> "Period | None":
        """Read ``2026``, ``2026-10`` or ``2026-10-05``; None for what is on no calendar."""
        match = _DATE.fullmatch(value)
        if match is None:
            return None
        period = cls(tuple(int(part) for part in match.groups() if part is not None))
        try:
            period._begin()
        except ValueError:
            return None
        return period if _FIRST_YEAR <= period.parts[0] <= _LAST_YEAR else None

    @property
    def name(self) -> str:
        """Write it as ``read()`` takes it."""
        return "-".join(f"{part:02}" for part in self.parts)

    @property
    def label(self) -> str:
        """Write it for people."""
        return date_format(self._begin(), _FORMATS[len(self.parts)])

    def bounds_ms(self) -> tuple[int, int]:
        """Give its first millisecond, and the first one after it."""
        begin = self._begin()
        # Long enough to be in the next one, whatever the length of this one.
        end = begin + timedelta(days={1: 366, 2: 31, 3: 1}[len(self.parts)])
        if len(self.parts) < len(_FORMATS):
            end = end.replace(day=1, month=1 if len(self.parts) == 1 else end.month)
        return int(begin.timestamp() * 1000), int(end.timestamp() * 1000)

    def wider(self) -> "Iterator[Period]":
        """Yield the year and the month it lies in, and itself."""
        for length in range(1, len(self.parts) + 1):
            yield Period(self.parts[:length])

    def narrower(self, first_ms: int, last_ms: int) -> "Iterator[Period]":
        """Yield those of its months or days that have something of the span given."""
        if len(self.parts) == len(_FORMATS):
            return
        for number in range(1, 32):
            part = Period.read(f"{self.name}-{number:02}")
            if part is None:
                continue
            begin_ms, end_ms = part.bounds_ms()
            if begin_ms <= last_ms and end_ms > first_ms:
                yield part

    def _begin(self) -> datetime:
        year, month, day = (*self.parts, 1, 1)[:3]
        return datetime(year, month, day, tzinfo=timezone.get_current_timezone())


class CreatedFilter(SimpleListFilter):
    """
    A span that ends now, or a year, a month or a day in the time zone in force.

    Takes the place of ``date_hierarchy``, which reads the whole table to find out what to
    offer. The first and the last run are at the two ends of an index.
    """

    title = _("created")
    parameter_name = "created"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[Any]:
        """Offer spans, and the years, months or days around what is chosen."""
        ends = Run.objects.using(router.db_for_read(Run)).aggregate(
            first=Min("created_at_ms"), last=Max("created_at_ms")
        )
        spans = [(name, label) for name, (_hours, label) in _SPANS.items()]
        if ends["first"] is None:
            return spans
        chosen = Period.read(self.value() or "")
        if chosen is None:
            return [*spans, *((str(year), str(year)) for year in _years(**ends))]
        around = [*chosen.wider(), *chosen.narrower(ends["first"], ends["last"])]
        return [(each.name, each.label) for each in around]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Compare the time; a value that is none of ours filters nothing."""
        value = self.value() or ""
        if value in _SPANS:
            hours, _label = _SPANS[value]
            since_ms = int(clock_for(queryset.db).now_ms()) - hours * _HOUR_MS
            return queryset.filter(created_at_ms__gte=since_ms)
        period = Period.read(value)
        if period is None:
            return queryset
        begin_ms, end_ms = period.bounds_ms()
        return queryset.filter(created_at_ms__gte=begin_ms, created_at_ms__lt=end_ms)


def _years(first: int, last: int) -> list[int]:
    """List the years of the runs, the last one first, as many as fit beside the list."""
    zone = timezone.get_current_timezone()
    known = [min(ms, _LAST_MS) / 1000 for ms in (first, last)]
    first_year, last_year = (datetime.fromtimestamp(s, tz=UTC).astimezone(zone).year for s in known)
    return list(range(last_year, first_year - 1, -1))[:_MOST_YEARS]
