import re
from html import unescape
from urllib.parse import urljoin

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore import OwnerId
from django_runstore.models import Run
from django_runstore.services import RunStore
from django_runstore.snapshots import OwnedTransition, RunNote
from django_runstore.testing import FakeClock
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import RUNS, run_url

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


def claim_and_give_back(run_id):
    """Let a run have one more owner and one more remark in its journal."""
    store, owner = RunStore(), OwnerId("h", 1, "n")
    owned = store.claim_and_own(run_id, store.get(run_id), owner)
    note = RunNote("runstore.run.put_back", {"reason": "draining"})
    store.transition_many(
        owner, [OwnedTransition(run_id, owned.fence, "suspended", note=note, available_at_ms=0)]
    )


class TestList:
    def test_a_run_shows_status_handler_queue_and_lineage(self, viewer, page):
        RunFactory(
            run_id="run-7", handler="report", queue="slow", lineage_id="line", round_ordinal=3
        )
        text = page(viewer, RUNS)
        for shown in ("run-7", "pending", "report", "slow", "line / 3"):
            assert shown in text

    def test_a_running_run_names_its_owner_on_one_line(self, viewer, page):
        RunFactory(running=True, owner=OwnerId("web-1/boot", 4102, "t1-9f3a61c200000000"))
        assert "web-1 pid 4102 (9f3a61c2)" in page(viewer, RUNS)

    def test_a_fresh_heartbeat_is_given_by_its_age(self, viewer, page):
        RunFactory(running=True)
        text = page(viewer, RUNS)
        assert re.search(r"\d\.\d s ago<", text)
        assert "(stale)" not in text

    def test_a_stale_heartbeat_is_called_stale(self, viewer, page):
        RunFactory(running=True, clock=FakeClock(0))
        assert "days ago (stale)" in page(viewer, RUNS)

    def test_the_newest_run_comes_first(self, viewer, page):
        for number, created in enumerate((2_000, 3_000, 1_000)):
            RunFactory(run_id=f"run-{number}", clock=FakeClock(created))
        found = re.findall(r">(run-\d)<", page(viewer, RUNS))
        assert found == ["run-1", "run-0", "run-2"]

    def test_an_order_in_the_url_is_ignored(self, viewer):
        RunFactory()
        with CaptureQueriesContext(connection) as queries:
            viewer.get(RUNS, {"o": "2"})
        ordered = [query["sql"] for query in queries if "ORDER BY" in query["sql"]]
        assert not any('ORDER BY "runstore_run"."status"' in sql for sql in ordered)

    def test_no_wide_text_is_read(self, viewer, page):
        RunFactory.create_batch(3)
        with CaptureQueriesContext(connection) as queries:
            page(viewer, RUNS)
        assert not any("state_json" in query["sql"] for query in queries)

    def test_nothing_is_counted(self, viewer, page):
        RunFactory.create_batch(3)
        with CaptureQueriesContext(connection) as queries:
            page(viewer, RUNS)
        assert not any("COUNT(" in query["sql"] for query in queries)

    def test_no_choice_of_a_filter_is_counted(self, viewer, page):
        RunFactory()
        assert "_facets" not in page(viewer, RUNS)
        assert "not settled (" not in page(viewer, RUNS, _facets="True")

    def test_long_ids_leave_room_for_the_other_columns(self, viewer, page):
        RunFactory(run_id="x" * 1_024, lineage_id="y" * 1_024, round_ordinal=0)
        text = page(viewer, RUNS)
        assert ("x" * 31 + "…" in text, "y" * 31 + "… / 0" in text) == (True, True)

    def test_the_number_of_queries_does_not_grow_with_the_rows(self, viewer, page):
        RunFactory(running=True)
        page(viewer, RUNS)
        with CaptureQueriesContext(connection) as few:
            page(viewer, RUNS)
        RunFactory.create_batch(20, running=True)
        with CaptureQueriesContext(connection) as many:
            page(viewer, RUNS)
        assert len(many) == len(few)


