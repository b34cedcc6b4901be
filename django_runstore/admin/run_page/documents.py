"""State, result, error and progress of a run."""

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

from django_runstore.admin.json_text import read_json, shown_json
from django_runstore.admin.run_page.sections import PageOf, Section
from django_runstore.models import Run

COLUMNS: Final = {
    "progress_json": _("Progress"),
    "error_json": _("Error"),
    "result_json": _("Result"),
    "state_json": _("State"),
}


class DocumentsSection(Section):
    """What handlers said, returned and saved."""

    name = "data"
    title = _("Data")
    template = "admin/runstore/run/documents.html"

    def content(self, page: PageOf) -> Mapping[str, Any]:
        """Read the beginning of each in one query."""
        wanted = {name: read for column in COLUMNS for name, read in read_json(column).items()}
        values: dict[str, Any] = {}
        if wanted:
            found = Run.objects.using(page.using).filter(pk=page.run.pk).annotate(**wanted)
            values = found.values(*wanted).first() or {}
        return {
            "documents": [
                (title, column, shown_json(values, column)) for column, title in COLUMNS.items()
            ]
        }
