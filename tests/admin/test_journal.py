import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore.models import JournalEntry
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import ENTRIES, entry_url

pytestmark = pytest.mark.django_db


def own_entry(payload='{"secret":"hunter2"}'):
    entry = {
        "run_id": "run-7",
        "seq": 0,
        "source_id": "the.project",
        "source_hash": b"0" * 32,
        "source_seq": 0,
        "emitted_at_ms": 0,
        "event_type": "project.said",
        "payload_json": payload,
    }
    return JournalEntry.unguarded.create(**entry)


def test_entries_are_listed_with_run_stream_and_event(viewer, page):
    run = RunFactory(running=True)
    text = page(viewer, ENTRIES)
    assert f"{run.pk} (run-store) #0" in text
    assert "runstore.ownership.claimed" in text


def test_entries_are_found_by_the_id_of_their_run(viewer, page):
    RunFactory(running=True, run_id="import-1")
    RunFactory(running=True, run_id="import-10")
    text = page(viewer, ENTRIES, q="import-1")
    assert ("import-1 (" in text, "import-10 (" in text) == (True, False)


@pytest.mark.parametrize(
    ("stream", "shown", "hidden"),
    [
        ("own", "project.said", "runstore.ownership"),
        ("run-store", "runstore.ownership", "project.said"),
    ],
)
def test_a_stream_of_a_run_can_be_chosen(viewer, page, stream, shown, hidden):
    RunFactory(running=True, run_id="run-7")
    own_entry()
    text = page(viewer, ENTRIES, q="run-7", stream=stream)
    assert (shown in text, hidden in text) == (True, False)


def test_of_all_runs_no_stream_is_offered_or_chosen(viewer, page):
    RunFactory(running=True)
    own_entry()
    text = page(viewer, ENTRIES, stream="own")
    assert "ownership facts" not in text
    assert ("project.said" in text, "runstore.ownership" in text) == (True, True)


@pytest.mark.parametrize("query", ["q=%00", "q=%ED%A0%80", "stream=%00"])
def test_no_text_breaks_the_list(viewer, query):
    assert viewer.get(f"{ENTRIES}?{query}").status_code == 200


@pytest.mark.parametrize("path", ["%00", "x", "9" * 30, "9" * 5_000, "-1"])
def test_an_entry_that_is_not_there_is_never_an_error_of_the_server(viewer, path):
    assert viewer.get(f"{ENTRIES}{path}/change/").status_code in (302, 404)


def test_an_entry_shows_its_payload(viewer, page):
    assert "hunter2" in page(viewer, entry_url(own_entry()))


def test_a_payload_of_the_project_is_hidden_with_the_state(viewer, page, settings):
    settings.RUNSTORE = {"ADMIN_SHOWS_STATE": False}
    with CaptureQueriesContext(connection) as queries:
        assert "hunter2" not in page(viewer, entry_url(own_entry()))
    assert not any("payload_json" in q["sql"] for q in queries if q["sql"].startswith("SELECT"))


def test_ownership_facts_hold_no_state_and_stay_visible(viewer, page, settings):
    settings.RUNSTORE = {"ADMIN_SHOWS_STATE": False}
    run = RunFactory(running=True)
    entry = JournalEntry.objects.filter(run_id=run.pk).first()
    assert "granted_at_ms" in page(viewer, entry_url(entry))


def test_nothing_is_counted(viewer, page):
    RunFactory(running=True)
    with CaptureQueriesContext(connection) as queries:
        page(viewer, ENTRIES)
        page(viewer, ENTRIES, q="run-0")
    assert not any("COUNT(" in query["sql"] for query in queries)


def test_payloads_cannot_be_probed_by_the_url(viewer):
    assert viewer.get(ENTRIES, {"payload_json__contains": "x"}).status_code == 400


def test_nobody_changes_or_deletes(admin_client):
    entry = own_entry()
    assert admin_client.post(entry_url(entry), {"seq": 7}).status_code == 403
    assert admin_client.get(f"{ENTRIES}{entry.pk}/delete/").status_code == 403