class TestFilters:
    @pytest.fixture(autouse=True)
    def _runs(self, db):
        RunFactory(run_id="waiting-1", handler="a", queue="slow")
        RunFactory(run_id="done-1", completed=True, handler="b", queue="fast")
        RunFactory(run_id="beating-1", running=True)
        RunFactory(run_id="silent-1", running=True, clock=FakeClock(0))
        RunFactory(run_id="left-1", cancelled=True)
        RunStore().request_cancel(RunFactory(run_id="leaving-1").pk)

    @pytest.mark.parametrize(
        ("query", "shown", "hidden"),
        [
            ({"status": "completed"}, "done-1", "waiting-1"),
            ({"status": "live"}, "waiting-1", "done-1"),
            ({"attention": "silent"}, "silent-1", "beating-1"),
            ({"attention": "silent"}, "silent-1", "waiting-1"),
            ({"cancellation": "requested"}, "leaving-1", "waiting-1"),
            ({"cancellation": "requested"}, "leaving-1", "left-1"),
        ],
    )
    def test_a_filter_keeps_what_it_says(self, viewer, page, query, shown, hidden):
        text = page(viewer, RUNS, **query)
        assert (shown in text, hidden in text) == (True, False)

    def test_runs_can_be_filtered_by_age(self, viewer, page):
        RunFactory(run_id="ancient", clock=FakeClock(0))
        text = page(viewer, RUNS, created="24h")
        assert ("waiting-1" in text, "ancient" in text) == (True, False)

    @pytest.mark.parametrize("name", ["status", "attention", "cancellation", "created"])
    @pytest.mark.parametrize("value", ["\0", "nonsense", "'", "🚀" * 3_000])
    def test_a_value_that_is_not_offered_is_ignored(self, viewer, page, name, value):
        assert "waiting-1" in page(viewer, RUNS, **{name: value})

    @pytest.mark.parametrize(
        "lookup", ["state_json__contains", "state_json", "run_id__regex", "parent_run__state_json"]
    )
    def test_columns_cannot_be_probed_by_the_url(self, viewer, lookup):
        assert viewer.get(RUNS, {lookup: "x"}).status_code == 400


class TestSearch:
    @pytest.mark.parametrize("run_id", ODD_IDS)
    def test_a_run_is_found_by_its_id(self, viewer, page, run_id):
        run = RunFactory(run_id=run_id)
        RunFactory(run_id="another")
        text = page(viewer, RUNS, q=run_id.strip())
        assert run_links(text) == {run_url(run.pk)}

    @pytest.mark.parametrize("term", ["import-2026", "the-line", "the.handler"])
    def test_a_run_is_found_by_beginning_of_id_or_lineage_or_by_handler(self, viewer, page, term):
        RunFactory(
            run_id="import-2026-10", lineage_id="the-line-1", round_ordinal=0, handler="the.handler"
        )
        RunFactory(run_id="another")
        text = page(viewer, RUNS, q=term)
        assert ("import-2026-10" in text, ">another<" in text) == (True, False)

    @pytest.mark.parametrize("raw", ["%00", "a%00b", "%ED%A0%80", "%ff", "%F0%9F"])
    def test_a_term_that_is_no_text_finds_nothing_and_breaks_nothing(self, viewer, raw):
        RunFactory(run_id="waiting-1")
        response = viewer.get(f"{RUNS}?q={raw}")
        assert response.status_code == 200

    def test_a_percent_sign_is_no_wildcard(self, viewer, page):
        RunFactory(run_id="waiting-1")
        assert "waiting-1" not in page(viewer, RUNS, q="%1")


class TestDetail:
    @pytest.mark.parametrize("run_id", ODD_IDS)
    def test_every_id_has_a_page_that_the_list_links_to(self, viewer, page, run_id):
        RunFactory(run_id=run_id)
        (url,) = run_links(page(viewer, RUNS))
        assert "field-ownership" in page(viewer, as_a_browser_asks(url))

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
        assert len(many) == len(few) <= 16

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


