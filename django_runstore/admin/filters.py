"""Filters whose choices cost little and whose values are checked before they are used."""

from collections.abc import Iterable
from typing import Any, Final

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from django_runstore.clocks import clock_for
from django_runstore.models import Run
from django_runstore.services.facts import COMPANION
from django_runstore.states import LIVE_STATUSES, RunStatus

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


class StaleFilter(_KnownValueFilter):
    """Running runs whose owner has not been heard of for longer than its lease."""

    title = _("heartbeat")
    parameter_name = "heartbeat"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[Any]:
        """Offer what needs a look; the others are many."""
        return [("stale", _("stale"))]

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Compare with the clock that stamped the heartbeats."""
        stale = Run.objects.using(queryset.db).stale(int(clock_for(queryset.db).now_ms()))
        return queryset & stale


class CancelRequestedFilter(_KnownValueFilter):
    """Runs that were asked to stop and have not ended."""

    title = _("cancellation")
    parameter_name = "cancellation"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[Any]:
        """Offer what an index holds."""
        return [("requested", _("requested, not settled"))]

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Filter by the condition of that index."""
        return queryset.filter(cancel_requested_at_ms__isnull=False, status__in=LIVE_STATUSES)


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
