"""What an operator does in the admin, click by click."""

import json

import pytest

from django_runstore.admin.runs import RunAdmin
from django_runstore.models import Run
from django_runstore.services import RunStore
from testproject.scene.shop import CLAIMED, STUCK, WAITING
from tests.admin.pages import OVERVIEW, RUNS, run_url
from tests.browser.conftest import NARROW, expect
from tests.supervision.processes import has_status, until

# Longer than the time after which a page refreshes itself.
REFRESHED_MS = 20_000
QUIET_AFTER_MS = 500


@pytest.fixture
def impatient(settings):
    """Call a run quiet that has not advanced for half a second."""
    settings.RUNSTORE = {"ADMIN_QUIET_AFTER_MS": QUIET_AFTER_MS}


def test_a_stuck_run_is_found_understood_and_stopped_with_its_lineage(
    visit, impatient, supervise, transactional_db, marks
):
    store = RunStore()
    state = json.dumps({"file": str(marks.path)})
    lineage = {"lineage_id": "import", "handler": "test.polling"}
    store.create("import", state, round_ordinal=0, **lineage)
    store.create("import/1", state, round_ordinal=1, parent_run_id="import", **lineage)
    supervise("--concurrency", "1")
    marks.entered()
    running = Run.objects.get(status="running").pk
    other = ({"import", "import/1"} - {running}).pop()

    window = visit()
    page = window.page
    window.open(OVERVIEW)
    page.get_by_role("link", name="no progress").click()
    page.get_by_role("link", name=running, exact=True).click()
    expect(page.get_by_text("Needs a look")).to_be_visible()
    window.shoot("story-1-why")
    page.get_by_role("link", name="Cancel the whole lineage").click()
    expect(page.get_by_role("link", name=running, exact=True).first).to_be_visible()
    expect(page.get_by_role("link", name=other, exact=True).first).to_be_visible()
    window.shoot("story-2-confirm")
    # Somebody else has the page of the run open, and only looks.
    onlooker = visit()
    onlooker.open(run_url(running))
    expect(onlooker.page.locator(".runstore-badge", has_text="running").first).to_be_visible()
    page.get_by_role("button", name="Yes, ask all of them to stop").click()
    expect(page.get_by_text("asked to stop").first).to_be_visible()
    window.shoot("story-3-asked")

    stopped = onlooker.page.locator(".runstore-badge", has_text="cancelled").first
    expect(stopped).to_be_visible(timeout=REFRESHED_MS)
    # Nor is anybody offered to stop what has stopped.
    expect(onlooker.page.get_by_role("link", name="Cancel run")).to_have_count(0)
    onlooker.shoot("story-4-stopped")
    until(has_status(running, "cancelled"))
    until(has_status(other, "cancelled"))


def test_a_waiting_run_is_woken(visit, scene):
    window = visit()
    page = window.page
    window.open(run_url(WAITING))
    page.get_by_role("link", name="Wake").click()
    expect(page.get_by_role("link", name=WAITING, exact=True).first).to_be_visible()
    page.locator("#content-main input[type=submit]").click()
    page.wait_for_url("**" + run_url(WAITING))
    assert RunStore().waiting(WAITING) is None


def test_a_stale_claim_is_released_on_the_evidence_shown(visit, scene):
    window = visit()
    page = window.page
    window.open(run_url(CLAIMED))
    page.get_by_role("link", name="Release").click()
    expect(page.get_by_text("no longer exists").first).to_be_visible()
    window.shoot("release")
    page.locator("#content-main input[type=submit]").click()
    page.wait_for_url("**" + run_url(CLAIMED))
    assert RunStore().get(CLAIMED).claim is None


def test_nothing_is_done_by_whoever_goes_back(visit, scene):
    window = visit()
    window.open(run_url(STUCK))
    window.page.get_by_role("link", name="Cancel run").click()
    window.page.get_by_role("link", name="No, take me back").click()
    window.page.wait_for_url("**" + run_url(STUCK))
    assert RunStore().get(STUCK).cancel_requested_at_ms is None


