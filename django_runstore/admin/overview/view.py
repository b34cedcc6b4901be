"""The overview as a part of the admin of runs."""

from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from django_runstore.admin.addresses import owner_token
from django_runstore.admin.badges import status_badge
from django_runstore.admin.overview.chart import chart_of
from django_runstore.admin.overview.figures import MOST_COUNTED, Figures, read_figures
from django_runstore.admin.read_only import ReadOnlyAdmin
from django_runstore.admin.wording import age, brief, duration
from django_runstore.db import waiting_queues
from django_runstore.models import Run


class RunOverview(ReadOnlyAdmin[Run]):
    """Adds a page that says how all runs are."""

    overview_template = "admin/runstore/run/overview.html"

    def get_urls(self) -> list[URLPattern]:
        """Add the page."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_overview"
        view = self.admin_site.admin_view(self.overview_view)
        return [path("overview/", view, name=name), *super().get_urls()]

    def overview_view(self, request: HttpRequest) -> HttpResponse:
        """Show the page to whoever may see runs."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        figures = read_figures(self.get_queryset(request))
        context = {
            **self.admin_site.each_context(request),
            "title": _("Overview"),
            "opts": self.opts,
            "media": self.media,
            "chart": chart_of(figures.hours),
            **self._words(figures),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, self.overview_template, context)

    def _words(self, figures: Figures) -> dict[str, Any]:
        now_ms = figures.now_ms
        return {
            "live": [
                (status_badge(status), _capped(count, MOST_COUNTED), self._list(status=status))
                for status, count in figures.live.items()
            ],
            "concerns": [
                (each, _capped(count, MOST_COUNTED), self._list(attention=each.name))
                for each, count in figures.concerns
                if count
            ],
            "queues": [
                {
                    "name": brief(queue.name),
                    "url": self._list(queue=queue.name, status="live"),
                    "due": _capped(queue.due, waiting_queues.MOST_COUNTED),
                    "waited": duration(max(0, now_ms - queue.since_ms)),
                }
                for queue in figures.queues
            ],
            "supervisors": [
                {
                    "name": line.row.owner.describe(),
                    "url": self._list(owner=owner_token(line.row.owner)),
                    "runs": line.runs,
                    "capacity": line.row.capacity,
                    "queues": _("all")
                    if line.queues is None
                    else ", ".join(map(brief, line.queues)),
                    "version": brief(line.row.version),
                    "started": age(line.row.started_at_ms, now_ms),
                    "pulsed": age(line.row.pulsed_at_ms, now_ms),
                    "is_silent": line.is_silent,
                    "is_draining": line.row.is_draining,
                    "only_polls": line.row.hears_notices is False,
                }
                for line in figures.supervisors
            ],
        }

    def _list(self, **filters: str) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
        url = reverse(name, current_app=self.admin_site.name)
        return f"{url}?{urlencode(filters)}"


def _capped(count: int, most: int) -> str:
    """Write a count that may have been cut off."""
    shown = number_format(count, use_l10n=True, force_grouping=True)
    return _("%(number)s and more") % {"number": shown} if count >= most else shown
