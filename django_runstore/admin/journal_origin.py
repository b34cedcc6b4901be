"""Whose an entry of the journal is: this package's own hold no state, others may."""

from typing import Final

from django.db.models import Q

from django_runstore.models import JournalEntry
from django_runstore.services.facts import NOTE_SOURCE, SOURCE

_OURS: Final = (SOURCE, NOTE_SOURCE)

OF_THIS_PACKAGE: Final = Q(source_id__in=_OURS)
"""The entries that this package wrote."""


def holds_no_state(entry: JournalEntry) -> bool:
    """Tell whether this package wrote the entry: its own payloads never hold state."""
    return entry.source_id in _OURS
