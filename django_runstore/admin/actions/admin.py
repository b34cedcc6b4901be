"""What people can have done to runs, as a part of their admin."""

from collections.abc import Callable
from typing import Any, Final

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db import router
from django.db.models import QuerySet
from django.forms import CheckboxInput
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from django_runstore.admin.addresses import form_value, from_form, run_url
from django_runstore.admin.cancelling import (
    LINEAGE_REQUESTED,
    MOST_CANCELLED,
    REQUESTED,
    Report,
    cancel_lineages,
    cancel_runs,
    listed,
)
from django_runstore.admin.read_only import ReadOnlyAdmin
from django_runstore.models import Run
from django_runstore.services import RunStore
from django_runstore.states import is_terminal_run_status
from django_runstore.supervision.announcements import printable

_CAME_FROM_RUN: Final = "_from_run"
"""In the form on a run's page: lead back there."""


class RunActions(ReadOnlyAdmin[Run]):
    """Asks runs to stop."""

    actions = ("cancel_selected", "cancel_lineage")

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

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the buttons on top of the page need."""
        run: Run = context["original"]
        context |= {
            "list_url": reverse("admin:runstore_run_changelist", current_app=self.admin_site.name),
            "cancel_actions": self._cancel_actions(request, run),
            "selected_name": ACTION_CHECKBOX_NAME,
            "selected_value": form_value(run.run_id),
            "came_from_run": _CAME_FROM_RUN,
        }
        return super().render_change_form(request, context, *args, **kwargs)
