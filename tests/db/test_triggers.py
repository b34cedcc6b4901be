"""Every change of a run row is counted, by whomever and in whatever column it is made."""

from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import connection

from django_runstore import RunStore
from django_runstore.db.operations import InstallTriggers, RemoveTriggers
from django_runstore.db.triggers import (
    UNCOUNTED_COLUMNS,
    expected_triggers,
    install_triggers,
    remove_triggers,
    wrong_triggers,
)
from django_runstore.models import Run
from django_runstore.testing import FakeClock
from tests.db.trigger_states import execute, names_of_triggers

STAMP = {"revision", "revision_xid"}
COLUMNS = [field.column for field in Run._meta.concrete_fields if not field.generated]
COUNTED = sorted(set(COLUMNS) - UNCOUNTED_COLUMNS - STAMP)


@pytest.fixture
def store(db: None) -> RunStore:
    store = RunStore(clock=FakeClock(0))
    store.create("run", "{}")
    return store


def stamp_of(run_id: str) -> int:
    revision: int = Run.objects.values_list("revision", flat=True).get(pk=run_id)
    return revision


def test_the_migration_leaves_the_triggers_of_this_release(db):
    assert wrong_triggers(connection, Run) == []


def test_beats_progress_and_the_journals_counters_are_what_is_not_counted():
    assert set(UNCOUNTED_COLUMNS) == {
        "heartbeat_at_ms",
        "progress_json",
        "progressed_at_ms",
        "journal_seq",
        "ownership_seq",
    }
    assert set(COLUMNS) >= UNCOUNTED_COLUMNS


@pytest.mark.parametrize("column", COUNTED)
def test_sql_that_names_a_column_is_a_change(store: RunStore, column):
    before = store.revision()
    execute(f"UPDATE runstore_run SET {column} = {column} WHERE run_id = 'run'")  # noqa: S608 - a test's own words
    assert store.revision() == stamp_of("run") == before + 1


@pytest.mark.parametrize("column", sorted(UNCOUNTED_COLUMNS))
def test_sql_that_names_an_uncounted_column_alone_is_no_change(store: RunStore, column):
    before = store.revision()
    execute(f"UPDATE runstore_run SET {column} = {column} WHERE run_id = 'run'")  # noqa: S608 - a test's own words
    assert (store.revision(), stamp_of("run")) == (before, before)


def test_an_uncounted_column_beside_another_is_part_of_the_change(store: RunStore):
    before = store.revision()
    execute("UPDATE runstore_run SET heartbeat_at_ms = NULL, queue = 'slow'")
    assert store.revision() == before + 1


def test_a_statement_counts_each_row_it_changes(store: RunStore):
    before = store.revision()
    execute(
        "INSERT INTO runstore_run (run_id, status, created_at_ms, state_json) VALUES "
        "('a', 'pending', 0, '1'), ('b', 'pending', 0, '1'), ('c', 'pending', 0, '1')"
    )
    execute("UPDATE runstore_run SET priority = 1 WHERE run_id IN ('a', 'b', 'nobody')")
    execute("DELETE FROM runstore_run WHERE run_id IN ('a', 'c')")
    assert store.revision() == before + 3 + 2 + 2
    # Each change has a number of its own.
    stamps = {stamp_of("b"), *tombstones().values()}
    assert stamps == {stamp_of("b"), before + 6, before + 7}
    assert before + 3 < stamp_of("b") <= before + 5


def tombstones() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT run_id, revision FROM runstore_run_tombstone WHERE run_id IN ('a', 'c')"
        )
        return dict(cursor.fetchall())


@pytest.mark.postgres("there a trigger can set what is written")
@pytest.mark.parametrize("column", sorted(STAMP))
def test_a_stamp_written_by_hand_is_replaced(store: RunStore, column):
    before = store.revision()
    execute(f"UPDATE runstore_run SET {column} = 3 WHERE run_id = 'run'")  # noqa: S608 - a test's own words
    assert stamp_of("run") == before + 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT revision_xid = pg_current_xact_id()::text::bigint FROM runstore_run")
        assert cursor.fetchone() == (True,)


@pytest.mark.parametrize("stamp", ["7, 9", "9007199254740991, 5"])
def test_a_stamp_brought_along_by_an_insert_is_replaced(store: RunStore, stamp):
    before = store.revision()
    execute(
        "INSERT INTO runstore_run "  # noqa: S608 - a test's own words
        "(run_id, status, created_at_ms, state_json, revision, revision_xid) "
        f"VALUES ('brought', 'pending', 0, '1', {stamp})"
    )
    assert stamp_of("brought") == before + 1


@pytest.mark.sqlite("there recursion is a setting of the connection")
def test_triggers_that_recurse_count_no_more(store: RunStore):
    before = store.revision()
    execute("PRAGMA recursive_triggers = ON")
    try:
        execute("UPDATE runstore_run SET queue = 'slow'")
        assert store.revision() == stamp_of("run") == before + 1
    finally:
        execute("PRAGMA recursive_triggers = OFF")


