"""The stored rows. Read them with the ORM; write them through the services."""

from django_runstore.models.journal import JournalEntry
from django_runstore.models.run import Run

__all__ = ["JournalEntry", "Run"]
