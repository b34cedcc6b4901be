import re
from html import unescape

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.messages import get_messages

from django_runstore import RunPersistenceFailed
from django_runstore.admin import cancelling
from django_runstore.admin.addresses import form_value
from django_runstore.models import Run
from django_runstore.outcomes import NotFound
from django_runstore.services import RunStore
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import RUNS, run_url

pytestmark = pytest.mark.django_db


@pytest.fixture
def cancel():
    """Choose the action for some runs; what the page says then."""

    def act(client, *run_ids, **more):
        selected = [form_value(run_id) for run_id in run_ids]
        data = {"action": "cancel_selected", ACTION_CHECKBOX_NAME: selected, "select_across": "0"}
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
        "Asked before: c (1970-01-01 00:00:00.000)",
    ]


def test_runs_asked_at_various_times_share_a_message(operator, cancel):
    for moment_ms, run_id in enumerate("abc"):
        RunStore().request_cancel(RunFactory(run_id=run_id).pk, moment_ms)
    assert len(cancel(operator, "a", "b", "c")) == 1


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
    assert cancel(operator, "gone") == ["None of them is there any more."]


def test_a_run_that_vanishes_meanwhile_is_not_an_error(operator, cancel, monkeypatch):
    RunFactory(run_id="a")
    monkeypatch.setattr(RunStore, "request_cancel", lambda *_: NotFound())
    assert cancel(operator, "a") == ["Not there any more: a"]


@pytest.mark.parametrize(
    "run_id", ["a/b?#", "🚀" * 512, "x" * 1_024, "a,b", "a\nb\rc", "..", "%41"]
)
def test_odd_ids_can_be_selected_with_what_the_list_offers(operator, page, cancel, run_id):
    run = RunFactory(run_id=run_id)
    offered = re.search(rf'name="{ACTION_CHECKBOX_NAME}" value="(.*?)"', page(operator, RUNS))
    # What stands in a form is sent as it is only where it has no line breaks.
    assert offered[1].isprintable()
    data = {"action": "cancel_selected", ACTION_CHECKBOX_NAME: unescape(offered[1])}
    operator.post(RUNS, data)
    assert requested(run)


def test_more_runs_than_one_means_to_stop_are_refused(operator, cancel, monkeypatch):
    monkeypatch.setattr("django_runstore.admin.actions.admin.MOST_CANCELLED", 2)
    runs = RunFactory.create_batch(3)
    said = cancel(operator, runs[0].pk, select_across="1")
    assert said == ["Select at most 2 runs; none was asked to stop."]
    assert not any(map(requested, runs))


def test_many_runs_are_named_up_to_a_number():
    names = cancelling.listed([f"run-{number}" for number in range(25)])
    assert names.endswith("run-19 and 5 more")


@pytest.mark.parametrize("action", ["cancel_selected", "cancel_lineage"])
def test_a_request_to_read_cancels_nothing(admin_client, action):
    run = RunFactory()
    admin_client.get(RUNS, {"action": action, ACTION_CHECKBOX_NAME: run.pk})
    assert not requested(run)


