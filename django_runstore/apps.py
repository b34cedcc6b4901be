"""The Django app: label ``runstore``."""

import importlib

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class RunstoreConfig(AppConfig):
    """Register the system checks and find every app's ``runs`` module, as admin does."""

    name = "django_runstore"
    label = "runstore"
    verbose_name = _("Run store")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Run once the app registry is full; touches no database."""
        importlib.import_module("django_runstore.checks")
        autodiscover_modules("runs")
