"""The services: every write to a run, its attempts or its journal goes through them."""

from django_runstore.services.attempt_store import AttemptStore
from django_runstore.services.journal import Journal
from django_runstore.services.run_store import RunStore

__all__ = ["AttemptStore", "Journal", "RunStore"]
