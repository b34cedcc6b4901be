"""The run's own journal stream: what handlers logged and supervisors remarked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

from django_runstore.admin.addresses import entries_url
from django_runstore.admin.journal_origin import OF_THIS_PACKAGE, holds_no_state
from django_runstore.admin.json_text import JsonText, read_json, shown_json
from django_runstore.admin.run_page.sections import PageOf, Section
from django_runstore.admin.run_page.stream import read_stream
from django_runstore.admin.wording import moment
from django_runstore.models import JournalEntry

MOST_ENTRIES: Final = 25
LONGEST_PAYLOAD: Final = 2_000


@dataclass(frozen=True, slots=True)
class Line:
    """An entry as the table shows it."""

    seq: int
    moment: str
    event_type: str
    source_id: str
    payload: JsonText

    @property
    def payload_id(self) -> str:
        """Where the page shows the payload."""
        return f"payload-{self.seq}"


class JournalSection(Section):
    """Entries, the newest first, page by page."""

    name = "journal"
    title = _("Journal")
    template = "admin/runstore/run/journal.html"

    def content(self, page: PageOf) -> Mapping[str, Any]:
        """Read one page; of long payloads the beginning."""
        wanted = read_json("payload_json", LONGEST_PAYLOAD, plain=OF_THIS_PACKAGE)
        entries = (
            JournalEntry.objects.using(page.using)
            .filter(run_id=page.run.run_id, companion="")
            .defer("payload_json", "meta_json", "source_hash")
            .annotate(**wanted)
        )
        stream = read_stream(entries, query=page.request.GET, name=self.name, size=MOST_ENTRIES)
        return {
            "lines": [_line(entry) for entry in stream.entries],
            "stream": stream,
            "all_url": _all_url(page),
        }


def _all_url(page: PageOf) -> str | None:
    """Address the list of entries, where there is one and the user may see it."""
    entries = (
        page.site.get_model_admin(JournalEntry) if page.site.is_registered(JournalEntry) else None
    )
    if entries is None or not entries.has_view_permission(page.request):
        return None
    return entries_url(page.site, page.run.run_id)


def _line(entry: JournalEntry) -> Line:
    payload = shown_json(
        vars(entry), "payload_json", LONGEST_PAYLOAD, is_plain=holds_no_state(entry)
    )
    return Line(entry.seq, moment(entry.emitted_at_ms), entry.event_type, entry.source_id, payload)
