"""Spec 10.3: real failures of real connections, each reduced to one of five codes."""

import itertools
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager

import psycopg
import pytest
from django.db import (
    DataError,
    Error,
    IntegrityError,
    NotSupportedError,
    OperationalError,
    connection,
    transaction,
)

from django_runstore import RunPersistenceFailed
from django_runstore.db.failures import classify, tells_of_broken_block
from django_runstore.errors import DatabaseFailure
from django_runstore.models import Run
from tests.conformance.race import race
from tests.db.reopened import second_connection, write_lock_held_elsewhere

pytestmark = pytest.mark.django_db(transaction=True)

DEADLINE_SECONDS = 30


def insert(run_id: str, **columns: object) -> None:
    plain = {"status": "pending", "created_at_ms": 0, "available_at_ms": 0, "state_json": "{}"}
    Run.unguarded.create(run_id=run_id, **(plain | columns))


def failure_of(action: Callable[[], object]) -> Error:
    with pytest.raises(Error) as caught:
        action()
    return caught.value


def sql(statement: str, over=connection) -> Callable[[], None]:
    def execute() -> None:
        with over.cursor() as cursor:
            cursor.execute(statement)

    return execute


# --- constraints, on both databases ---------------------------------------------------

BROKEN = {
    "primary key": lambda: insert("known"),
    "unique": lambda: insert("other", lineage_id="line", round_ordinal=0),
    "check": lambda: insert("other", status="paused"),
    "not null": lambda: insert("other", state_json=None),
    "deferred foreign key": lambda: insert("other", parent_run_id="nobody"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_constraint_is_a_constraint(broken):
    insert("known", lineage_id="line", round_ordinal=0)
    error = failure_of(BROKEN[broken])
    assert isinstance(error, IntegrityError)
    assert classify(error) == "constraint"


def test_a_trigger_that_refuses_is_a_constraint_when_it_says_so():
    with pytest.raises(IntegrityError) as caught, _refusing_inserts():
        insert("any")
    assert classify(caught.value) == "constraint"


@contextmanager
def _refusing_inserts():
    if connection.vendor == "sqlite":
        made = (
            "CREATE TRIGGER no BEFORE INSERT ON runstore_run BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        drop = "DROP TRIGGER no"
    else:
        made = (
            "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '23514'; END $$;"
            "CREATE TRIGGER no BEFORE INSERT ON runstore_run EXECUTE FUNCTION no()"
        )
        drop = "DROP TRIGGER no ON runstore_run; DROP FUNCTION no()"
    sql(made)()
    try:
        yield
    finally:
        sql(drop)()


def test_a_missing_table_is_unknown():
    assert classify(failure_of(sql("SELECT * FROM runstore_nowhere"))) == "unknown"


def test_what_the_database_cannot_do_is_unsupported():
    unsupported = NotSupportedError("no such feature")
    assert classify(unsupported) == "unsupported"


# --- PostgreSQL -----------------------------------------------------------------------


@pytest.mark.postgres("raises FOR UPDATE with GROUP BY as not supported")
def test_postgresqls_not_supported_is_unsupported():
    statement = "SELECT status FROM runstore_run GROUP BY status FOR UPDATE"
    assert classify(failure_of(sql(statement))) == "unsupported"


@pytest.mark.postgres("has lock timeouts")
def test_a_lock_timeout_is_busy():
    insert("run")
    with second_connection() as other, transaction.atomic():
        sql("SELECT 1 FROM runstore_run FOR UPDATE")()
        sql("SET lock_timeout = '10ms'", other)()
        error = failure_of(sql("UPDATE runstore_run SET fence = fence", other))
    assert sqlstate(error) == "55P03"
    assert classify(error) == "busy"


@pytest.mark.postgres("locks rows")
def test_a_deadlock_is_busy():
    insert("a")
    insert("b")

    met = threading.Barrier(2)

    def lock(first: str, second: str) -> None:
        with transaction.atomic():
            sql("SET LOCAL deadlock_timeout = '10ms'")()
            Run.unguarded.select_for_update().get(pk=first)
            met.wait(DEADLINE_SECONDS)
            Run.unguarded.select_for_update().get(pk=second)

    error = failure_of(lambda: race(lambda: lock("a", "b"), lambda: lock("b", "a")))
    assert sqlstate(error) == "40P01"
    assert classify(error) == "busy"


@pytest.mark.postgres("has isolation levels")
@pytest.mark.parametrize("level", ["REPEATABLE_READ", "SERIALIZABLE"])
def test_a_serialization_failure_is_busy(level):
    insert("run")
    with second_connection(isolation_level=psycopg.IsolationLevel[level]) as other:
        other.set_autocommit(False)
        sql("SELECT 1 FROM runstore_run", other)()
        sql("UPDATE runstore_run SET fence = 1")()
        error = failure_of(sql("UPDATE runstore_run SET fence = 2", other))
    assert sqlstate(error) == "40001"
    assert classify(error) == "busy"


@pytest.mark.postgres("a server that can end a connection")
def test_a_connection_that_the_server_ended_is_io():
    with second_connection() as other:
        terminate(other)
        first, second = (failure_of(sql("SELECT 1", other)) for _ in range(2))
    # The first is told why; the second finds the connection closed.
    assert sqlstate(first) in {"57P01", None}
    assert (classify(first), classify(second)) == ("io", "io")


def terminate(other) -> None:
    other.ensure_connection()
    pid = other.connection.info.backend_pid
    sql(f"SELECT pg_terminate_backend({pid}, {DEADLINE_SECONDS * 1000})")()


@pytest.mark.postgres("ends idle transactions")
@pytest.mark.parametrize(
    ("setting", "begin", "code"),
    [
        ("idle_in_transaction_session_timeout", "BEGIN", "25P03"),
        ("idle_session_timeout", "SELECT 1", "57P05"),
    ],
)
def test_a_session_that_idled_for_too_long_is_io(setting, begin, code):
    with second_connection() as other:
        sql(f"SET {setting} = '10ms'; {begin}", other)()
        pid = other.connection.info.backend_pid
        give_up_at = time.monotonic() + DEADLINE_SECONDS
        while backend_lives(pid):
            assert time.monotonic() < give_up_at
        error = failure_of(sql("SELECT 1", other))
    assert sqlstate(error) in {code, None}
    assert classify(error) == "io"


def backend_lives(pid: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [pid])
        return cursor.fetchone() != (0,)


@pytest.mark.postgres("is reached through a socket")
def test_a_server_that_is_not_there_is_io():
    with second_connection() as other:
        other.settings_dict["HOST"], other.settings_dict["PORT"] = "127.0.0.1", "1"
        assert classify(failure_of(other.ensure_connection)) == "io"


@pytest.mark.postgres("has statement timeouts")
def test_a_cancelled_statement_is_unknown():
    with transaction.atomic():
        sql("SET LOCAL statement_timeout = '10ms'")()
        error = failure_of(sql("SELECT pg_sleep(30)"))
        transaction.set_rollback(True)
    assert sqlstate(error) == "57014"
    assert classify(error) == "unknown"


@pytest.mark.postgres("knows the range of a column")
def test_a_value_out_of_range_is_unknown():
    error = failure_of(lambda: insert("run", priority=2**40))
    assert isinstance(error, DataError)
    assert classify(error) == "unknown"


@pytest.mark.postgres("refuses the rest of a failed transaction")
def test_a_statement_in_a_failed_transaction_tells_of_a_broken_block():
    with transaction.atomic():
        first = failure_of(sql("SELECT 1 / 0"))
        second = failure_of(sql("SELECT 1"))
        transaction.set_rollback(True)
    assert [tells_of_broken_block(error) for error in (first, second)] == [False, True]


def sqlstate(error: Error) -> str | None:
    return getattr(error.__cause__, "sqlstate", None)


# --- SQLite ---------------------------------------------------------------------------


@pytest.mark.sqlite("has one lock for all writers")
def test_a_write_lock_held_elsewhere_is_busy():
    with write_lock_held_elsewhere(), second_connection(timeout=0) as other:
        error = failure_of(sql("UPDATE runstore_run SET fence = 1", other))
    assert sqlite_code(error) == sqlite3.SQLITE_BUSY
    assert classify(error) == "busy"


@pytest.mark.sqlite("cannot upgrade an old snapshot")
def test_a_write_after_a_read_that_grew_old_is_busy():
    with second_connection(transaction_mode="DEFERRED") as other:
        sql("BEGIN", other)()
        sql("SELECT * FROM runstore_run", other)()
        insert("meanwhile")
        error = failure_of(sql("UPDATE runstore_run SET fence = 1", other))
    assert sqlite_code(error) == sqlite3.SQLITE_BUSY_SNAPSHOT
    assert classify(error) == "busy"


@pytest.mark.sqlite("locks tables of a connection in use")
def test_a_table_in_use_by_the_same_connection_is_busy():
    insert("one")
    insert("two")
    with second_connection() as other, other.cursor() as cursor:
        cursor.execute("SELECT run_id FROM runstore_run")
        cursor.fetchone()
        error = failure_of(sql("DROP TABLE runstore_run", other))
    assert sqlite_code(error) == sqlite3.SQLITE_LOCKED
    assert classify(error) == "busy"


@pytest.mark.sqlite("writes a file")
def test_a_full_disk_is_io():
    with second_connection() as other:
        sql("PRAGMA max_page_count = 1", other)()
        wide = "x" * 10_000_000
        error = failure_of(
            sql(f"UPDATE django_migrations SET name = '{wide}'", other)  # noqa: S608 - a constant
        )
    assert sqlite_code(error) == sqlite3.SQLITE_FULL
    assert classify(error) == "io"


@pytest.mark.sqlite("opens a file")
@pytest.mark.parametrize(
    ("name", "code"),
    [("missing folder/database", sqlite3.SQLITE_CANTOPEN), ("text", sqlite3.SQLITE_NOTADB)],
)
def test_a_file_that_cannot_be_read_as_a_database_is_io(tmp_path, name, code):
    (tmp_path / "text").write_text("no database at all" * 1_000)
    with second_connection(init_command="") as other:
        other.settings_dict["NAME"] = str(tmp_path / name)
        error = failure_of(sql("SELECT 1 FROM runstore_run", other))
    assert sqlite_code(error) == code
    assert classify(error) == "io"


@pytest.mark.sqlite("can be opened for reading only")
def test_a_write_to_a_database_open_for_reading_is_io():
    with second_connection() as other:
        sql("PRAGMA query_only = ON", other)()
        error = failure_of(sql("UPDATE runstore_run SET fence = 1", other))
    assert sqlite_code(error) == sqlite3.SQLITE_READONLY
    assert classify(error) == "io"


@pytest.mark.sqlite("can interrupt itself")
def test_an_interrupted_statement_is_unknown():
    with second_connection() as other:
        other.ensure_connection()
        other.connection.set_progress_handler(lambda: 1, 1)
        error = failure_of(sql("SELECT count(*) FROM runstore_run", other))
        other.connection.set_progress_handler(None, 0)
    assert sqlite_code(error) == sqlite3.SQLITE_INTERRUPT
    assert classify(error) == "unknown"


def sqlite_code(error: Error) -> int | None:
    return getattr(error.__cause__, "sqlite_errorcode", None)


# --- chains of causes -----------------------------------------------------------------


def chain(*errors: BaseException) -> BaseException:
    """Make each error the cause of the one before it."""
    for error, cause in itertools.pairwise(errors):
        error.__cause__ = cause
    return errors[0]


@pytest.mark.parametrize(
    "quoted",
    [
        "database is locked",
        "database is busy",
        "cannot rollback - no transaction is active",
        "could not serialize access due to concurrent update",
        "deadlock detected",
    ],
)
@pytest.mark.parametrize("kind", [RuntimeError, OperationalError, sqlite3.OperationalError])
def test_words_alone_tell_nothing(kind, quoted):
    assert classify(kind(quoted)) == "unknown"


@pytest.mark.parametrize("distance", [0, 1, 8])
def test_a_cause_is_found_at_up_to_eight_links(distance):
    links = [RuntimeError(str(number)) for number in range(distance)]
    assert classify(chain(*links, DatabaseFailure("busy"))) == "busy"


def test_a_cause_further_away_is_not_looked_for():
    links = [RuntimeError(str(number)) for number in range(9)]
    assert classify(chain(*links, DatabaseFailure("busy"))) == "unknown"


def test_a_chain_that_bites_its_tail_ends():
    one, two = RuntimeError("one"), RuntimeError("two")
    chain(one, two, one)
    assert classify(one) == "unknown"


def test_what_was_being_handled_is_no_cause():
    error = ValueError("something else")
    error.__context__ = DatabaseFailure("busy")
    assert classify(error) == "unknown"


@pytest.mark.parametrize(
    ("outer", "inner", "code"),
    [
        ("busy", "io", "io"),
        ("io", "busy", "io"),
        ("busy", "constraint", "constraint"),
        ("unknown", "busy", "busy"),
        ("unknown", "unknown", "unknown"),
    ],
)
def test_the_decisive_code_of_a_chain_wins(outer, inner, code):
    assert classify(chain(DatabaseFailure(outer), DatabaseFailure(inner))) == code


def test_an_operating_system_error_beneath_a_busy_database_is_io():
    assert classify(chain(DatabaseFailure("busy"), OSError("disk"))) == "io"


def test_a_timeout_while_connecting_is_io():
    assert classify(chain(OperationalError(), psycopg.errors.ConnectionTimeout())) == "io"


def test_a_store_error_keeps_its_class():
    error = RunPersistenceFailed("claim", "database operation failed")
    assert classify(error) == "unknown"
    error.__cause__ = DatabaseFailure("busy")
    assert classify(error) == "busy"
