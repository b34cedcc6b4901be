import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore import OwnerId
from django_runstore.services import RunStore
from django_runstore.snapshots import OwnedTransition, RunNote
from django_runstore.testing import FakeClock
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import ODD_IDS, RUNS, as_a_browser_asks, links, run_links, run_url

pytestmark = pytest.mark.django_db


def claim_and_give_back(run_id):
    """Let a run have one more owner and one more remark in its journal."""
    store, owner = RunStore(), OwnerId("h", 1, "n")
    owned = store.claim_and_own(run_id, store.get(run_id), owner)
    note = RunNote("runstore.run.put_back", {"reason": "draining"})
    store.transition_many(
        owner, [OwnedTransition(run_id, owned.fence, "suspended", note=note, available_at_ms=0)]
    )


class TestDetail:
    @pytest.mark.parametrize("run_id", ODD_IDS)
    def test_every_id_has_a_page_that_the_list_links_to(self, viewer, page, run_id):
        RunFactory(run_id=run_id)
        (url,) = run_links(page(viewer, RUNS))
        assert 'id="ownership"' in page(viewer, as_a_browser_asks(url))

    @pytest.mark.parametrize("run_id", ODD_IDS)
    def test_every_id_has_a_history_that_its_page_links_to(self, viewer, page, run_id):
        run = RunFactory(run_id=run_id)
        (url,) = (url for url in links(page(viewer, run_url(run.pk))) if "/history/" in url)
        assert "Change history" in page(viewer, as_a_browser_asks(url))

    @pytest.mark.parametrize("view", ["change", "history"])
    @pytest.mark.parametrize("path", ["%00", "a%00b", "_00%00"])
    def test_an_id_with_a_nul_is_not_found(self, viewer, view, path):
        assert viewer.get(f"{RUNS}{path}/{view}/").status_code == 404

    @pytest.mark.parametrize("path", ["%ED%A0%80", "%ff", "missing", "x" * 5_000])
    def test_an_id_that_is_not_there_is_never_an_error_of_the_server(self, viewer, path):
        assert viewer.get(f"{RUNS}{path}/change/").status_code in (302, 404)

    def test_the_parent_is_linked(self, viewer, page):
        parent = RunFactory(run_id="the/parent")
        child = RunFactory(parent_run_id=parent.pk)
        assert run_url("the/parent") in links(page(viewer, run_url(child.pk)))

    def test_the_journal_of_the_run_is_linked(self, viewer, page):
        run = RunFactory(run_id="a b&c")
        assert "/admin/runstore/journalentry/?q=a+b%26c" in links(page(viewer, run_url(run.pk)))

    @pytest.mark.parametrize("run_id", ["x" * 1_024, "a\u202eb"])
    def test_a_title_is_short_and_in_order(self, viewer, page, run_id):
        text = page(viewer, run_url(RunFactory(run_id=run_id).pk))
        title = re.search(r"<title>(.*?)</title>", text, re.DOTALL)[1]
        assert len(title) < 150
        assert "\u202e" not in title

    def test_the_number_of_queries_does_not_grow_with_the_history(self, viewer, page):
        run = RunFactory()
        claim_and_give_back(run.pk)
        page(viewer, run_url(run.pk))
        with CaptureQueriesContext(connection) as few:
            page(viewer, run_url(run.pk))
        for _ in range(20):
            claim_and_give_back(run.pk)
        with CaptureQueriesContext(connection) as many:
            page(viewer, run_url(run.pk))
        assert len(many) == len(few)

    def test_a_run_with_everything_takes_at_most_twelve_queries(self, viewer, page):
        run = RunFactory(run_id="a", handler="h", lineage_id="line", round_ordinal=0)
        for _ in range(3):
            claim_and_give_back(run.pk)
        owner = OwnerId("other-host", 1, "n")
        store = RunStore(clock=FakeClock(0))
        store.claim_and_own("a", store.get("a"), owner)
        store.request_cancel("a")
        page(viewer, run_url("a"))
        with CaptureQueriesContext(connection) as queries:
            page(viewer, run_url("a"))
        assert len(queries) <= 12, [query["sql"] for query in queries]

    def test_it_says_what_the_run_is_doing(self, viewer, page):
        text = page(viewer, run_url(RunFactory(handler="<unknown>").pk))
        assert "this process has no handler “&lt;unknown&gt;”" in text

    def test_what_needs_a_look_is_said_to_in_words(self, viewer, page):
        fresh, stale = RunFactory(running=True), RunFactory(running=True, clock=FakeClock(0))
        found = ["Needs a look" in page(viewer, run_url(run.pk)) for run in (fresh, stale)]
        assert found == [False, True]

    def test_a_suspended_run_says_what_it_waits_for(self, viewer, page):
        run = RunFactory.raw(status="suspended", waiting_reason="approval", waiting_wake_at_ms=0)
        text = page(viewer, run_url(run.pk))
        assert ("approval" in text, "1970-01-01 00:00:00.000" in text) == (True, True)

    def test_a_row_that_breaks_the_invariants_can_still_be_looked_at(self, viewer, page):
        run = RunFactory.raw(state_json="not json <b>", error_json='"\\ud800"')
        text = page(viewer, run_url(run.pk))
        assert "not json &lt;b&gt;" in text

    def test_a_time_past_year_9999_breaks_nothing(self, viewer, page):
        run = RunFactory.raw(created_at_ms=2**53 - 1, available_at_ms=2**53 - 1)
        assert f"{2**53 - 1} ms" in page(viewer, run_url(run.pk))
        assert f"{2**53 - 1} ms" in page(viewer, RUNS)