class TestLineages:
    @pytest.fixture
    def rounds(self):
        RunFactory(run_id="line", completed=True)
        return [RunFactory(lineage_id="line", round_ordinal=number) for number in (1, 2)]

    def test_all_live_rounds_are_asked(self, lineage_operator, cancel, rounds):
        said = cancel(lineage_operator, rounds[0].pk, action="cancel_lineage")
        assert said == ["Asked to stop, with the whole lineage: line"]
        assert all(map(requested, rounds))

    def test_the_root_stands_for_its_lineage(self, lineage_operator, cancel, rounds):
        cancel(lineage_operator, "line", action="cancel_lineage")
        assert all(map(requested, rounds))

    def test_a_lineage_selected_twice_is_asked_once(self, lineage_operator, cancel, rounds):
        said = cancel(lineage_operator, "line", *(r.pk for r in rounds), action="cancel_lineage")
        assert said == ["Asked to stop, with the whole lineage: line"]

    def test_every_round_that_was_asked_has_it_in_its_history(
        self, lineage_operator, cancel, rounds
    ):
        RunStore().request_cancel(rounds[0].pk)
        cancel(lineage_operator, "line", action="cancel_lineage")
        assert [entry.object_id for entry in LogEntry.objects.all()] == [rounds[1].pk]

    def test_rounds_asked_before_are_reported(self, lineage_operator, cancel, rounds):
        RunStore().request_cancel_lineage("line", 0)
        said = cancel(lineage_operator, "line", action="cancel_lineage")
        assert said == ["Every live round was asked before: line (1970-01-01 00:00:00.000)"]

    def test_a_lineage_that_ended_is_reported(self, lineage_operator, cancel):
        run = RunFactory(run_id="a", failed=True)
        said = cancel(lineage_operator, run.pk, action="cancel_lineage")
        assert said == ["Every round ended before, the latest as failed: a"]

    def test_a_lineage_that_vanishes_meanwhile_is_not_an_error(
        self, lineage_operator, cancel, monkeypatch
    ):
        RunFactory(run_id="a")
        monkeypatch.setattr(RunStore, "request_cancel_lineage", lambda *_: NotFound())
        said = cancel(lineage_operator, "a", action="cancel_lineage")
        assert said == ["Not there any more: a"]

    def test_a_failure_is_reported(self, lineage_operator, cancel, monkeypatch):
        RunFactory(run_id="a")

        def fail(self, run_id):
            raise RunPersistenceFailed("request_cancel_lineage", "database operation failed")

        monkeypatch.setattr(RunStore, "request_cancel_lineage", fail)
        said = cancel(lineage_operator, "a", action="cancel_lineage")
        assert said == ["Could not be asked (persistence_failed): a"]

    def test_cancelling_single_runs_is_not_enough(self, operator, rounds):
        data = {"action": "cancel_lineage", ACTION_CHECKBOX_NAME: ["line"]}
        operator.post(RUNS, data)
        assert not any(map(requested, rounds))

    def test_cancelling_lineages_is_not_enough_for_a_single_run(self, lineage_operator, rounds):
        data = {"action": "cancel_selected", ACTION_CHECKBOX_NAME: [rounds[0].pk]}
        lineage_operator.post(RUNS, data)
        assert not requested(rounds[0])


class TestFromThePageOfARun:
    def test_each_permission_offers_its_own_button(self, operator, page):
        text = page(operator, run_url(RunFactory().pk))
        assert ('value="cancel_selected"' in text, 'value="cancel_lineage"' in text) == (
            True,
            False,
        )

    def test_a_viewer_has_no_button(self, viewer, page):
        assert 'name="action"' not in page(viewer, run_url(RunFactory().pk))

    def test_a_superuser_has_both_buttons(self, admin_client, page):
        text = page(admin_client, run_url(RunFactory().pk))
        assert 'value="cancel_selected"' in text
        assert 'value="cancel_lineage"' in text

    def test_a_settled_run_has_no_button_of_its_own(self, admin_client, page):
        text = page(admin_client, run_url(RunFactory(completed=True).pk))
        assert 'value="cancel_selected"' not in text
        assert 'value="cancel_lineage"' in text

    @pytest.mark.parametrize("run_id", ["run-7", "..", "a\nb"])
    def test_the_button_asks_the_run_and_leads_back(self, operator, page, run_id):
        run = RunFactory(run_id=run_id)
        form = page(operator, run_url(run.pk)).partition('<form method="post"')[2]
        fields = re.findall(r'<input type="hidden" name="(.*?)" value="(.*?)">', form)
        data = {name: unescape(value) for name, value in fields}
        response = operator.post(RUNS, data)
        assert requested(run)
        assert response["Location"] == run_url(run.pk)
