"""The services: every write to a run goes through ``RunStore``."""

from django_runstore.services.run_store import RunStore

__all__ = ["RunStore"]
