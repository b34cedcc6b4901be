"""The entries of a run's own journal stream, as a table."""

from typing import Final, NamedTuple

from django.db.models import Case, When
from django.db.models.functions import Left
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from django_runstore import conf
from django_runstore.admin.tables import table_of_newest
from django_runstore.admin.wording import HIDDEN, moment, shown_text
from django_runstore.display_text import printable
from django_runstore.models import JournalEntry
from django_runstore.services.facts import NOTE_SOURCE, SOURCE

MOST_NOTES: Final = 50
LONGEST_NOTE: Final = 300

_OURS: Final = frozenset({SOURCE, NOTE_SOURCE})


class Note(NamedTuple):
    """What the table shows of an entry."""

    emitted_at_ms: int
    event_type: str
    source_id: str
    payload: str | None


def holds_no_state(entry: JournalEntry) -> bool:
    """Tell whether this package wrote the entry: its own payloads never hold state."""
    return entry.source_id in _OURS


def notes_table(run_id: str, using: str) -> SafeString | str:
    """Show the newest ``MOST_NOTES`` entries, the newest first."""
    readable = When(source_id__in=_OURS, then=Left("payload_json", LONGEST_NOTE))
    if conf.current().admin_shows_state:
        readable = When(source_id__isnull=False, then=Left("payload_json", LONGEST_NOTE))
    notes = JournalEntry.objects.using(using).filter(run_id=run_id, companion="")
    # What is to be hidden is not even read.
    columns = notes.values_list("emitted_at_ms", "event_type", "source_id", Case(readable))
    newest = [Note(*values) for values in columns.order_by("-seq")[: MOST_NOTES + 1]]
    if not newest:
        return _("None.")
    headings = (_("When"), _("Event"), _("Source"), _("Payload"))
    return table_of_newest(newest, MOST_NOTES, headings, _row)


def _row(note: Note) -> tuple[str, ...]:
    payload = str(HIDDEN) if note.payload is None else shown_text(note.payload)
    if len(payload) >= LONGEST_NOTE:
        payload = f"{payload}…"
    return (
        moment(note.emitted_at_ms),
        printable(note.event_type),
        printable(note.source_id),
        payload,
    )
