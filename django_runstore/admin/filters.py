"""Filters whose choices cost little and whose values are checked before they are used."""

from collections.abc import Iterable
from typing import Any, ClassVar, Final

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from django_runstore.admin.wording import shown_text
from django_runstore.clocks import clock_for
from django_runstore.models import Run
from django_runstore.services.facts import COMPANION
from django_runstore.states import LIVE_STATUSES, RunStatus

MOST_CHOICES: Final = 50
LIVE: Final = "live"

_HOUR_MS: Final = 3_600_000


class _KnownValueFilter(SimpleListFilter):
    """A filter that ignores values which it does not offer, whatever the URL says."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any] | None:
        value = self.value()
        if value is None or value not in {str(choice) for choice, _ in self.lookup_choices}:
            return queryset
        return self.narrow(queryset, value)

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Keep the rows that a known value stands for."""
        raise NotImplementedError


class StatusFilter(_KnownValueFilter):
    """One status, or all that are not settled."""

    title = _("status")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[Any]:
        """Offer what is known without asking the database."""
        return [(LIVE, _("not settled")), *RunStatus.choices]

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Filter by status."""
        return queryset.filter(status__in=LIVE_STATUSES if value == LIVE else [value])


class _OfLiveRuns(_KnownValueFilter):
    """The values of one column among runs that are not settled; of the others there are many."""

    column: ClassVar[str]

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[Any]:
        live = Run.objects.live().exclude(**{self.column: ""}).order_by(self.column)
        values = live.values_list(self.column, flat=True).distinct()[:MOST_CHOICES]
        return [(value, shown_text(value)) for value in values]

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        return queryset.filter(**{self.column: value})


class QueueFilter(_OfLiveRuns):
    """The queues with runs that are not settled."""

    title = _("queue of live runs")
    parameter_name = "queue"
    column = "queue"


class HandlerFilter(_OfLiveRuns):
    """The handlers with runs that are not settled."""

    title = _("handler of live runs")
    parameter_name = "handler"
    column = "handler"


class CreatedFilter(_KnownValueFilter):
    """How long ago a run was created, by way of the index on that time."""

    title = _("created")
    parameter_name = "created"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[Any]:
        """Offer spans in hours."""
        return [
            ("1", _("in the past hour")),
            ("24", _("in the past day")),
            ("168", _("in the past 7 days")),
        ]

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Compare with the clock that stamped the runs."""
        since_ms = clock_for(queryset.db).now_ms() - int(value) * _HOUR_MS
        return queryset.filter(created_at_ms__gte=int(since_ms))


class StreamFilter(_KnownValueFilter):
    """The run's own stream or the ownership facts."""

    title = _("stream")
    parameter_name = "stream"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[Any]:
        """Offer both streams."""
        return [("own", _("the run's own")), (COMPANION, _("ownership facts"))]

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Filter by companion."""
        return queryset.filter(companion="" if value == "own" else value)
