"""Conformance notes 161, 162, 189 and 197: rows, databases and diagnostics of attempts."""

import pickle
from dataclasses import fields, replace

import pytest
from django.db import OperationalError, connection, transaction

from django_runstore.attempts import AttemptPatch, AttemptRecord
from django_runstore.errors import (
    AttemptConstraint,
    AttemptDecodeFailed,
    AttemptPersistenceFailed,
    AttemptStoreError,
    AttemptUnknown,
    DatabaseFailure,
    InvalidAttempt,
)
from django_runstore.models import Attempt
from django_runstore.outcomes import Finished, Inserted, NotFound, Patched
from tests.conformance.attempts import (
    DIGEST,
    FINISHED,
    ID,
    OPERATIONS,
    RUNNING,
    opened,
    rows,
    started,
    write_raw,
)
from tests.conformance.test_diagnostics import SECRET, Secretive, everything_about
from tests.conformance.world import A

pytestmark = pytest.mark.django_db

COULD_NOT = "could not decode attempt row"


def drop_checks():
    """Let SQL write what no CHECK would admit, until the test's transaction ends."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA ignore_check_constraints = ON")
        else:
            # Queued foreign key checks would keep the table from being altered.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for constraint in Attempt._meta.constraints:
                if constraint.name != "runstore_attempt_key":
                    cursor.execute(
                        f"ALTER TABLE runstore_attempt DROP CONSTRAINT {constraint.name}"
                    )


@pytest.fixture
def unchecked(db):
    yield drop_checks
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA ignore_check_constraints = OFF")


@pytest.mark.conformance(161)
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"checkpoint_json": f"{SECRET} is no JSON"}, "checkpoint_json must be valid JSON text"),
        ({"error_json": f'"{SECRET}'}, "error_json must be valid JSON text"),
        ({"outcome_json": ""}, "outcome_json must be non-empty JSON text"),
        ({"meta_json": "NaN"}, "meta_json must be valid JSON text"),
        ({"meta_json": "1e400"}, "meta_json contains a non-finite number"),
        ({"meta_json": "[" * 130 + "]" * 130}, "meta_json exceeds the maximum JSON depth of 128"),
        ({"checkpoint_json": " " * 2**24 + "1"}, "checkpoint_json exceeds the JSON byte limit"),
        ({"state": ""}, COULD_NOT),
        ({"state": "x" * 1_025}, COULD_NOT),
        ({"started_at_ms": -1}, COULD_NOT),
        ({"finished_at_ms": -1}, COULD_NOT),
        ({"heartbeat_at_ms": -1}, COULD_NOT),
        ({"started_at_ms": 2**53}, COULD_NOT),
        ({"step_key_digest": "another"}, COULD_NOT),
        ({"step_name": "x" * 1_025}, COULD_NOT),
    ],
)
def test_a_row_that_the_store_could_not_have_written_is_refused(unchecked, columns, message):
    store = started()
    unchecked()
    write_raw(**columns)
    for operation, read in (("get", lambda: store.get(ID)), ("put", lambda: store.put(RUNNING, A))):
        with pytest.raises(AttemptDecodeFailed) as caught:
            read()
        assert str(caught.value) == f"decode_failed: AttemptStore.{operation}: {message}"
        assert SECRET not in everything_about(caught.value)


def test_the_other_writes_do_not_decode_what_they_do_not_need(unchecked):
    store = started()
    unchecked()
    write_raw(meta_json="no JSON", started_at_ms=-1)
    assert store.heartbeat("run", DIGEST, 0, A, 12).code == "updated"
    assert store.patch(ID, AttemptPatch(meta=1), A) == Patched()
    assert store.finish(FINISHED, A) == Finished()


def failing(error):
    def fail(*_):
        raise error

    return connection.execute_wrapper(fail)


@pytest.mark.conformance(162)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("error", "kind", "cause"),
    [
        (DatabaseFailure("constraint"), AttemptConstraint, "constraint"),
        (DatabaseFailure("io"), AttemptPersistenceFailed, "io"),
        (DatabaseFailure("unsupported"), AttemptPersistenceFailed, "unsupported"),
        (ValueError(SECRET), AttemptPersistenceFailed, "unknown"),
    ],
    ids=["constraint", "io", "unsupported", "unknown"],
)
def test_a_failure_of_the_database_is_one_of_two_errors(operation, error, kind, cause):
    store = started()
    failure = OperationalError(SECRET)
    failure.__cause__ = error
    before = rows()
    with failing(failure), pytest.raises(AttemptStoreError) as caught:
        OPERATIONS[operation].on(store)
    found = caught.value
    assert type(found) is kind
    assert str(found) == f"{kind.code}: AttemptStore.{operation}: attempt persistence failed"
    assert dict(found.detail) == {"category": kind.code, "reason": cause, "cause": cause}
    assert (type(found.__cause__), found.__cause__.code) == (DatabaseFailure, cause)
    assert SECRET not in everything_about(found)
    assert rows() == before


@pytest.mark.conformance(162)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_error_of_the_store_passes_through_unchanged(operation):
    store = started()
    error = AttemptUnknown("elsewhere", "as it was")
    with failing(error), pytest.raises(AttemptUnknown) as caught:
        OPERATIONS[operation].on(store)
    assert caught.value is error


@pytest.mark.conformance(162)
def test_a_row_of_somebody_elses_that_slips_in_is_a_constraint_failure(monkeypatch):
    store = started()
    monkeypatch.setattr(store, "_row", lambda _: Attempt.objects.none())
    with pytest.raises(AttemptConstraint) as caught:
        store.put(RUNNING, A)
    assert caught.value.detail["cause"] == "constraint"


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_an_attempt_that_vanishes_under_the_lock_is_unknown(mode, monkeypatch):
    store = started(put_mode=mode)

    class Vanishing:
        """Rows that are there when their state is read and gone afterwards."""

        def values_list(self, *names, **options):
            found = Attempt.objects.values_list(*names, **options)
            assert found.first() == "running"
            return found

        def update(self, **_):
            return 0

        def values(self, *_):
            return Attempt.objects.none().values()

    monkeypatch.setattr(store, "_row", lambda _: Vanishing())
    with pytest.raises(AttemptUnknown) as caught:
        store.put(RUNNING, A)
    assert str(caught.value) == "unknown: AttemptStore.put: attempt disappeared during put"


@pytest.mark.conformance(189)
def test_attempts_hold_credentials_as_they_are():
    store = opened()
    values = {"token": SECRET, "authorization": "Bearer x"}
    put = replace(RUNNING, meta=values, checkpoint=values)
    assert store.put(put, A) == Inserted()
    assert store.patch(ID, AttemptPatch(error=values), A) == Patched()
    assert store.finish(replace(FINISHED, outcome=values), A) == Finished()
    read = store.get(ID)
    assert [read.meta, read.checkpoint, read.error, read.outcome] == [values] * 4
    assert SECRET not in f"{read!r} {put!r} {FINISHED!r} {AttemptPatch(meta=values)!r}"


@pytest.mark.conformance(190)
@pytest.mark.parametrize(
    ("operation", "name"),
    [(item.operation, name) for item in OPERATIONS.values() for name in item.arguments],
)
def test_a_secret_passed_as_anything_is_not_repeated(operation, name):
    store = started()
    for value in (Secretive(), {SECRET: object()}):
        with pytest.raises(InvalidAttempt) as caught:
            OPERATIONS[operation].on(store, **{name: value})
        assert SECRET not in everything_about(caught.value)
        assert len(f"{caught.value} {caught.value!r}") < 2_000


@pytest.mark.parametrize("field", [field.name for field in fields(AttemptRecord)])
def test_a_secret_in_any_field_of_an_attempt_is_not_repeated(field):
    with pytest.raises(InvalidAttempt) as caught:
        opened().put(replace(RUNNING, **{field: Secretive()}), A)
    assert SECRET not in everything_about(caught.value)


def test_errors_survive_pickling():
    for kind in (InvalidAttempt, AttemptUnknown, AttemptDecodeFailed, AttemptConstraint):
        error = kind("put", "as it was", {"cause": "busy"})
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - made here
        assert (type(copy), str(copy), dict(copy.detail)) == (kind, str(error), {"cause": "busy"})


def test_a_rolled_back_block_takes_its_attempts_with_it():
    store = opened()
    with transaction.atomic():
        assert store.put(RUNNING, A) == Inserted()
        transaction.set_rollback(True)
    assert rows() == []
    assert store.finish(FINISHED, A) == NotFound()
