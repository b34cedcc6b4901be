"""A migration that touches the run table ends with the installation of its triggers."""

import pytest
from django.db import models
from django.db.migrations import AddConstraint, AddField, CreateModel, Migration, RunPython
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation

from django_runstore.db.operations import InstallTriggers, RemoveTriggers

MIGRATIONS = {
    name: migration
    for (app, name), migration in MigrationLoader(None).disk_migrations.items()
    if app == "runstore"
}


def touches_runs(operation: Operation) -> bool:
    """Tell whether an operation may make the run table, or make it anew."""
    if isinstance(operation, CreateModel):
        return operation.name_lower == "run"
    return getattr(operation, "model_name_lower", None) == "run"


def is_whole(migration: Migration) -> bool:
    """Tell whether the triggers are there, and for these columns, when it has been applied."""
    touched = any(touches_runs(operation) for operation in migration.operations)
    return not touched or isinstance(migration.operations[-1], InstallTriggers)


def can_be_undone(migration: Migration) -> bool:
    """Tell whether they are there when it has been undone, as the first one's need not be."""
    touching = [each for each in migration.operations if touches_runs(each)]
    makes_the_table = any(isinstance(each, CreateModel) for each in touching)
    return not touching or makes_the_table or isinstance(migration.operations[0], RemoveTriggers)


@pytest.mark.parametrize("name", sorted(MIGRATIONS))
def test_the_triggers_are_installed_last_and_of_later_ones_removed_first(name):
    assert is_whole(MIGRATIONS[name])
    assert can_be_undone(MIGRATIONS[name])


def test_the_migration_that_makes_the_table_is_among_them():
    assert any(touches_runs(each) for each in MIGRATIONS["0001_initial"].operations)


@pytest.mark.parametrize(
    ("operations", "whole", "undone"),
    [
        (
            [AddField("run", "x", models.IntegerField()), RunPython(RunPython.noop)],
            False,
            False,
        ),
        ([AddField("run", "x", models.IntegerField()), InstallTriggers()], True, False),
        (
            [
                RemoveTriggers(),
                AddConstraint("Run", models.CheckConstraint(condition=models.Q(), name="x")),
                InstallTriggers(),
            ],
            True,
            True,
        ),
        ([AddField("attempt", "x", models.IntegerField())], True, True),
    ],
    ids=["neither", "last only", "both", "another table"],
)
def test_a_migration_that_forgets_them_is_found(operations, whole, undone):
    migration = Migration("0002_later", "runstore")
    migration.operations = operations
    assert (is_whole(migration), can_be_undone(migration)) == (whole, undone)
