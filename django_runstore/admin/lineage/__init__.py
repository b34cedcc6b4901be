"""The page of a lineage: rounds, parents, children and forks."""

from django_runstore.admin.lineage.view import LineagePage

__all__ = ["LineagePage"]
