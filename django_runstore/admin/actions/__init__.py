"""What people can have done to runs."""

from django_runstore.admin.actions.admin import RunActions

__all__ = ["RunActions"]