class TestData:
    def test_state_result_and_error_are_indented_and_escaped(self, viewer, page):
        run = RunFactory(
            failed=True, state_json='{"a":"<script>"}', error_json='{"type":"E","message":"m"}'
        )
        text = unescape(page(viewer, run_url(run.pk)))
        assert '{\n  "a": "<script>"\n}' in text
        assert '"type": "E"' in text
        assert (
            "<script>"
            not in page(viewer, run_url(run.pk)).split("field-state")[1].split("</pre>")[0]
        )

    def test_a_long_state_is_cut_and_says_so(self, viewer, page):
        run = RunFactory(state_json=f'"{"x" * 1_000_000}"')
        text = page(viewer, run_url(run.pk))
        assert "The first 20000 of 1000002 characters." in text
        assert len(text) < 100_000

    def test_a_long_state_is_not_even_read(self, viewer, page):
        run = RunFactory(state_json=f'"{"x" * 1_000_000}"')
        with CaptureQueriesContext(connection) as queries:
            page(viewer, run_url(run.pk))
        reading = [query["sql"] for query in queries if '"state_json"' in query["sql"]]
        assert reading
        assert all("LENGTH(" in sql for sql in reading)

    def test_hidden_state_is_neither_shown_nor_read(self, viewer, page, settings):
        settings.RUNSTORE = {"ADMIN_SHOWS_STATE": False}
        run = RunFactory(completed=True, state_json='"hunter2"', result_json='"hunter3"')
        with CaptureQueriesContext(connection) as queries:
            text = page(viewer, run_url(run.pk))
        assert "hunter" not in text
        assert "Hidden by RUNSTORE" in text
        assert not any("state_json" in query["sql"] for query in queries)

    def test_no_state_is_in_titles_or_urls(self, viewer, page):
        run = RunFactory(state_json='"hunter2"')
        text = page(viewer, run_url(run.pk))
        heads = re.findall(r"<(?:title|h1|h2)[^>]*>(.*?)</", text, re.DOTALL)
        assert not any("hunter2" in found for found in [*heads, *links(text)])

    def test_marks_that_turn_text_around_are_spelled_out(self, viewer, page):
        run = RunFactory(state_json='"\u202e\\u0000 \u2066\x7f"')
        text = page(viewer, run_url(run.pk))
        assert r"\u202e\u0000 \u2066\u007f" in text


class TestRights:
    @pytest.mark.parametrize("url", [RUNS, f"{RUNS}run-7/change/", f"{RUNS}run-7/history/"])
    def test_staff_without_a_permission_sees_nothing(self, member, url):
        RunFactory(run_id="run-7")
        assert member().get(url).status_code == 403

    @pytest.mark.parametrize("url", [RUNS, f"{RUNS}run-7/change/", f"{RUNS}run-7/history/"])
    def test_a_superuser_sees_every_page(self, admin_client, url):
        RunFactory(run_id="run-7")
        assert admin_client.get(url).status_code == 200

    def test_no_page_brings_styles_or_scripts_of_its_own(self, admin_client, page):
        run = RunFactory(running=True)
        claim = page(admin_client, run_url(run.pk))
        assert " style=" not in claim
        assert not re.search(r"<script(?![^>]*(src|type))", claim)

    def test_without_the_permission_to_view_there_is_nothing_to_see(self, member):
        client = member("cancel_run")
        RunFactory(run_id="run-7")
        assert client.get(RUNS).status_code == 403
        assert client.get(run_url("run-7")).status_code == 403

    @pytest.mark.parametrize("rights", [("add_run", "change_run", "delete_run", "view_run")])
    @pytest.mark.parametrize("url", [f"{RUNS}add/", f"{RUNS}run-7/delete/"])
    def test_nobody_adds_or_deletes(self, member, rights, url):
        RunFactory(run_id="run-7")
        assert member(*rights).get(url).status_code == 403

    def test_nobody_changes(self, admin_client):
        run = RunFactory()
        response = admin_client.post(run_url(run.pk), {"status": "completed"})
        assert response.status_code == 403
        assert Run.objects.get(pk=run.pk).status == "pending"

    def test_a_page_has_nothing_to_save(self, admin_client, page):
        assert 'name="_save"' not in page(admin_client, run_url(RunFactory().pk))

    def test_a_visitor_is_asked_to_log_in(self, client, db):
        assert client.get(RUNS).status_code == 302


def test_every_status_has_a_page(viewer, page):
    for status in ("pending", "running", "suspended", "completed", "failed", "cancelled"):
        run = RunFactory(status=status)
        assert page(viewer, run_url(run.pk))
        assert RunStore().get(run.pk).status == status
    assert page(viewer, RUNS)


def test_a_claimed_run_names_its_claimant(viewer, page):
    run = RunFactory(claimed=True, owner=OwnerId("web-2", 7, "abc"))
    assert "web-2 pid 7 (abc)" in page(viewer, run_url(run.pk))
