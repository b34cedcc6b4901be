"""What Django does to tables, in tests and in migrations, leaves changes counted."""

import re
import unittest

import pytest
from django.core.management import call_command
from django.db import DatabaseError, IntegrityError, connection, models
from django.db.migrations import AddConstraint, AddField, RemoveConstraint, RemoveField
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.test import TransactionTestCase

from django_runstore import RunStore
from django_runstore.db.operations import InstallTriggers, RemoveTriggers
from django_runstore.db.triggers import wrong_triggers
from django_runstore.models import Run, RunTombstone, StoreIdentity
from tests.db.trigger_states import execute, install_again, names_of_triggers

pytestmark = pytest.mark.django_db(transaction=True)

TABLE_IS_MADE_ANEW = connection.vendor == "sqlite"
# Django 5.2 drops what depends on a column together with it.
DROPS_DEPENDENTS = "CASCADE" in connection.SchemaEditorClass.sql_delete_column


def test_flush_keeps_the_identity_and_leaves_tombstones():
    store = RunStore()
    identity = store.identity()
    store.create("flushed", "{}")
    before = store.revision()
    call_command("flush", interactive=False, verbosity=0)
    assert store.identity() == identity
    assert RunTombstone.objects.get(pk="flushed").revision > before
    store.create("flushed", "{}")
    assert store.revision() > before + 1
    assert not RunTombstone.objects.filter(pk="flushed").exists()


def test_flush_does_not_count_anew():
    store = RunStore()
    store.create("flushed", "{}")
    before = store.revision()
    call_command("flush", interactive=False, reset_sequences=True, verbosity=0)
    assert store.revision() >= before


def test_a_transaction_test_case_can_change_runs_after_another_one():
    seen = []

    class Case(TransactionTestCase):
        def test_one(self) -> None:
            RunStore().create("of-a-test-case", "{}")
            seen.append(RunStore().identity())

        test_two = test_one

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert (result.testsRun, result.errors, result.failures) == (2, [], [])
    assert seen == [StoreIdentity.objects.get().identity] * 2


# Migrations ------------------------------------------------------------------------------

LATER_CONSTRAINT = AddConstraint(
    "run",
    models.CheckConstraint(
        name="runstore_run_of_a_later_release", condition=models.Q(priority__gte=-1_000)
    ),
)
LATER_FIELD = AddField("run", "later", models.IntegerField(null=True))
BRACKETED = [RemoveTriggers(), LATER_CONSTRAINT, LATER_FIELD, InstallTriggers()]


class Applied:
    """Operations of a later migration, applied to the test database and undone at the end."""

    def __init__(self, *operations: Operation) -> None:
        self.operations = operations
        self.states = [MigrationLoader(connection).project_state()]
        for operation in operations:
            state = self.states[-1].clone()
            operation.state_forwards("runstore", state)
            self.states.append(state)

    def __enter__(self) -> ProjectState:
        with connection.schema_editor() as editor:
            for number, operation in enumerate(self.operations):
                states = self.states[number], self.states[number + 1]
                operation.database_forwards("runstore", editor, *states)
        return self.states[-1]

    def __exit__(self, *_: object) -> None:
        with connection.schema_editor() as editor:
            for number, operation in reversed(list(enumerate(self.operations))):
                states = self.states[number + 1], self.states[number]
                operation.database_backwards("runstore", editor, *states)


@pytest.fixture
def mended():
    """Whatever a test has made of the triggers, leave those of this release."""
    yield
    install_again()


def later_run(state: ProjectState) -> type[models.Model]:
    return state.apps.get_model("runstore", "Run")


def test_a_constraint_added_later_drops_the_triggers_where_the_table_is_made_anew(mended):
    with Applied(LATER_CONSTRAINT) as state:
        gone = list(names_of_triggers()) if TABLE_IS_MADE_ANEW else []
        assert wrong_triggers(connection, later_run(state)) == gone


@pytest.mark.parametrize("column", ["code_version", "deadline_at_ms"])
def test_a_column_can_be_removed_between_removal_and_installation(mended, column):
    dropped = [
        RemoveConstraint("run", each.name)
        for each in Run._meta.constraints
        if column in str(getattr(each, "condition", ""))
    ]
    operations = [RemoveTriggers(), *dropped, RemoveField("run", column), InstallTriggers()]
    with Applied(*operations) as state:
        assert wrong_triggers(connection, later_run(state)) == []
    assert wrong_triggers(connection, Run) == []


@pytest.mark.postgres("it keeps account of what depends on what")
def test_a_column_that_a_trigger_names_cannot_be_dropped_unseen(mended):
    removal = Applied(RemoveField("run", "code_version"))
    if DROPS_DEPENDENTS:
        with removal as state:
            assert wrong_triggers(connection, later_run(state)) == ["runstore_run_stamp"]
    else:
        with pytest.raises(DatabaseError, match="cannot drop column"), removal:
            pass


def test_operations_between_removal_and_installation_keep_what_was_counted_and_count_on(mended):
    store = RunStore()
    store.create("run", "{}")
    before = store.revision()
    with Applied(*BRACKETED) as state:
        assert wrong_triggers(connection, later_run(state)) == []
        assert store.revision() == before
        assert Run.objects.values_list("revision", flat=True).get(pk="run") == before
        execute("UPDATE runstore_run SET queue = 'slow'")
        execute("UPDATE runstore_run SET later = 1")
        assert store.revision() == before + 2
    assert wrong_triggers(connection, Run) == []
    assert store.revision() == before + 2
    store.request_cancel("run")
    assert store.revision() == before + 3


def test_one_installation_at_the_end_is_enough_to_go_forward(mended):
    with Applied(LATER_CONSTRAINT, LATER_FIELD, InstallTriggers()) as state:
        assert wrong_triggers(connection, later_run(state)) == []


def test_the_constraint_of_a_later_release_is_held_as_well(mended):
    before = RunStore().revision()
    with Applied(*BRACKETED):
        with pytest.raises(IntegrityError):
            execute(
                "INSERT INTO runstore_run (run_id, status, created_at_ms, state_json, priority) "
                "VALUES ('low', 'pending', 0, '1', -1001)"
            )
        if connection.vendor == "sqlite":
            assert RunStore().revision() == before
        assert not Run.objects.filter(pk="low").exists()


def test_the_first_migration_can_be_undone_and_leaves_nothing_behind():
    first = RunStore().identity()
    call_command("migrate", "runstore", "zero", verbosity=0)
    try:
        assert left_behind() == []
    finally:
        call_command("migrate", verbosity=0)
    assert wrong_triggers(connection, Run) == []
    second = RunStore().identity()
    assert len({first, second}) == 2
    assert re.fullmatch("[0-9a-f]{32}", second)
    assert RunStore().revision() == 0


def left_behind() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name FROM sqlite_master WHERE name LIKE 'runstore%'"
            if connection.vendor == "sqlite"
            else "SELECT relname FROM pg_class WHERE relname LIKE 'runstore%' "
            "UNION ALL SELECT proname FROM pg_proc WHERE proname LIKE 'runstore%'"
        )
        return [name for (name,) in cursor.fetchall()]
