"""The stored rows. Read them with the ORM; write them through the services."""

from django_runstore.models.attempt import Attempt
from django_runstore.models.journal import (
    JournalCheckpoint,
    JournalDedup,
    JournalEntry,
    JournalGeneration,
)
from django_runstore.models.revisions import RunTombstone, StoreIdentity
from django_runstore.models.run import Run
from django_runstore.models.supervisor import SupervisorProcess

__all__ = [
    "Attempt",
    "JournalCheckpoint",
    "JournalDedup",
    "JournalEntry",
    "JournalGeneration",
    "Run",
    "RunTombstone",
    "StoreIdentity",
    "SupervisorProcess",
]
