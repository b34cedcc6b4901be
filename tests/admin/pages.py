"""Where the admin's pages are."""

import re
from html import unescape
from urllib.parse import urljoin

from django.contrib import admin
from django.urls import reverse

from django_runstore.admin import addresses

RUNS = "/admin/runstore/run/"
ENTRIES = "/admin/runstore/journalentry/"
OVERVIEW = f"{RUNS}overview/"


def run_url(run_id, page="change"):
    return addresses.run_url(run_id, admin.site, page)


def entry_url(entry):
    return reverse("admin:runstore_journalentry_change", args=[entry.pk])


def act_url(action, run_id=None):
    return addresses.action_url(action, admin.site, run_id)


def section(text, name):
    """The part of a run's page with this name."""
    found = text.partition(f'<section class="module runstore-section" id="{name}"')[2]
    assert found, name
    return found.partition("</section>")[0]


ODD_IDS = [
    "a/b",
    "what?",
    "#1",
    "100%",
    "a_2Fb",
    "ünï 🚀",
    "a b\nc",
    '"quoted" & <b>',
    "x" * 1_024,
    "🚀" * 512,
    "change/",
    "../../etc",
    ".",
    "..",
    "_2E",
    "%2e",
    "a\rb",
    "a\r\nb",
    "\u202etxt.exe",
    "'single' `back`",
    "add",
]


def links(text):
    return [unescape(url) for url in re.findall(r'href="([^"]*)"', text)]


def run_links(text):
    """The pages of runs that a list links to, without the way back."""
    found = (url.partition("?")[0] for url in links(text))
    return {url for url in found if url.startswith(RUNS) and url.endswith("/change/")}


def as_a_browser_asks(url):
    """Resolve segments of dots, which a browser does before it asks."""
    return urljoin("http://testserver", url)
