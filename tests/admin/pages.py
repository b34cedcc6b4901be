"""Where the admin's pages are."""

from django.contrib.admin.utils import quote
from django.urls import reverse

RUNS = "/admin/runstore/run/"
ENTRIES = "/admin/runstore/journalentry/"


def run_url(run_id, view="change"):
    return reverse(f"admin:runstore_run_{view}", args=[quote(run_id)])


def entry_url(entry):
    return reverse("admin:runstore_journalentry_change", args=[entry.pk])
