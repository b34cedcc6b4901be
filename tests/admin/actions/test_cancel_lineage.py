import pytest
from django.contrib.admin.models import LogEntry

from django_runstore import OwnerId, RunPersistenceFailed
from django_runstore.admin.actions import cancel_lineage
from django_runstore.models import Run
from django_runstore.outcomes import NotFound
from django_runstore.services import RunStore
from django_runstore.testing.factories import RunFactory
from tests.admin.forms import said, send
from tests.admin.pages import act_url, run_url

pytestmark = pytest.mark.django_db

OWNER = OwnerId("web-1", 11, "aaaa")


def requested(run):
    return Run.objects.get(pk=run.pk).cancel_requested_at_ms is not None


@pytest.fixture
def rounds():
    """Two live rounds of a lineage whose root has ended."""
    RunFactory(run_id="line", completed=True)
    return [
        RunFactory(run_id=f"line-{number}", lineage_id="line", round_ordinal=number)
        for number in (1, 2)
    ]


def test_all_live_rounds_are_asked_and_named(lineage_operator, act, rounds):
    assert act(lineage_operator, "cancel_lineage", "line-1") == ["Asked to stop: line-1, line-2"]
    assert all(map(requested, rounds))


def test_the_root_stands_for_its_lineage(lineage_operator, act, rounds):
    act(lineage_operator, "cancel_lineage", "line")
    assert all(map(requested, rounds))


def test_a_lineage_selected_twice_is_asked_once(lineage_operator, act, rounds):
    said_once = act(lineage_operator, "cancel_lineage", "line", "line-1", "line-2")
    assert said_once == ["Asked to stop: line-1, line-2"]


def test_a_child_and_a_fork_are_not_asked(lineage_operator, act, rounds):
    child = RunFactory(parent_run_id="line-1")
    fork = RunFactory(parent_run_id="line-1", lineage_id="other", round_ordinal=0)
    act(lineage_operator, "cancel_lineage", "line")
    assert (requested(child), requested(fork)) == (False, False)


def test_the_confirmation_lists_every_round(lineage_operator, choose, rounds):
    RunStore().request_cancel("line-2", 0)
    response = choose(lineage_operator, "cancel_lineage", "line-1")
    listed = [[member.run.pk for member in group.members] for group in response.context["groups"]]
    assert listed == [["line-1"], ["line-2"], ["line"]]


def test_a_long_lineage_is_listed_up_to_a_number_and_it_says_so(
    lineage_operator, choose, rounds, monkeypatch
):
    monkeypatch.setattr(cancel_lineage, "MOST_ROUNDS", 1)
    text = choose(lineage_operator, "cancel_lineage", "line-1").content.decode()
    assert ("line-2" in text, "only the newest are listed" in text) == (True, True)
    assert ">line-1<" not in text


def test_every_round_that_was_asked_has_it_in_its_history(lineage_operator, act, rounds):
    RunStore().request_cancel("line-1")
    act(lineage_operator, "cancel_lineage", "line")
    found = {entry.object_id: entry.change_message for entry in LogEntry.objects.all()}
    assert found == {
        "line-2": "Cancel the whole lineage: Asked to stop",
        "line": "Cancel the whole lineage: Asked other rounds to stop",
    }


def test_a_request_that_reaches_nobody_is_in_the_history_of_the_run_that_was_chosen(
    lineage_operator, act, rounds
):
    RunStore().request_cancel_lineage("line", 0)
    client = lineage_operator
    # The form is sent although the page would not offer it: nothing was left to ask.
    assert said(client.post(act_url("cancel_lineage", "line"))) == [
        "Every live round was asked before: line"
    ]
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.change_message) == (
        "line",
        "Cancel the whole lineage: Every live round was asked before",
    )


def test_a_round_that_ends_between_confirmation_and_request_is_reported(lineage_operator, choose):
    RunFactory(run_id="a", lineage_id="line", round_ordinal=0, running=True, owner=OWNER)
    RunFactory(run_id="b", lineage_id="line", round_ordinal=1)
    confirmation = choose(lineage_operator, "cancel_lineage", "a")
    RunStore().transition_owned("a", OWNER, "failed")
    assert said(send(lineage_operator, confirmation)) == [
        "Asked to stop: b",
        "Ended meanwhile, as failed: a",
    ]


def test_a_round_created_between_confirmation_and_request_is_asked_and_named(
    lineage_operator, choose, rounds
):
    confirmation = choose(lineage_operator, "cancel_lineage", "line-1")
    RunFactory(run_id="line-3", lineage_id="line", round_ordinal=3)
    assert said(send(lineage_operator, confirmation)) == ["Asked to stop: line-1, line-2, line-3"]


def test_a_lineage_that_ended_is_reported_and_nothing_is_offered(lineage_operator, choose):
    run = RunFactory(run_id="a", failed=True)
    confirmation = choose(lineage_operator, "cancel_lineage", run.pk)
    assert "There is nothing to do." in confirmation.content.decode()
    assert said(lineage_operator.post(act_url("cancel_lineage", "a"))) == [
        "Every round has ended, the latest as failed: a"
    ]


def test_a_lineage_that_vanishes_meanwhile_is_not_an_error(lineage_operator, act, monkeypatch):
    RunFactory(run_id="a")
    monkeypatch.setattr(RunStore, "request_cancel_lineage", lambda *_: NotFound())
    assert act(lineage_operator, "cancel_lineage", "a") == ["Not there any more: a"]


def test_a_failure_is_reported_and_entered_into_the_history(lineage_operator, act, monkeypatch):
    RunFactory(run_id="a")

    def fail(self, run_id):
        raise RunPersistenceFailed("request_cancel_lineage", "database operation failed")

    monkeypatch.setattr(RunStore, "request_cancel_lineage", fail)
    assert act(lineage_operator, "cancel_lineage", "a") == ["Failed (persistence_failed): a"]
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.change_message) == (
        "a",
        "Cancel the whole lineage: Failed (persistence_failed)",
    )


def test_cancelling_single_runs_is_not_enough(operator, choose, rounds):
    choose(operator, "cancel_lineage", "line")
    assert operator.post(act_url("cancel_lineage", "line")).status_code == 403
    assert not any(map(requested, rounds))


def test_cancelling_lineages_is_not_enough_for_a_single_run(lineage_operator, rounds):
    assert lineage_operator.post(act_url("cancel_run", "line-1")).status_code == 403
    assert not requested(rounds[0])


def test_a_settled_round_still_has_the_button(lineage_operator, page, rounds):
    assert "cancel_lineage" in page(lineage_operator, run_url("line"))
