"""The admin of runs: what each is doing, who has it, and why it changed hands."""

from collections.abc import Callable
from typing import Any, ClassVar, Final

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.db import router
from django.db.models import Q, QuerySet
from django.forms import CheckboxInput
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from django_runstore.admin.addresses import admin_segment, form_value, from_form, run_url
from django_runstore.admin.cancelling import (
    LINEAGE_REQUESTED,
    MOST_CANCELLED,
    REQUESTED,
    Report,
    cancel_lineages,
    cancel_runs,
    listed,
)
from django_runstore.admin.columns import RunColumns
from django_runstore.admin.filters import (
    CancelRequestedFilter,
    CreatedFilter,
    StaleFilter,
    StatusFilter,
)
from django_runstore.admin.read_only import IndexedChangeList
from django_runstore.models import Run
from django_runstore.services import RunStore
from django_runstore.states import is_terminal_run_status
from django_runstore.supervision.announcements import printable

_WIDE: Final = (
    "state_json",
    "result_json",
    "error_json",
    "progress_json",
    "waiting_request",
    "cancel_acknowledgement_json",
)

_CAME_FROM_RUN: Final = "_from_run"
"""In the form on a run's page: lead back there."""


class RunList(IndexedChangeList):
    """The list of runs."""

    def url_for_result(self, result: Any) -> str:  # noqa: ANN401 - a model, says the base class
        """Link to the page of a run."""
        return run_url(result.run_id, self.model_admin.admin_site)


@admin.register(Run)
class RunAdmin(RunColumns):
    """Newest first; found by the beginning of run id, lineage or handler."""

    list_display = (
        "name",
        "status",
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
    actions = ("cancel_selected", "cancel_lineage")
    fieldsets: ClassVar = (
        (
            None,
            {
                "fields": (
                    "whole_id",
                    ("status", "handler", "queue", "priority"),
                    ("lineage", "parent", "code_version"),
                    ("failure_count", "recovery_count", "waiting", "wakes"),
                )
            },
        ),
        (
            _("Ownership"),
            {
                "fields": (
                    ("owner", "heartbeat", "owner_fence"),
                    ("claimant", "claimed", "fence"),
                    "ownership",
                )
            },
        ),
        (_("Journal"), {"fields": ("notes", "journal")}),
        (
            _("Times"),
            {
                "fields": (
                    ("created", "available", "started", "finished"),
                    ("progressed", "deadline", "cancel_requested"),
                )
            },
        ),
        (_("Data"), {"fields": ("progress", "error", "result", "state")}),
    )

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

    def has_cancel_run_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may ask runs to stop; being able to see them is not enough."""
        return request.user.has_perm("runstore.cancel_run")

    def has_cancel_lineage_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may ask all rounds of a logical run to stop."""
        return request.user.has_perm("runstore.cancel_lineage")

    @admin.action(description=_("Cancel selected runs"), permissions=["cancel_run"])
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> HttpResponse | None:
        """Request cancellation, and report each outcome in words."""
        return self._cancel(request, queryset, cancel_runs, str(REQUESTED))

    @admin.action(
        description=_("Cancel the whole lineage of selected runs"), permissions=["cancel_lineage"]
    )
    def cancel_lineage(self, request: HttpRequest, queryset: QuerySet[Run]) -> HttpResponse | None:
        """Request the cancellation of every live round, and report each outcome in words."""
        return self._cancel(request, queryset, cancel_lineages, str(LINEAGE_REQUESTED))

    def _cancel(
        self,
        request: HttpRequest,
        queryset: QuerySet[Run],
        cancel: Callable[[RunStore, list[Run], Callable[[Run], object]], Report],
        note: str,
    ) -> HttpResponse | None:
        runs = list(queryset.order_by("run_id")[: MOST_CANCELLED + 1])
        if len(runs) > MOST_CANCELLED:
            message = _now("Select at most %(most)d runs; none was asked to stop.")
            self.message_user(request, message % {"most": MOST_CANCELLED}, messages.ERROR)
            return None
        if not runs:
            self.message_user(request, _now("None of them is there any more."), messages.WARNING)
            return None
        # Where writes go, whatever database the list was read from.
        store = RunStore(router.db_for_write(Run))
        for words, names in cancel(store, runs, lambda run: self.log_change(request, run, note)):
            level = messages.SUCCESS if words == note else messages.WARNING
            self.message_user(request, f"{words}: {listed(names)}", level)
        if _CAME_FROM_RUN in request.POST and len(runs) == 1:
            return HttpResponseRedirect(run_url(runs[0].run_id, self.admin_site))
        return None

    def _cancel_actions(self, request: HttpRequest, run: Run) -> list[tuple[str, str]]:
        offered = []
        if self.has_cancel_run_permission(request) and not is_terminal_run_status(run.status):
            offered.append(("cancel_selected", _now("Cancel run")))
        if self.has_cancel_lineage_permission(request):
            offered.append(("cancel_lineage", _now("Cancel the whole lineage")))
        return offered

    def action_checkbox(self, obj: Run) -> SafeString:
        """Offer the run for an action."""
        label = _now("Select run %(run)s") % {"run": printable(obj.run_id)}
        checkbox = CheckboxInput({"class": "action-select", "aria-label": label}, lambda _: False)
        return checkbox.render(ACTION_CHECKBOX_NAME, form_value(obj.run_id))

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:  # noqa: ANN401 - Django's own type is a union that says no more
        """Read the selected ids the way the checkboxes write them."""
        posted = request.POST.copy()
        selected = posted.getlist(ACTION_CHECKBOX_NAME)
        posted.setlist(ACTION_CHECKBOX_NAME, list(map(from_form, selected)))
        request.POST = posted  # type: ignore[assignment]  # Django's stubs want an immutable one
        return super().changelist_view(request, extra_context)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - as changelist_view
        """Show a run whose id may be a pair of dots; its title is short whatever the id."""
        segment = admin_segment(object_id)
        context = {"subtitle": printable(unquote(segment))} | (extra_context or {})
        return super().change_view(request, segment, form_url, context)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the buttons on top of the page need."""
        run: Run = context["original"]
        site = self.admin_site
        context |= {
            "history_url": run_url(run.run_id, site, "history"),
            "list_url": reverse("admin:runstore_run_changelist", current_app=site.name),
            "cancel_actions": self._cancel_actions(request, run),
            "selected_name": ACTION_CHECKBOX_NAME,
            "selected_value": form_value(run.run_id),
            "came_from_run": _CAME_FROM_RUN,
        }
        return super().render_change_form(request, context, *args, **kwargs)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> Any:  # noqa: ANN401 - as changelist_view
        """Show who asked the run to stop."""
        return super().history_view(request, admin_segment(object_id), extra_context)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[RunList]:
        """Link to ids that a browser would resolve away."""
        return RunList
