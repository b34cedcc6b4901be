"""The migration operation that puts the triggers of the run table in their place."""

from typing import TYPE_CHECKING, ClassVar

from django.db import router
from django.db.migrations.operations.base import Operation, OperationCategory

from django_runstore.db.triggers import install_triggers

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor
    from django.db.migrations.state import ProjectState

_APP_LABEL = "runstore"
_MODEL = "run"


class InstallTriggers(Operation):
    """
    Install the triggers that count changes of runs, for the columns the table has here.

    The last operation of every migration that touches the run table: SQLite makes the table
    anew for most changes, and PostgreSQL drops a trigger with a column that it names, both
    without a word. A migration that can be undone begins with one as well, since undoing goes
    from the last operation to the first. Doing it twice changes nothing.

    For this app's migrations, and for a project's own that reach into the table.
    """

    reduces_to_sql = True
    reversible = True
    elidable = False
    category: ClassVar = OperationCategory.SQL

    def state_forwards(self, app_label: str, state: "ProjectState") -> None:
        """Change no model."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: "BaseDatabaseSchemaEditor",
        from_state: "ProjectState",
        to_state: "ProjectState",
    ) -> None:
        """Replace the triggers."""
        connection = schema_editor.connection
        if not router.allow_migrate(connection.alias, _APP_LABEL, model_name=_MODEL):
            return
        run = to_state.apps.get_model(_APP_LABEL, _MODEL)
        for statement in install_triggers(connection, run):
            schema_editor.execute(statement, None)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: "BaseDatabaseSchemaEditor",
        from_state: "ProjectState",
        to_state: "ProjectState",
    ) -> None:
        """Replace the triggers: the operations undone before this one may have dropped them."""
        self.database_forwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        """Say what it does."""
        return "Install the triggers that count changes of runs"
