import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore import OwnerId
from django_runstore.models import Run
from django_runstore.services import RunStore
from django_runstore.testing import FakeClock
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import ODD_IDS, RUNS, run_links, run_url


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
