"""Where the admin's pages are."""

from django.contrib import admin
from django.urls import reverse

from django_runstore.admin import addresses

RUNS = "/admin/runstore/run/"
ENTRIES = "/admin/runstore/journalentry/"


def run_url(run_id, page="change"):
    return addresses.run_url(run_id, admin.site, page)


def entry_url(entry):
    return reverse("admin:runstore_journalentry_change", args=[entry.pk])


def act_url(action, run_id=None):
    return addresses.action_url(action, admin.site, run_id)
