import json

import pytest
from django.db import IntegrityError, transaction

from django_runstore import OwnerId, RunDecodeFailed, RunStatus, RunStore
from django_runstore.models import JournalEntry, Run
from django_runstore.testing import FakeClock
from django_runstore.testing.factories import RunFactory

pytestmark = pytest.mark.django_db

ENDED = ("completed", "failed", "cancelled")


def facts_of(run):
    entries = JournalEntry.objects.filter(run_id=run.run_id, companion="run-store")
    return [entry.event_type.rpartition(".")[2] for entry in entries.order_by("seq")]


@pytest.mark.parametrize("status", RunStatus.values)
def test_each_status_is_a_trait(status):
    assert RunFactory(**{status: True}).status == status


@pytest.mark.parametrize("status", RunStatus.values)
def test_each_status_is_an_argument_too(status):
    assert RunFactory(status=status).status == status


@pytest.mark.parametrize("status", RunStatus.values)
def test_what_is_made_can_be_read_by_the_store(status):
    run = RunFactory(status=status)
    assert RunStore().get(run.run_id).status == status


@pytest.mark.parametrize("status", ["suspended", *ENDED])
def test_a_run_that_was_left_has_the_ownership_facts_of_a_real_one(status):
    assert facts_of(RunFactory(status=status)) == ["claimed", "activated", "released"]


def test_a_running_run_is_owned_by_the_owner_that_was_named():
    owner = OwnerId("host", 7, "nonce")
    run = RunFactory(running=True, owner=owner)
    assert RunStore().get(run.run_id).owner == owner


def test_a_running_run_has_the_fence_of_its_first_grant():
    assert RunFactory(running=True).owner_fence == 1


def test_a_clock_that_lies_behind_makes_a_stale_run():
    run = RunFactory(running=True, clock=FakeClock(1_000))
    assert Run.objects.stale(1_000 + 30_001).get() == run


def test_a_claimed_run_is_pending_and_reserved():
    run = RunFactory(claimed=True)
    assert (run.status, run.claimed_at_ms is None) == ("pending", False)


def test_a_cancelled_run_was_asked_to_stop():
    assert RunFactory(cancelled=True).cancel_requested_at_ms is not None


def test_a_failed_run_has_a_readable_error():
    assert json.loads(RunFactory(failed=True).error_json)["type"] == "RuntimeError"


def test_a_result_is_stored_with_the_ending():
    assert RunFactory(completed=True, result_json="42").result_json == "42"


def test_the_arguments_of_create_are_handed_on():
    parent = RunFactory()
    run = RunFactory(
        run_id="a/b", parent_run_id=parent.run_id, lineage_id="line", round_ordinal=3, queue="slow"
    )
    assert (run.run_id, run.parent_run, run.lineage_id, run.round_ordinal, run.queue) == (
        "a/b",
        parent,
        "line",
        3,
        "slow",
    )


def test_a_batch_has_as_many_runs_as_were_asked_for():
    RunFactory.create_batch(3, suspended=True)
    assert Run.objects.filter(status="suspended").count() == 3


def test_a_run_that_is_not_stored_is_refused():
    with pytest.raises(NotImplementedError, match="stored runs only"):
        RunFactory.build()


def test_a_raw_row_can_be_one_that_no_service_would_read():
    run = RunFactory.raw(state_json="not json")
    with pytest.raises(RunDecodeFailed):
        RunStore().get(run.run_id)


def test_a_raw_row_has_no_history():
    assert facts_of(RunFactory.raw(status="completed")) == []


def test_the_database_still_refuses_a_raw_row_that_is_half_owned():
    with pytest.raises(IntegrityError), transaction.atomic():
        RunFactory.raw(status="running", owner_host_id="host")