@pytest.mark.sqlite("only there is one row of a conflict deleted unseen")
def test_an_insert_that_replaces_its_row_is_one_change(store: RunStore):
    before = store.revision()
    execute(
        "INSERT OR REPLACE INTO runstore_run (run_id, status, created_at_ms, state_json) "
        "VALUES ('run', 'pending', 0, '2')"
    )
    assert store.revision() == stamp_of("run") == before + 1


def test_no_trigger_reads_a_wide_text(db):
    wide = {"state_json", "progress_json", "result_json", "error_json", "waiting_request"}
    for trigger in expected_triggers(connection, Run):
        body = trigger.statements[0].partition("BEGIN")[2]
        assert not [name for name in wide if name in body]
        assert " WHEN " not in trigger.statements[-1] or "run_id" in trigger.statements[-1]


# What can happen to triggers, and that it is noticed ---------------------------------------


@pytest.mark.parametrize("name", names_of_triggers())
def test_a_trigger_that_is_gone_is_named(db, name):
    on_table = "" if connection.vendor == "sqlite" else " ON runstore_run"
    execute(f"DROP TRIGGER {name}{on_table}")
    assert wrong_triggers(connection, Run) == [name]


@pytest.mark.postgres("only there can a trigger be disabled")
@pytest.mark.parametrize("name", names_of_triggers())
@pytest.mark.parametrize("how", ["DISABLE", "ENABLE REPLICA"])
def test_a_trigger_that_does_not_fire_is_named(db, name, how):
    execute(f"ALTER TABLE runstore_run {how} TRIGGER {name}")
    assert wrong_triggers(connection, Run) == [name]


@pytest.mark.postgres("there the body is a function of its own")
@pytest.mark.parametrize("name", names_of_triggers())
def test_a_trigger_with_another_body_is_named(db, name):
    execute(
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RETURN NEW; END $$"
    )
    assert wrong_triggers(connection, Run) == [name]


@pytest.mark.parametrize(
    "event",
    [
        "BEFORE INSERT OR UPDATE OF status ON {table} FOR EACH ROW",
        "BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW",
        "BEFORE UPDATE OF {columns} ON {table} FOR EACH ROW",
        "BEFORE INSERT OR UPDATE OF {columns} ON {table} FOR EACH ROW WHEN (NEW.fence > 0)",
    ],
    ids=["fewer columns", "all columns", "fewer events", "a condition"],
)
@pytest.mark.postgres("there the events stand in the catalog")
def test_a_trigger_of_other_events_is_named(db, event):
    execute("DROP TRIGGER runstore_run_stamp ON runstore_run")
    columns = ", ".join([*COUNTED, *STAMP])
    execute(
        f"CREATE TRIGGER runstore_run_stamp {event.format(table='runstore_run', columns=columns)} "
        "EXECUTE FUNCTION runstore_run_stamp()"
    )
    assert wrong_triggers(connection, Run) == ["runstore_run_stamp"]


@pytest.mark.sqlite("there the statement is kept as it was written")
def test_a_trigger_of_fewer_columns_is_named(db):
    (update,) = [t for t in expected_triggers(connection, Run) if t.name == "runstore_run_update"]
    execute("DROP TRIGGER runstore_run_update")
    execute(update.statements[0].replace('"status", ', ""))
    assert wrong_triggers(connection, Run) == ["runstore_run_update"]


def test_installing_again_mends_everything_and_changes_no_row(store: RunStore):
    before = store.revision()
    for statement in remove_triggers(connection):
        execute(statement)
    assert wrong_triggers(connection, Run) == list(names_of_triggers())
    for _ in range(2):
        for statement in install_triggers(connection, Run):
            execute(statement)
        assert wrong_triggers(connection, Run) == []
    assert (store.revision(), stamp_of("run")) == (before, before)


@pytest.mark.parametrize("operation", [InstallTriggers(), RemoveTriggers()], ids=repr)
def test_the_operations_follow_the_router(db, settings, operation):
    class Nowhere:
        def allow_migrate(self, db: str, app_label: str, **_: object) -> bool | None:
            return False if app_label == "runstore" else None

    settings.DATABASE_ROUTERS = [Nowhere()]
    executed: list[str] = []
    editor = SimpleNamespace(connection=connection, execute=executed.append)
    state = SimpleNamespace(apps=apps)
    operation.database_forwards("other", editor, state, state)
    operation.database_backwards("other", editor, state, state)
    assert executed == []


@pytest.mark.postgres("it has schemas")
def test_changes_count_with_an_empty_search_path(store: RunStore):
    before = store.revision()
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_schema(), set_config('search_path', '', true)")
        schema, _ = cursor.fetchone()
        cursor.execute(
            f"INSERT INTO {schema}.runstore_run (run_id, status, created_at_ms, state_json) "  # noqa: S608 - a test's own words
            "VALUES ('elsewhere', 'pending', 0, '1')"
        )
        cursor.execute(f"UPDATE {schema}.runstore_run SET priority = 2")  # noqa: S608 - a test's own words
        cursor.execute(f"DELETE FROM {schema}.runstore_run WHERE run_id = 'elsewhere'")  # noqa: S608 - a test's own words
        cursor.execute("SELECT set_config('search_path', %s, true)", [schema])
    assert store.revision() == before + 1 + 2 + 1
