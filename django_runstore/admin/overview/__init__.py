"""One page that says how the runs are: what is live, what is done, what waits, who works."""

from django_runstore.admin.overview.view import RunOverview

__all__ = ["RunOverview"]
