"""The page of a run as a part of its admin."""

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib.admin.utils import unquote
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from django_runstore.admin.addresses import admin_segment, run_url
from django_runstore.admin.run_page.fields import RunFields
from django_runstore.display_text import printable

if TYPE_CHECKING:
    from django_runstore.models import Run


class RunPage(RunFields):
    """Shows one run."""

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
        context["history_url"] = run_url(run.run_id, self.admin_site, "history")
        return super().render_change_form(request, context, *args, **kwargs)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> Any:  # noqa: ANN401 - as changelist_view
        """Show who asked the run to stop."""
        return super().history_view(request, admin_segment(object_id), extra_context)
