"""Filters whose choices cost little and whose values are checked before they are used."""

from collections.abc import Iterable
from typing import Any, Final

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.contrib.admin.views.main import SEARCH_VAR
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from django_runstore.admin.attention import CONCERNS
from django_runstore.clocks import clock_for
from django_runstore.services.facts import COMPANION
from django_runstore.states import LIVE_STATUSES, RunStatus

LIVE: Final = "live"


class _KnownValueFilter(SimpleListFilter):
    """A filter that ignores values which it does not offer, whatever the URL says."""

    def narrows(self) -> bool:
        """Tell whether one of the choices was chosen."""
        return self.value() in {str(choice) for choice, _ in self.lookup_choices}

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any] | None:
        """Narrow by a known value."""
        value = self.value()
        return queryset if value is None or not self.narrows() else self.narrow(queryset, value)

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
        return queryset.filter(status__in=statuses_of(value))


def statuses_of(value: str) -> tuple[RunStatus, ...]:
    """Give the statuses that a choice of the filter stands for."""
    return LIVE_STATUSES if value == LIVE else (RunStatus(value),)


class AttentionFilter(_KnownValueFilter):
    """Runs that need a person, by the reason why."""

    title = _("concern")
    parameter_name = "attention"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[Any]:
        """Offer the concerns."""
        return [(each.name, each.label) for each in CONCERNS]

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Compare with the clock that stamps the runs."""
        now_ms = int(clock_for(queryset.db).now_ms())
        concern = next(each for each in CONCERNS if each.name == value)
        return queryset.filter(concern.condition(now_ms))


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


class StreamFilter(_KnownValueFilter):
    """
    The run's own stream or the ownership facts, of the run that was searched for.

    Of all runs no index has one stream in order, and one of them may be rare.
    """

    title = _("stream")
    parameter_name = "stream"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Iterable[Any]:
        """Offer both streams of a run."""
        if not request.GET.get(SEARCH_VAR):
            return []
        return [("own", _("the run's own")), (COMPANION, _("ownership facts"))]

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Filter by companion."""
        return queryset.filter(companion="" if value == "own" else value)
