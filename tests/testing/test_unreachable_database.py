"""A database that is away fails the way production does, and is back as it was."""

from contextlib import nullcontext

import pytest
from django.db import OperationalError, connection, transaction

from django_runstore import Journal, RunPersistenceFailed, RunStore
from django_runstore.db.failures import classify
from django_runstore.errors import AttemptPersistenceFailed, DatabaseFailure, SinkFailed
from django_runstore.events import JournalEvent
from django_runstore.models import Run
from django_runstore.services import AttemptStore
from django_runstore.testing import FakeClock, partition
from tests.conformance.calls import CALLS

pytestmark = pytest.mark.usefixtures("either_case")


@pytest.mark.parametrize("operation", sorted(CALLS))
@pytest.mark.parametrize("nested", [False, True], ids=["alone", "in a block"])
def test_every_operation_of_the_run_store_fails_typed(operation, nested):
    # The arguments are dated at the epoch.
    store = RunStore(clock=FakeClock(0))
    store.create("run", "{}")
    call = getattr(store, operation)
    arguments = CALLS[operation].arguments
    block = transaction.atomic() if nested else nullcontext()
    with block, partition(), pytest.raises(RunPersistenceFailed) as caught:
        call(**arguments)

    assert (caught.value.detail["cause"], caught.value.operation) == ("io", operation)
    assert isinstance(caught.value.__cause__, DatabaseFailure)


def test_the_other_services_fail_typed():
    journal, attempts = Journal(), AttemptStore()
    with partition():
        with pytest.raises(SinkFailed):
            journal.emit_durable_unfenced(JournalEvent("run", "source", "type", 1))
        with pytest.raises(AttemptPersistenceFailed):
            attempts.latest("run", "digest")


def test_a_statement_of_the_project_fails_like_one_of_a_lost_connection():
    with partition(), pytest.raises(OperationalError) as caught:
        Run.objects.count()

    assert classify(caught.value) == "io"


def test_afterwards_all_is_well():
    RunStore().create("before", "{}")
    with partition(), pytest.raises(RunPersistenceFailed):
        RunStore().create("meanwhile", "{}")
    RunStore().create("after", "{}")

    assert sorted(Run.objects.values_list("pk", flat=True)) == ["after", "before"]


def test_a_block_around_it_is_as_whole_as_before():
    with transaction.atomic():
        RunStore().create("before", "{}")
        with partition(), pytest.raises(RunPersistenceFailed):
            RunStore().create("meanwhile", "{}")
        with partition(), pytest.raises(OperationalError):
            Run.unguarded.filter(pk="before").update(queue="other")
        RunStore().create("after", "{}")

    assert sorted(Run.objects.values_list("pk", flat=True)) == ["after", "before"]


def test_a_block_that_was_broken_before_stays_broken():
    with transaction.atomic():
        transaction.set_rollback(True)
        with partition():
            pass
        assert transaction.get_rollback()


def test_a_savepoint_of_the_project_fails_like_a_statement():
    with partition(), pytest.raises(OperationalError), transaction.atomic():
        Run.objects.count()

    assert Run.objects.count() == 0


def test_blocks_inside_each_other_end_with_the_outermost():
    with partition():
        with partition():
            pass
        with pytest.raises(OperationalError):
            Run.objects.count()

    assert Run.objects.count() == 0


def test_a_lost_connection_cannot_be_opened_again_inside(either_case):
    if either_case == "TestCase":
        pytest.skip("the connection of a TestCase is never closed")
    with partition():
        connection.close()
        with pytest.raises(OperationalError):
            connection.ensure_connection()

    assert Run.objects.count() == 0


def test_a_commit_does_not_come_through(either_case):
    if either_case == "TestCase":
        pytest.skip("commits nothing")

    def commit_late():
        with transaction.atomic():
            RunStore().create("run", "{}")
            cut.__enter__()

    cut = partition()
    try:
        with pytest.raises(OperationalError):
            commit_late()
    finally:
        cut.__exit__(None, None, None)

    assert Run.objects.count() == 0
