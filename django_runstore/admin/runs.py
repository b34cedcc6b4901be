"""The admin of runs: what each is doing, who has it, and why it changed hands."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from django_runstore.admin.addresses import run_url
from django_runstore.admin.columns import ACKNOWLEDGED, RunColumns
from django_runstore.admin.created_filter import CreatedFilter
from django_runstore.admin.filters import (
    AttentionFilter,
    CancelRequestedFilter,
    StatusFilter,
    statuses_of,
)
from django_runstore.admin.keyset import Section
from django_runstore.admin.keyset_list import KeysetChangeList
from django_runstore.admin.lineage import LineagePage
from django_runstore.admin.named_filters import (
    HandlerFilter,
    OwnerFilter,
    QueueFilter,
    WaitingFilter,
)
from django_runstore.admin.overview import RunOverview
from django_runstore.admin.run_page import RunPage
from django_runstore.admin.run_search import NEWEST, by_status, found_by, search_sections
from django_runstore.models import Run
from django_runstore.states import RunStatus

_WIDE: Final = (
    "state_json",
    "result_json",
    "error_json",
    "progress_json",
    "waiting_request",
    "cancel_acknowledgement_json",
)
_NAMED: Final = {HandlerFilter.parameter_name, QueueFilter.parameter_name}
_SMALL: Final = {
    AttentionFilter.parameter_name,
    CancelRequestedFilter.parameter_name,
    WaitingFilter.parameter_name,
    OwnerFilter.parameter_name,
}
"""Filters that leave few runs, all of them in an index of their own."""


class RunList(KeysetChangeList):
    """The list of runs."""

    def url_for_result(self, result: Any) -> str:  # noqa: ANN401 - a model, says the base class
        """Link to the page of a run."""
        return run_url(result.run_id, self.model_admin.admin_site)


@admin.register(Run)
class RunAdmin(RunOverview, LineagePage, RunPage, RunColumns):
    """Newest first; found by the beginning of run id or lineage, or by handler."""

    list_display = (
        "name",
        "status_badge",
        "handler_and_queue",
        "lineage",
        "owner",
        "heartbeat",
        "progress_age",
        "setbacks",
        "created_at_time",
        "started_and_finished",
    )
    list_filter = (
        StatusFilter,
        AttentionFilter,
        CancelRequestedFilter,
        HandlerFilter,
        QueueFilter,
        WaitingFilter,
        OwnerFilter,
        CreatedFilter,
    )
    search_fields = ("run_id", "lineage_id", "handler")
    search_help_text = _(
        "The beginning of a run id or of a lineage, or the whole name of a handler; upper and "
        "lower case differ. Ids come first, then lineages, then handlers."
    )
    ordering = tuple(f"-{column}" for column in NEWEST)

    class Media:
        css: ClassVar = {"all": ["runstore/history.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        """Leave wide texts where they are: a state may have megabytes."""
        runs = super().get_queryset(request).defer(*_WIDE)
        return runs.annotate(**{ACKNOWLEDGED: Q(cancel_acknowledgement_json__isnull=False)})

    def search(self, queryset: QuerySet[Run], term: str) -> QuerySet[Run]:
        """Find runs by what people have at hand."""
        return queryset.filter(found_by(term))

    def get_sections(
        self, queryset: QuerySet[Run], term: str, chosen: Mapping[str, str]
    ) -> list[Section[Run]]:
        """Read every list from an index that has it in order, or from a small one."""
        status = chosen.get(StatusFilter.parameter_name)
        statuses = tuple(RunStatus) if status is None else statuses_of(status)
        if term:
            return search_sections(queryset, term, statuses)
        is_whole = status is None and _NAMED.isdisjoint(chosen)
        if is_whole or not _SMALL.isdisjoint(chosen):
            return [Section([queryset], NEWEST)]
        return [Section(by_status(queryset, statuses), NEWEST)]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[RunList]:
        """Link to ids that a browser would resolve away."""
        return RunList
