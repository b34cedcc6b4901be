"""The admin of runs: what each is doing, who has it, and why it changed hands."""

from typing import Any, Final

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from django_runstore.admin.actions import RunActions
from django_runstore.admin.addresses import run_url
from django_runstore.admin.columns import RunColumns
from django_runstore.admin.filters import (
    CancelRequestedFilter,
    CreatedFilter,
    StaleFilter,
    StatusFilter,
)
from django_runstore.admin.read_only import IndexedChangeList
from django_runstore.admin.run_page import RunPage
from django_runstore.models import Run

_WIDE: Final = (
    "state_json",
    "result_json",
    "error_json",
    "progress_json",
    "waiting_request",
    "cancel_acknowledgement_json",
)


class RunList(IndexedChangeList):
    """The list of runs."""

    def url_for_result(self, result: Any) -> str:  # noqa: ANN401 - a model, says the base class
        """Link to the page of a run."""
        return run_url(result.run_id, self.model_admin.admin_site)


@admin.register(Run)
class RunAdmin(RunActions, RunPage, RunColumns):
    """Newest first; found by the beginning of run id, lineage or handler."""

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
    list_filter = (StatusFilter, StaleFilter, CancelRequestedFilter, CreatedFilter)
    search_fields = ("run_id", "lineage_id", "handler")
    search_help_text = _("The beginning of a run id, a lineage or a handler.")
    ordering = ("-created_at_ms", "-run_id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        """Leave wide texts where they are: a state may have megabytes."""
        return super().get_queryset(request).defer(*_WIDE)

    def search(self, queryset: QuerySet[Run], term: str) -> QuerySet[Run]:
        """Find runs by what people have at hand."""
        return queryset.filter(
            Q(run_id__startswith=term)
            | Q(lineage_id__startswith=term)
            | Q(handler__startswith=term)
        )

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[RunList]:
        """Link to ids that a browser would resolve away."""
        return RunList
