import re
from html import unescape

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME

from django_runstore.admin import RunAdmin
from django_runstore.models import Run
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import ENTRIES, RUNS

pytestmark = pytest.mark.django_db


@pytest.fixture
def three_a_page(monkeypatch):
    monkeypatch.setattr(RunAdmin, "list_per_page", 3)


@pytest.fixture
def runs(three_a_page):
    """Ten pending runs and ten failed ones in turn, run-00 to run-19 from oldest to newest."""
    for number in range(20):
        RunFactory.raw(
            run_id=f"run-{number:02}",
            created_at_ms=number,
            status="failed" if number % 2 else "pending",
            handler="the.handler",
        )


def shown(text):
    return re.findall(r">run-(\d\d)<", text)


def link(text, rel):
    found = re.search(rf'<a href="([^"]*)" rel="{rel}"', text)
    return RUNS + unescape(found[1]) if found else None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, range(19, -1, -1)),
        ({"status": "failed"}, range(19, -1, -2)),
        ({"q": "run-1"}, range(19, 9, -1)),
        ({"handler": "the.handler"}, range(19, -1, -1)),
        ({"q": "the.handler", "status": "pending"}, range(18, -1, -2)),
    ],
)
def test_the_links_lead_through_the_list_and_back_with_filters_and_search(
    runs, viewer, page, query, expected
):
    pages = [page(viewer, RUNS, **query)]
    while (url := link(pages[-1], "next")) is not None:
        pages.append(page(viewer, url))
    assert [int(number) for text in pages for number in shown(text)] == list(expected)
    back = [pages[-1]]
    while (url := link(back[-1], "prev")) is not None:
        back.append(page(viewer, url))
    # The pages of the way back are cut elsewhere when the last one was not full.
    assert sorted({n for text in back for n in shown(text)}) == sorted(
        {n for text in pages for n in shown(text)}
    )


def test_a_filter_that_is_chosen_begins_at_the_first_page(runs, viewer, page):
    second = page(viewer, link(page(viewer, RUNS), "next"))
    filters = re.findall(r'href="(\?[^"]*status=failed[^"]*)"', second)
    assert filters
    assert not any("after=" in url for url in filters)


def test_the_search_form_forgets_the_page_and_keeps_the_filters(runs, viewer, page):
    text = page(viewer, link(page(viewer, RUNS, status="failed"), "next"))
    form = text.split('id="changelist-search"')[1].split("</form>")[0]
    assert re.findall(r'type="hidden" name="(\w+)" value="(\w+)"', form) == [("status", "failed")]


def test_one_click_leads_back_to_the_newest(runs, viewer, page):
    text = page(viewer, link(page(viewer, RUNS, status="failed"), "next"))
    assert re.search(r'<a href="\?status=failed">\s*Newest', text)
    assert "Newest</a>" not in page(viewer, RUNS)


def test_the_page_says_how_many_are_on_it(runs, viewer, page):
    assert "3 runs on this page" in page(viewer, RUNS)
    assert "1 run on this page" in page(viewer, RUNS, q="run-07")
    assert "0 runs on this page" in page(viewer, RUNS, q="nobody")


@pytest.mark.parametrize("name", ["after", "before"])
@pytest.mark.parametrize("token", ["nonsense", "%00", "W10", "", "%ED%A0%80", "A" * 5_000])
def test_a_place_that_is_none_is_the_first_page(runs, viewer, page, name, token):
    assert shown(page(viewer, f"{RUNS}?{name}={token}")) == ["19", "18", "17"]


def test_a_place_of_another_list_is_the_first_page(runs, viewer, page):
    foreign = link(page(viewer, RUNS, q="run-"), "next").replace("q=run-", "")
    assert len(shown(page(viewer, foreign))) == 3


def test_a_page_number_of_djangos_own_paging_is_ignored(runs, viewer, page):
    assert shown(page(viewer, RUNS, p="3", all="")) == ["19", "18", "17"]


def test_runs_of_a_later_page_can_be_selected(runs, operator, page):
    second = link(page(operator, RUNS, status="pending"), "next")
    run_id = f"run-{shown(page(operator, second))[0]}"
    response = operator.post(second, {"action": "cancel_run", ACTION_CHECKBOX_NAME: [run_id]})
    assert response.status_code == 200
    assert run_id in response.content.decode()


def test_a_run_that_the_filter_hides_cannot_be_selected(runs, operator):
    data = {"action": "cancel_run", ACTION_CHECKBOX_NAME: ["run-01"], "confirmed": "1"}
    operator.post(f"{RUNS}?status=pending", data)
    assert not Run.objects.filter(cancel_requested_at_ms__isnull=False).exists()


def test_all_rows_of_all_pages_are_never_acted_on(runs, operator):
    data = {"action": "cancel_run", ACTION_CHECKBOX_NAME: ["run-00"], "select_across": "1"}
    text = operator.post(RUNS, data).content.decode()
    assert "run-00" in text
    assert "run-02" not in text


def test_the_journal_is_paged_in_the_same_way(viewer, page, monkeypatch):
    monkeypatch.setattr("django_runstore.admin.journal.JournalEntryAdmin.list_per_page", 4)
    RunFactory(run_id="a", completed=True)
    RunFactory(run_id="b", completed=True)
    for query in ({}, {"q": "a"}):
        text = page(viewer, ENTRIES, **query)
        positions = re.findall(r">([ab] \(run-store\) #\d)<", text)
        while (url := link(text, "next")) is not None:
            text = page(viewer, url.replace(RUNS, ENTRIES))
            positions += re.findall(r">([ab] \(run-store\) #\d)<", text)
        whole = [f"a (run-store) #{number}" for number in reversed(range(3))]
        assert [each for each in positions if each.startswith("a")] == whole


def test_a_list_offers_actions_only_where_there_is_something_to_select(runs, operator, page):
    offered = 'name="action"'
    assert offered in page(operator, RUNS)
    assert offered not in page(operator, RUNS, q="nothing-like-this")
