"""The admin of runs and their journal: reading, and asking runs to stop."""

from django_runstore.admin.journal import JournalEntryAdmin
from django_runstore.admin.runs import RunAdmin

__all__ = ["JournalEntryAdmin", "RunAdmin"]
