"""The admin of runs: what each is doing, who has it, and why it changed hands."""

from collections.abc import Collection
from typing import Any, Final

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from django_runstore.admin.actions import RunActions
from django_runstore.admin.addresses import run_url
from django_runstore.admin.columns import RunColumns
from django_runstore.admin.created_filter import CreatedFilter
from django_runstore.admin.filters import AttentionFilter, CancelRequestedFilter, StatusFilter
from django_runstore.admin.keyset import Section
from django_runstore.admin.keyset_list import KeysetChangeList
from django_runstore.admin.named_filters import (
    HandlerFilter,
    OwnerFilter,
    QueueFilter,
    WaitingFilter,
)
from django_runstore.admin.run_page import RunPage
from django_runstore.admin.run_search import NEWEST, found_by, search_sections, settled_and_live
from django_runstore.models import Run

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
    StatusFilter.parameter_name,
    AttentionFilter.parameter_name,
    CancelRequestedFilter.parameter_name,
    WaitingFilter.parameter_name,
    OwnerFilter.parameter_name,
}
"""Filters with an index of their own, beside which the settled and live need not be told apart."""


class RunList(KeysetChangeList):
    """The list of runs."""

    def url_for_result(self, result: Any) -> str:  # noqa: ANN401 - a model, says the base class
        """Link to the page of a run."""
        return run_url(result.run_id, self.model_admin.admin_site)


@admin.register(Run)
class RunAdmin(RunActions, RunPage, RunColumns):
    """Newest first; found by the beginning of run id or lineage, or by handler."""

    list_display = (
        "name",
        "status_badge",
        "handler",
        "owner",
        "heartbeat",
        "queue",
        "lineage",
        "created",
        "started",
        "finished",
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

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        """Leave wide texts where they are: a state may have megabytes."""
        return super().get_queryset(request).defer(*_WIDE)

    def search(self, queryset: QuerySet[Run], term: str) -> QuerySet[Run]:
        """Find runs by what people have at hand."""
        return queryset.filter(found_by(term))

    def get_sections(
        self, queryset: QuerySet[Run], term: str, chosen: Collection[str]
    ) -> list[Section[Run]]:
        """Read every list from an index that has it in order, or from a small one."""
        if term:
            return search_sections(queryset, term)
        if not _NAMED.isdisjoint(chosen) and _SMALL.isdisjoint(chosen):
            return [Section(settled_and_live(queryset), NEWEST)]
        return [Section([queryset], NEWEST)]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[RunList]:
        """Link to ids that a browser would resolve away."""
        return RunList
