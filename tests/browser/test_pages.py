"""Every page of the admin: for all to use, whatever the window, the theme and the language."""

from zoneinfo import ZoneInfo

import pytest
from django.contrib.admin import site
from django.urls import resolve, reverse

from django_runstore.models import JournalEntry, Run
from testproject.scene.shop import CLAIMED, ROUNDS, STUCK, WAITING
from tests.admin.pages import ENTRIES, OVERVIEW, RUNS, act_url, entry_url, run_url
from tests.browser.conftest import NARROW, WIDE, expect

PAGES = {
    "list": lambda: RUNS,
    "list-of-none": lambda: f"{RUNS}?q=nothing-like-this",
    "overview": lambda: OVERVIEW,
    "run": lambda: run_url(STUCK),
    "run-settled": lambda: run_url(ROUNDS[1]),
    "run-waiting": lambda: run_url(WAITING),
    "history": lambda: run_url(STUCK, "history"),
    "lineage": lambda: run_url(ROUNDS[1], "lineage"),
    "lineage-of-one": lambda: run_url(STUCK, "lineage"),
    "cancel": lambda: act_url("cancel_run", STUCK),
    "cancel-lineage": lambda: act_url("cancel_lineage", ROUNDS[1]),
    "wake": lambda: act_url("wake_run", WAITING),
    "release": lambda: act_url("release_claim", CLAIMED),
    "nothing-to-do": lambda: act_url("cancel_run", ROUNDS[0]),
    "journal": lambda: ENTRIES,
    "journal-entry": lambda: entry_url(JournalEntry.objects.latest("pk")),
    "journal-entry-history": lambda: reverse(
        "admin:runstore_journalentry_history", args=[JournalEntry.objects.latest("pk").pk]
    ),
}
WINDOWS = {
    "wide-light": {"viewport": WIDE, "color_scheme": "light"},
    "wide-dark": {"viewport": WIDE, "color_scheme": "dark"},
    "narrow-light": {"viewport": NARROW, "color_scheme": "light"},
    "narrow-dark": {"viewport": NARROW, "color_scheme": "dark"},
}


# Adding and deleting are refused, and what is done to many runs answers with the list.
WITHOUT_A_PAGE = {"runstore_run_act_on_many"} | {
    f"runstore_{model}_{change}"
    for model in ("run", "journalentry")
    for change in ("add", "delete")
}


def test_no_page_of_the_admin_is_left_out(scene):
    paths = [path().partition("?")[0] for path in PAGES.values()]
    opened = {resolve(path).url_name for path in paths}
    registered = {
        pattern.name
        for model in (Run, JournalEntry)
        for pattern in site.get_model_admin(model).get_urls()
    }
    # The address without a name is that of a page without its last word, and leads there.
    assert registered - opened == {*WITHOUT_A_PAGE, None}


@pytest.mark.parametrize("window", WINDOWS)
def test_every_page_is_accessible_fits_and_keeps_the_policy(visit, scene, window):
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415 - of an extra

    axe = Axe()
    visitor = visit(**WINDOWS[window])
    found = []
    for name, path in PAGES.items():
        visitor.open(path())
        visitor.shoot(f"{name}-{window}")
        # Preloading, axe writes what a stylesheet imports into the page, against the policy.
        results = axe.run(visitor.page, options={"preload": False})
        found += [
            f"{name}: {violation['id']}: {node['html'][:200]}"
            for violation in results.response["violations"]
            for node in violation["nodes"][:3]
        ]
        if visitor.overflow() > 0:
            found.append(f"{name}: {visitor.overflow()} pixels too wide")
    assert not found, "\n".join(found)


def test_a_page_speaks_the_language_of_its_reader_and_shows_their_time(visit, scene, settings):
    settings.TIME_ZONE = "Asia/Tokyo"
    visitor = visit(locale="de-DE")
    visitor.open(run_url(STUCK))
    expect(visitor.page.locator("html")).to_have_attribute("lang", "de")
    visitor.shoot("run-german")
    expect(visitor.page.get_by_text("Braucht einen Blick")).to_have_count(1)
    expect(visitor.page.get_by_role("heading", name="Besitzverlauf")).to_have_count(1)
    # Created four hours before, in the time of the reader's server.
    created = Run.objects.get(pk=STUCK).created_at.astimezone(ZoneInfo("Asia/Tokyo"))
    expect(visitor.page.locator("#content")).to_contain_text(f"{created:%H:%M:%S}")
