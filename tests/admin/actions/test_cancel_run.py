import pytest
from django.contrib.admin.models import LogEntry
from django.db import OperationalError

from django_runstore import RunPersistenceFailed
from django_runstore.admin.runs import RunAdmin
from django_runstore.models import Run
from django_runstore.outcomes import NotFound
from django_runstore.services import RunStore
from django_runstore.testing.factories import RunFactory
from tests.admin.forms import said, send
from tests.admin.pages import RUNS, act_url, run_url

pytestmark = pytest.mark.django_db


def requested(run):
    return Run.objects.get(pk=run.pk).cancel_requested_at_ms is not None


def settle(run, status="completed"):
    """Let the owner of a run end it."""
    row = RunStore().get(run.pk)
    RunStore().transition_owned(run.pk, row.owner, status, fence=row.owner_fence)


def test_selected_runs_are_asked_to_stop(operator, act):
    asked, left = RunFactory(), RunFactory()
    assert act(operator, "cancel_run", asked.pk) == [f"Asked to stop: {asked.pk}"]
    assert (requested(asked), requested(left)) == (True, False)


def test_each_outcome_is_reported_in_words(operator, act):
    pending, done = RunFactory(run_id="a"), RunFactory(run_id="b", completed=True)
    before = RunFactory(run_id="c")
    RunStore().request_cancel(before.pk, 0)
    assert act(operator, "cancel_run", pending.pk, done.pk, before.pk) == [
        "Asked to stop: a",
        "Ended before, as completed: b",
        "Asked before: c (1970-01-01 00:00:00.000)",
    ]


def test_the_confirmation_tells_the_runs_that_will_be_asked_from_the_others(operator, choose):
    RunFactory(run_id="live-1")
    RunFactory(run_id="done-1", failed=True)
    RunStore().request_cancel(RunFactory(run_id="asked-1").pk, 0)
    response = choose(operator, "cancel_run", "live-1", "done-1", "asked-1")
    groups = {
        group.heading: [member.run.pk for member in group.members]
        for group in response.context["groups"]
    }
    assert groups == {
        "Will be asked to stop": ["live-1"],
        "Asked before": ["asked-1"],
        "Settled already; nothing happens to them": ["done-1"],
    }
    assert "asked 1970-01-01 00:00:00.000" in response.content.decode()


def test_the_confirmation_says_what_cancelling_means(operator, choose):
    text = choose(operator, "cancel_run", RunFactory().pk).content.decode()
    assert "Cancelling is a request." in text
    assert "is not undone" in text


@pytest.mark.parametrize("when", ["before the form is sent", "while it is processed"])
def test_a_run_that_ends_after_it_was_shown_is_said_to_have_ended_meanwhile(
    operator, choose, monkeypatch, when
):
    run = RunFactory(run_id="a", running=True)
    confirmation = choose(operator, "cancel_run", run.pk)
    if when == "before the form is sent":
        settle(run)
    else:
        request = RunStore.request_cancel

        def lose_the_race(store, run_id):
            settle(run)
            return request(store, run_id)

        monkeypatch.setattr(RunStore, "request_cancel", lose_the_race)
    assert said(send(operator, confirmation)) == ["Ended meanwhile, as completed: a"]


def test_a_form_without_the_time_it_was_shown_at_is_answered_all_the_same(operator):
    run = RunFactory(run_id="a", completed=True)
    response = operator.post(act_url("cancel_run"), {"run": [run.pk], "shown_at_ms": "x"})
    assert said(response) == ["Ended before, as completed: a"]


def test_runs_asked_at_various_times_share_a_message(operator, act):
    for moment_ms, run_id in enumerate("abc"):
        RunStore().request_cancel(RunFactory(run_id=run_id).pk, moment_ms)
    RunFactory(run_id="d")
    assert len(act(operator, "cancel_run", "a", "b", "c", "d")) == 2


def test_a_failure_of_one_run_is_reported_and_stops_no_other(operator, act, monkeypatch):
    RunFactory(run_id="a")
    RunFactory(run_id="b")
    request = RunStore.request_cancel

    def fail_for_a(self, run_id, now_ms=None):
        if run_id == "a":
            raise RunPersistenceFailed("request_cancel", "database operation failed")
        return request(self, run_id, now_ms)

    monkeypatch.setattr(RunStore, "request_cancel", fail_for_a)
    assert act(operator, "cancel_run", "a", "b") == [
        "Asked to stop: b",
        "Failed (persistence_failed): a",
    ]
    assert set(LogEntry.objects.values_list("object_id", "change_message")) == {
        ("a", "Cancel run: Failed (persistence_failed)"),
        ("b", "Cancel run: Asked to stop"),
    }


def test_a_failure_whose_history_cannot_be_written_is_reported_all_the_same(
    operator, act, monkeypatch
):
    RunFactory(run_id="a")

    def away(*_, **__):
        raise OperationalError("server closed the connection unexpectedly")

    def fail(*_, **__):
        raise RunPersistenceFailed("request_cancel", "database operation failed")

    monkeypatch.setattr(RunStore, "request_cancel", fail)
    monkeypatch.setattr(RunAdmin, "log_change", away)
    assert act(operator, "cancel_run", "a") == ["Failed (persistence_failed): a"]


def test_a_run_that_vanishes_meanwhile_is_not_an_error(operator, act, monkeypatch):
    RunFactory(run_id="a")
    monkeypatch.setattr(RunStore, "request_cancel", lambda *_: NotFound())
    assert act(operator, "cancel_run", "a") == ["Not there any more: a"]


@pytest.mark.parametrize("rights", [("view_run",), ("view_run", "change_run", "delete_run")])
def test_other_permissions_are_not_enough(member, choose, rights):
    run = RunFactory()
    client = member(*rights)
    choose(client, "cancel_run", run.pk)
    assert client.post(act_url("cancel_run"), {"run": [run.pk]}).status_code == 403
    assert client.get(act_url("cancel_run", run.pk)).status_code == 403
    assert client.post(act_url("cancel_run", run.pk)).status_code == 403
    assert not requested(run)


def test_the_permission_without_the_view_is_not_enough(member, choose):
    run = RunFactory()
    client = member("cancel_run")
    assert choose(client, "cancel_run", run.pk).status_code == 403
    assert client.post(act_url("cancel_run"), {"run": [run.pk]}).status_code == 403
    assert client.post(act_url("cancel_run", run.pk)).status_code == 403
    assert not requested(run)


def test_a_settled_run_has_no_button(operator, page):
    assert "cancel_run" in page(operator, run_url(RunFactory().pk))
    assert "cancel_run" not in page(operator, run_url(RunFactory(completed=True).pk))


def test_the_list_offers_it_with_the_permission_only(member, page):
    RunFactory()
    client = member("view_run")
    assert 'value="cancel_run"' not in page(client, RUNS)
