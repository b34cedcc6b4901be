import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.messages import get_messages

from django_runstore import RunPersistenceFailed
from django_runstore.admin import cancelling
from django_runstore.models import Run
from django_runstore.services import RunStore
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import RUNS, run_url

pytestmark = pytest.mark.django_db


@pytest.fixture
def cancel():
    """Choose the action for some runs; what the page says then."""

    def act(client, *run_ids, **more):
        data = {"action": "cancel_selected", ACTION_CHECKBOX_NAME: run_ids, "select_across": "0"}
        response = client.post(RUNS, data | more)
        assert response.status_code == 302, response.status_code
        return [str(message) for message in get_messages(response.wsgi_request)]

    return act


def requested(run):
    return Run.objects.get(pk=run.pk).cancel_requested_at_ms is not None


def test_selected_runs_are_asked_to_stop(operator, cancel):
    asked, left = RunFactory(), RunFactory()
    assert cancel(operator, asked.pk) == [f"Asked to stop: {asked.pk}"]
    assert (requested(asked), requested(left)) == (True, False)


def test_each_outcome_is_reported_in_words(operator, cancel):
    pending, done = RunFactory(run_id="a"), RunFactory(run_id="b", completed=True)
    before = RunFactory(run_id="c")
    RunStore().request_cancel(before.pk, 0)
    assert cancel(operator, pending.pk, done.pk, before.pk) == [
        "Asked to stop: a",
        "Ended before, as completed: b",
        "Asked before, at 1970-01-01 00:00:00.000: c",
    ]


def test_a_request_is_in_the_history_of_the_run(operator, cancel):
    run = RunFactory(run_id="a/b")
    cancel(operator, run.pk)
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.action_flag, entry.change_message, entry.user.username) == (
        "a/b",
        CHANGE,
        "Asked to stop",
        "member",
    )
    assert "Asked to stop" in operator.get(run_url(run.pk, "history")).content.decode()


def test_what_changed_nothing_is_not_in_the_history(operator, cancel):
    cancel(operator, RunFactory(completed=True).pk)
    assert not LogEntry.objects.exists()


def test_a_request_without_a_history_entry_is_not_made(operator, monkeypatch):
    run = RunFactory()

    def fail(*args, **kwargs):
        raise ZeroDivisionError

    monkeypatch.setattr("django.contrib.admin.ModelAdmin.log_change", fail)
    with pytest.raises(ZeroDivisionError):
        operator.post(RUNS, {"action": "cancel_selected", ACTION_CHECKBOX_NAME: [run.pk]})
    assert not requested(run)


@pytest.mark.parametrize("rights", [("view_run",), ("view_run", "change_run", "delete_run")])
def test_other_permissions_are_not_enough(member, rights):
    run = RunFactory()
    data = {"action": "cancel_selected", ACTION_CHECKBOX_NAME: [run.pk]}
    member(*rights).post(RUNS, data)
    assert not requested(run)


def test_the_action_is_not_offered_without_the_permission(viewer, page):
    RunFactory()
    assert "cancel_selected" not in page(viewer, RUNS)


def test_the_permission_without_the_view_is_not_enough(member):
    run = RunFactory()
    data = {"action": "cancel_selected", ACTION_CHECKBOX_NAME: [run.pk]}
    assert member("cancel_run").post(RUNS, data).status_code == 403
    assert not requested(run)


def test_a_failure_of_one_run_is_reported_and_stops_no_other(operator, cancel, monkeypatch):
    RunFactory(run_id="a")
    RunFactory(run_id="b")
    request = RunStore.request_cancel

    def fail_for_a(self, run_id, now_ms=None):
        if run_id == "a":
            raise RunPersistenceFailed("request_cancel", "database operation failed")
        return request(self, run_id, now_ms)

    monkeypatch.setattr(RunStore, "request_cancel", fail_for_a)
    assert cancel(operator, "a", "b") == [
        "Asked to stop: b",
        "Could not be asked (persistence_failed): a",
    ]


def test_a_selected_id_with_a_nul_is_a_bad_request(operator):
    data = {"action": "cancel_selected", ACTION_CHECKBOX_NAME: ["a\0b"]}
    assert operator.post(RUNS, data).status_code == 400


def test_a_run_that_is_not_there_any_more_is_not_an_error(operator, cancel):
    assert cancel(operator, "gone") == []


@pytest.mark.parametrize("run_id", ["a/b?#", "🚀" * 512, "x" * 1_024, "a,b"])
def test_odd_ids_can_be_selected(operator, cancel, run_id):
    run = RunFactory(run_id=run_id)
    cancel(operator, run.pk)
    assert requested(run)


def test_more_runs_than_one_means_to_stop_are_refused(operator, cancel, monkeypatch):
    monkeypatch.setattr("django_runstore.admin.runs.MOST_CANCELLED", 2)
    runs = RunFactory.create_batch(3)
    said = cancel(operator, runs[0].pk, select_across="1")
    assert said == ["Select at most 2 runs; none was asked to stop."]
    assert not any(map(requested, runs))


def test_many_runs_are_named_up_to_a_number():
    names = cancelling.named([f"run-{number}" for number in range(25)])
    assert names.endswith("run-19 and 5 more")
