"""How PostgreSQL lays out the run table. Called by the migration that creates it."""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor

# Room on each page, so that a beat updates the row in place and touches no index, and
# wide text moved out of the row, so that a beat copies little.
_TUNE: Final = "ALTER TABLE runstore_run SET (fillfactor = 70, toast_tuple_target = 128)"


def tune_run_table(apps: Any, schema_editor: "BaseDatabaseSchemaEditor") -> None:  # noqa: ANN401, ARG001 - the signature of RunPython
    """Set the storage parameters where the database has them."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(_TUNE)
