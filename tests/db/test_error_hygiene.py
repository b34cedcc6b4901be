"""Spec 9.5 and 10.2: what a failed operation carries is its class, and nothing of a row."""

import pytest
from django.db import OperationalError, connection
from django.db.models import QuerySet

from django_runstore import RunConstraint, RunPersistenceFailed, RunStore, RunStoreError
from django_runstore.db import boundary
from django_runstore.errors import DatabaseFailure
from django_runstore.models import Run
from django_runstore.testing import FakeClock
from tests.conformance.test_diagnostics import SECRET, everything_about

STATE = f'"{SECRET}"'


def assert_carries_only(error: RunStoreError, cause: str) -> None:
    assert SECRET not in everything_about(error)
    assert dict(error.detail) == {"category": error.code, "cause": cause}
    assert isinstance(error.__cause__, DatabaseFailure)
    assert error.__cause__.args == (cause,)
    assert (error.__cause__.__cause__, error.__cause__.__context__) == (None, None)
    assert error.__context__ is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    "columns", [{}, {"run_id": "other"}], ids=["primary key", "lineage and round"]
)
def test_a_unique_violation_carries_no_row(columns):
    known = {"run_id": SECRET, "lineage_id": SECRET, "round_ordinal": 0}
    RunStore().create(**known, state_json="{}")
    with pytest.raises(RunConstraint) as caught:
        RunStore().create(**(known | columns), state_json=STATE)
    assert_carries_only(caught.value, "constraint")
    assert str(caught.value) == "constraint: RunStore.create: database operation failed"


@pytest.mark.django_db(transaction=True)
def test_a_constraint_that_the_commit_finds_broken_carries_no_row(monkeypatch):
    # The parent was there when it was looked for; the foreign key is checked at commit.
    monkeypatch.setattr(QuerySet, "exists", lambda _: True)
    with pytest.raises(RunConstraint) as caught:
        RunStore().create("child", STATE, parent_run_id=SECRET)
    assert_carries_only(caught.value, "constraint")
    assert Run.objects.count() == 0


@pytest.mark.django_db
def test_a_failed_read_carries_no_words_of_the_driver(monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise OperationalError(SECRET)

    monkeypatch.setattr(QuerySet, "__iter__", fail)
    monkeypatch.setattr(QuerySet, "first", fail)
    for read in (RunStore().get, RunStore().lineage, RunStore().latest_round):
        with pytest.raises(RunPersistenceFailed) as caught:
            read("run")
        assert_carries_only(caught.value, "unknown")


@pytest.mark.django_db(transaction=True)
def test_an_attempt_that_was_replayed_leaves_no_trace_in_what_follows(monkeypatch):
    def fail(_: str) -> None:
        error = OperationalError(f"Failing row contains ({SECRET})")
        error.__cause__ = DatabaseFailure("busy")
        raise error

    monkeypatch.setattr(boundary, "take_write_lock", fail)
    monkeypatch.setattr(boundary.time, "sleep", lambda _: None)
    with pytest.raises(RunPersistenceFailed) as caught:
        RunStore().create("run", STATE)
    assert_carries_only(caught.value, "busy")


@pytest.mark.django_db
def test_a_failure_of_no_known_class_is_logged_by_class_and_state_alone(caplog):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE runstore_run RENAME TO runstore_gone")
    with pytest.raises(RunPersistenceFailed):
        RunStore(clock=FakeClock(0)).create(SECRET, STATE)
    (record,) = caplog.records
    assert record.operation == "create"
    state = {"sqlite": None, "postgresql": "42P01"}[connection.vendor]
    kind = {"sqlite": "OperationalError", "postgresql": "ProgrammingError"}[connection.vendor]
    assert (record.error, record.sqlstate, record.exc_info) == (kind, state, None)
    assert SECRET not in f"{record.getMessage()} {vars(record)}"
