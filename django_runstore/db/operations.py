"""The migration operations that bracket whatever is done to the run table."""

from typing import TYPE_CHECKING, ClassVar

from django.db import router
from django.db.migrations.operations.base import Operation, OperationCategory

from django_runstore.db.triggers import install_triggers, remove_triggers

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor
    from django.db.migrations.state import ProjectState

_APP_LABEL = "runstore"
_MODEL = "run"


class _TriggerOperation(Operation):
    reduces_to_sql = True
    reversible = True
    category: ClassVar = OperationCategory.SQL

    def state_forwards(self, app_label: str, state: "ProjectState") -> None:
        """Change no model."""

    def _install(self, schema_editor: "BaseDatabaseSchemaEditor", state: "ProjectState") -> None:
        run = state.apps.get_model(_APP_LABEL, _MODEL)
        _execute(schema_editor, install_triggers(schema_editor.connection, run))

    def _remove(self, schema_editor: "BaseDatabaseSchemaEditor") -> None:
        _execute(schema_editor, remove_triggers(schema_editor.connection))


class InstallTriggers(_TriggerOperation):
    """
    Install the triggers that count changes of runs, for the columns the table has here.

    The last operation of every migration that touches the run table: SQLite makes the table
    anew for most changes and drops its triggers without a word. Doing it twice changes
    nothing. For this app's migrations, and for a project's own that reach into the table.
    """

    def database_forwards(
        self,
        app_label: str,
        schema_editor: "BaseDatabaseSchemaEditor",
        from_state: "ProjectState",
        to_state: "ProjectState",
    ) -> None:
        """Replace the triggers."""
        if _holds_runs(schema_editor):
            self._install(schema_editor, to_state)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: "BaseDatabaseSchemaEditor",
        from_state: "ProjectState",
        to_state: "ProjectState",
    ) -> None:
        """Remove the triggers, so that what they name can be undone."""
        if _holds_runs(schema_editor):
            self._remove(schema_editor)

    def describe(self) -> str:
        """Say what it does."""
        return "Install the triggers that count changes of runs"


class RemoveTriggers(_TriggerOperation):
    """
    Remove the triggers, before columns that they name are changed or dropped.

    The first operation of a later migration that touches the run table: PostgreSQL refuses to
    drop a column that a trigger names, and undoing goes from the last operation to the first,
    so that this one then puts the triggers of before in their place.
    """

    def database_forwards(
        self,
        app_label: str,
        schema_editor: "BaseDatabaseSchemaEditor",
        from_state: "ProjectState",
        to_state: "ProjectState",
    ) -> None:
        """Remove the triggers."""
        if _holds_runs(schema_editor):
            self._remove(schema_editor)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: "BaseDatabaseSchemaEditor",
        from_state: "ProjectState",
        to_state: "ProjectState",
    ) -> None:
        """Put the triggers of before in their place."""
        if _holds_runs(schema_editor):
            self._install(schema_editor, to_state)

    def describe(self) -> str:
        """Say what it does."""
        return "Remove the triggers that count changes of runs"


def _holds_runs(schema_editor: "BaseDatabaseSchemaEditor") -> bool:
    alias = schema_editor.connection.alias
    return bool(router.allow_migrate(alias, _APP_LABEL, model_name=_MODEL))


def _execute(schema_editor: "BaseDatabaseSchemaEditor", statements: list[str]) -> None:
    for statement in statements:
        # Without parameters, or a percent sign in a body would be taken for one.
        schema_editor.execute(statement, None)
