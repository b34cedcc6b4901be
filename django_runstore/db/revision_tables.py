"""
The tables that the revisions of runs rest on: identity, counter, tombstones.

Made by SQL and not by Django, which would empty them with every ``flush``.
Spec: run-store 2.3, with departure D5.
"""

import secrets
from typing import TYPE_CHECKING, Any, Final

from django_runstore.db.backends import has_one_writer
from django_runstore.durable import MAX_SAFE_INTEGER

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor

# A sequence takes no lock, so that writers of different runs never wait for each other; the
# price are gaps. It belongs to no column: RESTART IDENTITY must not set it back.
_ON_POSTGRESQL: Final = (
    """
    CREATE TABLE runstore_store_identity (
        id smallint PRIMARY KEY CHECK (id = 1),
        identity text COLLATE "C" NOT NULL CHECK (identity ~ '^[0-9a-f]{32}$')
    )
    """,
    "CREATE SEQUENCE runstore_revision",
    f"""
    CREATE TABLE runstore_run_tombstone (
        run_id text COLLATE "C" PRIMARY KEY CHECK (run_id <> ''),
        revision bigint NOT NULL UNIQUE CHECK (revision BETWEEN 1 AND {MAX_SAFE_INTEGER}),
        revision_xid bigint NOT NULL
    )
    """,
    """
    CREATE INDEX runstore_run_tombstone_changes
        ON runstore_run_tombstone (revision_xid, revision)
    """,
)
_ON_SQLITE: Final = (
    f"""
    CREATE TABLE runstore_store_identity (
        id integer NOT NULL PRIMARY KEY CHECK (id = 1),
        identity text NOT NULL
            CHECK (length(identity) = 32 AND identity NOT GLOB '*[^0-9a-f]*'),
        revision integer NOT NULL DEFAULT 0
            CHECK (typeof(revision) = 'integer' AND revision BETWEEN 0 AND {MAX_SAFE_INTEGER})
    )
    """,
    f"""
    CREATE TABLE runstore_run_tombstone (
        run_id text NOT NULL PRIMARY KEY CHECK (run_id <> ''),
        revision integer NOT NULL UNIQUE CHECK (revision BETWEEN 1 AND {MAX_SAFE_INTEGER}),
        revision_xid integer NOT NULL DEFAULT 0
    ) WITHOUT ROWID
    """,
)
_DROP: Final = ("DROP TABLE runstore_run_tombstone", "DROP TABLE runstore_store_identity")


def create_revision_tables(apps: Any, schema_editor: "BaseDatabaseSchemaEditor") -> None:  # noqa: ANN401, ARG001 - the signature of RunPython
    """Make the tables and give the database its identity."""
    counts = has_one_writer(schema_editor.connection.alias)
    for statement in _ON_SQLITE if counts else _ON_POSTGRESQL:
        schema_editor.execute(statement, None)
    schema_editor.execute(
        "INSERT INTO runstore_store_identity (id, identity) VALUES (1, %s)", [new_identity()]
    )


def drop_revision_tables(apps: Any, schema_editor: "BaseDatabaseSchemaEditor") -> None:  # noqa: ANN401, ARG001 - the signature of RunPython
    """Undo ``create_revision_tables``."""
    for statement in _DROP:
        schema_editor.execute(statement, None)
    if not has_one_writer(schema_editor.connection.alias):
        schema_editor.execute("DROP SEQUENCE runstore_revision", None)


def new_identity() -> str:
    """Make the identity of a database: 128 random bits, as 32 lower-case hexadecimal digits."""
    return secrets.token_hex(16)