def test_runs_that_are_selected_in_the_list_are_asked_together(visit, scene):
    window = visit()
    page = window.page
    window.open(f"{RUNS}?status=pending")
    chosen = ("invoice-4711", "what-if")
    for run_id in chosen:
        row = page.locator("#result_list tbody tr", has=page.get_by_text(run_id, exact=True))
        row.get_by_role("checkbox").check()
    page.get_by_role("combobox", name="Action").select_option("cancel_run")
    page.locator("button[name=index]").click()
    expect(page.get_by_role("heading", name="Will be asked to stop (2)")).to_be_visible()
    window.shoot("cancel-two")
    page.locator("#content-main input[type=submit]").click()
    expect(page.get_by_text("Asked to stop: invoice-4711, what-if")).to_be_visible()
    # The filter is still in force.
    badges = page.locator("#result_list tbody .runstore-badge")
    expect(badges.filter(has_text="pending").first).to_be_visible()
    expect(badges.filter(has_text="completed")).to_have_count(0)
    store = RunStore()
    assert all(store.get(run_id).cancel_requested_at_ms for run_id in chosen)


def test_pages_of_the_list_lead_there_and_back(visit, scene, monkeypatch):
    monkeypatch.setattr(RunAdmin, "list_per_page", 20)
    window = visit()
    page = window.page

    def ids():
        return page.locator("#result_list tbody th").all_inner_texts()

    window.open(RUNS)
    first = ids()
    page.get_by_role("link", name="Older").click()
    expect(page.get_by_role("link", name="Newer")).to_be_visible()
    second = ids()
    page.get_by_role("link", name="Newer").click()
    expect(page.get_by_role("link", name=first[-1], exact=True)).to_be_visible()
    assert len(first) == len(second) == 20
    assert not set(first) & set(second)
    assert ids() == first


def test_a_run_is_found_by_its_id_by_its_status_and_by_what_is_wrong_with_it(visit, scene):
    window = visit()
    page = window.page
    window.open(RUNS)
    page.locator("#searchbar").fill(STUCK)
    page.keyboard.press("Enter")
    expect(page.locator("#result_list tbody th")).to_have_text([STUCK])
    for choice, found in {"suspended": WAITING, "silent owner": STUCK}.items():
        window.open(RUNS)
        page.locator("#changelist-filter").get_by_role("link", name=choice).click()
        expect(page.locator("#result_list tbody th")).to_have_text([found])


def test_a_run_is_stopped_by_keyboard_alone(visit, scene):
    window = visit()
    page = window.page
    window.open(f"{RUNS}?q=invoice")

    def go_to(name):
        for _ in range(120):
            page.keyboard.press("Tab")
            text = page.evaluate(
                "(e => (e.type === 'submit' ? e.value : e.innerText) || '')(document.activeElement)"
            ).strip()
            if text.upper() == name.upper():
                page.keyboard.press("Enter")
                return
        raise AssertionError(f"{name} cannot be reached by Tab")

    go_to("invoice-4711")
    page.wait_for_url("**" + run_url("invoice-4711") + "*")
    go_to("Cancel run")
    expect(page.get_by_text("No, take me back")).to_be_visible()
    go_to(page.locator("#content-main input[type=submit]").get_attribute("value"))
    page.wait_for_url("**" + run_url("invoice-4711") + "*")
    assert RunStore().get("invoice-4711").cancel_requested_at_ms is not None


def test_a_run_is_stopped_without_javascript(visit, scene):
    window = visit(java_script_enabled=False, viewport=NARROW)
    page = window.page
    window.open(run_url("invoice-4711"))
    page.get_by_role("link", name="Cancel run").click()
    page.locator("#content-main input[type=submit]").click()
    page.wait_for_url("**" + run_url("invoice-4711") + "*")
    assert RunStore().get("invoice-4711").cancel_requested_at_ms is not None


def test_updates_can_be_paused(visit, scene):
    window = visit()
    page = window.page
    window.open(OVERVIEW)
    page.get_by_role("button", name="Pause updates").click()
    expect(page.get_by_text("Updates are paused")).to_be_visible()
