"""The admin of journal entries."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_runstore.admin.filters import StreamFilter
from django_runstore.admin.journal_origin import OF_THIS_PACKAGE, holds_no_state
from django_runstore.admin.json_text import read_json, shown_json
from django_runstore.admin.keyset import Section
from django_runstore.admin.read_only import ReadOnlyAdmin, database_of
from django_runstore.admin.wording import moment, shown_text
from django_runstore.display_text import printable
from django_runstore.models import JournalEntry


@admin.register(JournalEntry)
class JournalEntryAdmin(ReadOnlyAdmin[JournalEntry]):
    """Newest first; those of one run are found by its id."""

    list_display = ("position", "kind", "emitted")
    list_filter = (StreamFilter,)
    search_fields = ("run_id",)
    search_help_text = _("A run id, in full.")
    ordering = ("-pk",)
    fields: ClassVar = (
        "whole_run_id",
        "whole_companion",
        "seq",
        "whole_event_type",
        "emitted",
        "whole_source_id",
        "source_seq",
        "payload",
        "meta",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[JournalEntry]:
        """Leave wide texts where they are until they are shown."""
        return super().get_queryset(request).defer("payload_json", "meta_json", "source_hash")

    def search(self, queryset: QuerySet[JournalEntry], term: str) -> QuerySet[JournalEntry]:
        """Find the entries of a run."""
        return queryset.filter(run_id=term)

    def get_sections(
        self, queryset: QuerySet[JournalEntry], term: str, chosen: Mapping[str, str]
    ) -> list[Section[JournalEntry]]:
        """Read all entries by their key, and those of a run by the key of its streams."""
        if term:
            return [Section([self.search(queryset, term)], ("companion", "seq"))]
        return super().get_sections(queryset, term, chosen)

    @admin.display(description=_("entry"))
    def position(self, entry: JournalEntry) -> str:
        """Name run, stream and sequence."""
        stream = f" ({printable(entry.companion)})" if entry.companion else ""
        return f"{printable(entry.run_id)}{stream} #{entry.seq}"

    @admin.display(description=_("event type"))
    def kind(self, entry: JournalEntry) -> str:
        """Name what happened, short enough for a list."""
        return printable(entry.event_type)

    @admin.display(description=_("run"))
    def whole_run_id(self, entry: JournalEntry) -> str:
        """Show all of the id, whatever it is made of."""
        return shown_text(entry.run_id)

    @admin.display(description=_("companion"))
    def whole_companion(self, entry: JournalEntry) -> str:
        """Show all of a name that others chose."""
        return shown_text(entry.companion) or "-"

    @admin.display(description=_("event type"))
    def whole_event_type(self, entry: JournalEntry) -> str:
        """Show all of a name that others chose."""
        return shown_text(entry.event_type)

    @admin.display(description=_("source"))
    def whole_source_id(self, entry: JournalEntry) -> str:
        """Show all of a name that others chose."""
        return shown_text(entry.source_id)

    @admin.display(description=_("emitted"))
    def emitted(self, entry: JournalEntry) -> str:
        """Show when it was written, by the store's clock."""
        return moment(entry.emitted_at_ms)

    @admin.display(description=_("payload"))
    def payload(self, entry: JournalEntry) -> SafeString:
        """Show the payload, unless it could hold state that is to be hidden."""
        return self._text(entry, "payload_json", gettext("payload"))

    @admin.display(description=_("meta"))
    def meta(self, entry: JournalEntry) -> SafeString:
        """Show the meta, with the same care."""
        return self._text(entry, "meta_json", gettext("meta"))

    @staticmethod
    def _text(entry: JournalEntry, column: str, label: str) -> SafeString:
        is_plain = holds_no_state(entry)
        wanted = read_json(column, plain=OF_THIS_PACKAGE if is_plain else None)
        values: dict[str, Any] = {}
        if wanted:
            entries = JournalEntry.objects.using(database_of(entry)).filter(pk=entry.pk)
            values = entries.annotate(**wanted).values(*wanted).first() or {}
        shown = shown_json(values, column, is_plain=is_plain)
        context = {"json": shown, "label": label, "id": column}
        return render_to_string("admin/runstore/run/json.html", context)
