"""The page of a run as a part of its admin."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib.admin.utils import unquote
from django.http import HttpRequest, HttpResponse

from django_runstore.admin.addresses import admin_segment, run_url
from django_runstore.admin.read_only import database_of
from django_runstore.admin.run_page.attempts import AttemptsSection
from django_runstore.admin.run_page.documents import DocumentsSection
from django_runstore.admin.run_page.fields import RunFields
from django_runstore.admin.run_page.journal import JournalSection
from django_runstore.admin.run_page.ownership import OwnershipSection
from django_runstore.admin.run_page.sections import PageOf, Section, shown
from django_runstore.admin.situation import situation_of
from django_runstore.clocks import clock_for
from django_runstore.display_text import printable

SECTIONS: Sequence[Section] = (
    OwnershipSection(),
    AttemptsSection(),
    JournalSection(),
    DocumentsSection(),
)


class RunPage(RunFields):
    """
    Shows one run: what it is doing, its columns, and its history in sections.

    To show other sections, or some of your own, subclass and set ``run_sections``.
    """

    run_sections: ClassVar[Sequence[Section]] = SECTIONS

    fieldsets: ClassVar = (
        (
            None,
            {
                "fields": (
                    "whole_id",
                    ("status_badge", "whole_handler", "whole_queue", "priority"),
                    ("whole_lineage", "parent", "whole_code_version"),
                    ("owner", "heartbeat", "progressed", "owner_fence"),
                    ("claimant", "claimed", "fence"),
                    ("created", "available", "started", "finished"),
                    ("waiting", "wakes", "deadline"),
                    ("cancel_requested", "cancel_seen"),
                    ("failure_count", "recovery_count", "whole_concurrency_key"),
                ),
                "classes": ("runstore-columns",),
            },
        ),
    )

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - Django's own type is a union that says no more
        """Show a run whose id may be a pair of dots; its title is short whatever the id."""
        segment = admin_segment(object_id)
        context = {"subtitle": printable(unquote(segment))} | (extra_context or {})
        return super().change_view(request, segment, form_url, context)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what stands around the columns."""
        run = context["original"]
        using = database_of(run)
        now_ms = math.floor(clock_for(using).now_ms())
        page = PageOf(run, using, request, now_ms, self.admin_site)
        context |= {
            "run_name": printable(run.run_id),
            "history_url": run_url(run.run_id, self.admin_site, "history"),
            "run_situation": situation_of(run, using),
            "run_sections": [shown(section, page) for section in self.run_sections],
        }
        return super().render_change_form(request, context, *args, **kwargs)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> Any:  # noqa: ANN401 - as change_view
        """Show what people had done to the run."""
        segment = admin_segment(object_id)
        run_id = unquote(segment)
        context = {
            "media": self.media,
            "run_name": printable(run_id),
            "run_page_url": run_url(run_id, self.admin_site),
        }
        return super().history_view(request, segment, context | (extra_context or {}))
