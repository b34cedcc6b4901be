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

    installs: ClassVar[bool]
    """Whether the triggers are there afterwards; undone, it is the other way round."""

    def state_forwards(self, app_label: str, state: "ProjectState") -> None:
        """Change no model."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: "BaseDatabaseSchemaEditor",
        from_state: "ProjectState",
        to_state: "ProjectState",
    ) -> None:
        """Do it, for the columns that the table has by then."""
        self._set(schema_editor, to_state, there=self.installs)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: "BaseDatabaseSchemaEditor",
        from_state: "ProjectState",
        to_state: "ProjectState",
    ) -> None:
        """Undo it, so that what the triggers name can be undone as well."""
        self._set(schema_editor, to_state, there=not self.installs)

    @staticmethod
    def _set(
        schema_editor: "BaseDatabaseSchemaEditor", state: "ProjectState", *, there: bool
    ) -> None:
        connection = schema_editor.connection
        if not router.allow_migrate(connection.alias, _APP_LABEL, model_name=_MODEL):
            return
        statements = (
            install_triggers(connection, state.apps.get_model(_APP_LABEL, _MODEL))
            if there
            else remove_triggers(connection)
        )
        for statement in statements:
            # Without parameters, or a percent sign in a body would be taken for one.
            schema_editor.execute(statement, None)


class InstallTriggers(_TriggerOperation):
    """
    Install the triggers that count changes of runs, for the columns the table has here.

    The last operation of every migration that touches the run table: SQLite makes the table
    anew for most changes and drops its triggers without a word. Doing it twice changes
    nothing. For this app's migrations, and for a project's own that reach into the table.
    """

    installs = True

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

    installs = False

    def describe(self) -> str:
        """Say what it does."""
        return "Remove the triggers that count changes of runs"
