"""Events to emit, and every row of the journal's tables."""

from typing import Any

from django_runstore.events import JournalEvent
from django_runstore.models import (
    JournalCheckpoint,
    JournalDedup,
    JournalEntry,
    JournalGeneration,
    Run,
)

TABLES = (Run, JournalEntry, JournalCheckpoint, JournalDedup, JournalGeneration)


def event(**fields: Any) -> JournalEvent:
    """An event that is admissible, but for the fields that are given."""
    return JournalEvent(
        **{
            "run_id": "run",
            "source_id": "shop",
            "event_type": "sent",
            "payload": {"n": 1},
            **fields,
        }
    )


def everything() -> list[list[dict[str, Any]]]:
    """Every column of every row there is."""
    return [list(table.objects.order_by("pk").values()) for table in TABLES]
