"""``Journal``: the record of what happened to a run. Spec: run-store 8, the durable channel."""

from django_runstore.services.journal.journal import Journal

__all__ = ["Journal"]
