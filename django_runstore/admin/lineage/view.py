"""The page of a lineage as a part of the admin of runs."""

from typing import TYPE_CHECKING, Any, cast

from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from django_runstore.admin.actions import RunActions
from django_runstore.admin.addresses import admin_segment, run_url
from django_runstore.admin.badges import status_badge
from django_runstore.admin.lineage.drawing import KINSHIPS, picture_of
from django_runstore.admin.lineage.exports import EXPORTS
from django_runstore.admin.lineage.family import Family, Kin
from django_runstore.admin.lineage.reading import family_of
from django_runstore.admin.read_only import database_of
from django_runstore.admin.wording import duration, moment, shown_text
from django_runstore.display_text import printable
from django_runstore.states import RunStatus

if TYPE_CHECKING:
    from django_runstore.querysets import RunQuerySet


class LineagePage(RunActions):
    """Shows what a run belongs to: rounds, parents, children and forks."""

    lineage_template = "admin/runstore/run/lineage.html"

    def get_urls(self) -> list[URLPattern]:
        """Add the page."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_lineage"
        view = self.admin_site.admin_view(self.lineage_view)
        return [path("<path:object_id>/lineage/", view, name=name), *super().get_urls()]

    def lineage_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the lineage of a run, or write it in the format that the address asks for."""
        run_id = unquote(admin_segment(object_id))
        # Refuses ids that could not be stored, and finds nothing for those that are not.
        run = self.get_object(request, run_id)
        if not self.has_view_permission(request, run):
            raise PermissionDenied
        if run is None:
            raise Http404
        runs = cast("RunQuerySet", self.get_queryset(request)).using(database_of(run))
        family = family_of(run, runs)
        wanted = request.GET.get("format")
        if wanted is not None:
            return _exported(family, wanted)
        name = printable(run_id)
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "title": _("Lineage of %(run)s") % {"run": name},
            "subtitle": None,
            "opts": self.opts,
            "media": self.media,
            "runstore_site": self.admin_site,
            "run_name": name,
            "run_page_url": run_url(run_id, self.admin_site),
            "run_buttons": self.buttons_for(request, run, back="lineage"),
            "family": family,
            "logical_id": shown_text(family.logical_id),
            "picture": picture_of(family),
            "rows": [_row(kin) for kin in family.kin],
            "totals": _totals(family),
            "formats": list(EXPORTS),
        }
        return TemplateResponse(request, self.lineage_template, context)


def _exported(family: Family, wanted: str) -> HttpResponse:
    export = EXPORTS.get(wanted)
    if export is None:
        raise Http404
    response = HttpResponse(export.write(family), content_type=export.content_type)
    response["Content-Disposition"] = f'attachment; filename="{export.file_name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _row(kin: Kin) -> dict[str, Any]:
    """Say what stands in the columns of the table."""
    run = kin.run
    return {
        "run_id": run.run_id,
        "kinship": KINSHIPS[kin.kinship],
        "lineage": "-" if run.lineage_id is None else shown_text(run.lineage_id),
        "round": run.round_ordinal,
        "status": status_badge(run.status),
        "handler": shown_text(run.handler) or "-",
        "created": moment(run.created_at_ms),
        "started": moment(run.started_at_ms),
        "finished": moment(run.finished_at_ms),
        "ran": "-" if kin.ran_ms is None else duration(kin.ran_ms),
        "failures": run.failure_count,
        "recoveries": run.recovery_count,
        "cancel_requested": moment(run.cancel_requested_at_ms),
    }


def _totals(family: Family) -> dict[str, Any]:
    totals = family.totals()
    return {
        "runs": totals.runs,
        "rounds": totals.rounds,
        "statuses": [
            (status_badge(status), totals.by_status[status])
            for status in RunStatus
            if totals.by_status.get(status)
        ],
        "failures": totals.failures,
        "recoveries": totals.recoveries,
        "ran": duration(totals.ran_ms),
    }
