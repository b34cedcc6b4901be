"""The admin with the classes of django-unfold, as its users register their models."""

from django.contrib import admin
from django.urls import path
from unfold.admin import ModelAdmin

from django_runstore.admin import RunAdmin
from django_runstore.admin.journal import JournalEntryAdmin
from django_runstore.models import JournalEntry, Run

admin.site.unregister([Run, JournalEntry])


@admin.register(Run)
class UnfoldRunAdmin(RunAdmin, ModelAdmin):
    """Its base comes last: this package's templates and actions stay."""


@admin.register(JournalEntry)
class UnfoldEntryAdmin(JournalEntryAdmin, ModelAdmin):
    """As above."""


urlpatterns = [path("admin/", admin.site.urls)]
