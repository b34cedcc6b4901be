"""The page of one run."""

from django_runstore.admin.run_page.view import RunPage

__all__ = ["RunPage"]
