"""
The triggers that count every change of a run, whoever makes it, raw SQL included.

Spec: run-store 2.1 and 12, with departure D5. On SQLite a counter in the identity's row
rises by exactly one per changed row. On PostgreSQL a sequence numbers the changes, and the
row also names the transaction that wrote it: numbers are handed out before the commit, so
only the oldest transaction still running tells up to where everything is known.

Beats and progress are no changes, nor is handing out a journal sequence: the triggers name
their columns, so such an update runs none and stays in its page. No condition reads a
column, and so no wide text.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django_runstore.db.backends import has_one_writer
from django_runstore.durable import MAX_SAFE_INTEGER

if TYPE_CHECKING:
    from django.db import models
    from django.db.backends.base.base import BaseDatabaseWrapper

UNCOUNTED_COLUMNS: Final = frozenset(
    {"heartbeat_at_ms", "progressed_at_ms", "progress_json", "journal_seq", "ownership_seq"}
)
"""Columns of a run that may change without a new revision, as long as only they do."""

_STAMP: Final = frozenset({"revision", "revision_xid"})

_WORDS: Final = {
    "missing": "execution source identity is missing",
    "overflow": "no revision is left",
    "rename": "run identity is immutable",
    "largest": MAX_SAFE_INTEGER,
}


@dataclass(frozen=True, slots=True)
class Trigger:
    """
    One trigger as it is installed.

    Attributes:
        definition: What the database tells of it: on SQLite the statement that made it, on
            PostgreSQL events, columns and the body of its function.
        statements: What makes it, in order.
    """

    name: str
    definition: str
    statements: tuple[str, ...]


def install_triggers(connection: "BaseDatabaseWrapper", run: "type[models.Model]") -> list[str]:
    """
    Give the statements that put the triggers of ``run`` in place of those that are there.

    Args:
        run: The model, or its historical twin in a migration: its fields are the columns
            whose changes count.
    """
    wanted = expected_triggers(connection, run)
    return [
        *remove_triggers(connection),
        *(statement for trigger in wanted for statement in trigger.statements),
    ]


def remove_triggers(connection: "BaseDatabaseWrapper") -> list[str]:
    """Give the statements that remove every trigger this module makes."""
    if has_one_writer(connection.alias):
        return [f"DROP TRIGGER IF EXISTS {name}" for name in _SQLITE]
    schema = _schema(connection)
    table = f"{schema}.runstore_run"
    return [
        statement
        for name in _POSTGRESQL
        for statement in (
            f"DROP TRIGGER IF EXISTS {name} ON {table}",
            f"DROP FUNCTION IF EXISTS {schema}.{name}()",
        )
    ]


def wrong_triggers(connection: "BaseDatabaseWrapper", run: "type[models.Model]") -> list[str]:
    """Name the triggers that are missing, disabled or not as this release makes them."""
    installed = _installed(connection)
    return [
        trigger.name
        for trigger in expected_triggers(connection, run)
        if installed.get(trigger.name) != trigger.definition
    ]


def expected_triggers(
    connection: "BaseDatabaseWrapper", run: "type[models.Model]"
) -> tuple[Trigger, ...]:
    """Describe the triggers that this release wants on the table of ``run``."""
    # Sorted: a model and its historical twin may list their fields in different orders.
    columns = {str(field.column) for field in run._meta.concrete_fields if not field.generated}
    counted = sorted(columns - UNCOUNTED_COLUMNS - _STAMP)
    if has_one_writer(connection.alias):
        return tuple(_on_sqlite(counted))
    # A revision written by hand is a change too, and gets the number it should have.
    return tuple(_on_postgresql([*counted, *sorted(_STAMP)], _schema(connection)))


def _installed(connection: "BaseDatabaseWrapper") -> Mapping[str, str]:
    with connection.cursor() as cursor:
        cursor.execute(_READ_SQLITE if has_one_writer(connection.alias) else _READ_POSTGRESQL)
        return dict(cursor.fetchall())


# SQLite

_READ_SQLITE: Final = (
    "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'runstore_run'"
)

_SQLITE_COUNT: Final = """
    SELECT CASE
        WHEN latest IS NULL THEN RAISE(ABORT, '{missing}')
        WHEN latest >= {largest} THEN RAISE(ABORT, '{overflow}')
    END FROM (SELECT (SELECT revision FROM runstore_store_identity WHERE id = 1) AS latest);
    UPDATE runstore_store_identity SET revision = revision + 1 WHERE id = 1;"""
_SQLITE_STAMP: Final = """
    UPDATE runstore_run
       SET revision = (SELECT revision FROM runstore_store_identity WHERE id = 1), revision_xid = 0
     WHERE rowid = NEW.rowid;"""
_SQLITE_UNBURY: Final = """
    DELETE FROM runstore_run_tombstone WHERE run_id = NEW.run_id;"""
_SQLITE_BURY: Final = """
    INSERT OR REPLACE INTO runstore_run_tombstone (run_id, revision)
        SELECT OLD.run_id, revision FROM runstore_store_identity WHERE id = 1;"""
_SQLITE_REFUSE: Final = """
    SELECT RAISE(ABORT, '{rename}');"""

# Event and body by name.
_SQLITE: Final = {
    "runstore_run_rename": (
        "BEFORE UPDATE OF run_id ON runstore_run WHEN NEW.run_id IS NOT OLD.run_id",
        _SQLITE_REFUSE,
    ),
    "runstore_run_insert": (
        "AFTER INSERT ON runstore_run",
        _SQLITE_COUNT + _SQLITE_STAMP + _SQLITE_UNBURY,
    ),
    "runstore_run_update": (
        "AFTER UPDATE OF {columns} ON runstore_run",
        _SQLITE_COUNT + _SQLITE_STAMP,
    ),
    "runstore_run_delete": ("AFTER DELETE ON runstore_run", _SQLITE_COUNT + _SQLITE_BURY),
}


def _on_sqlite(counted: list[str]) -> Iterator[Trigger]:
    columns = ", ".join(f'"{column}"' for column in counted)
    for name, (event, body) in _SQLITE.items():
        when = event.format(columns=columns)
        statement = f"CREATE TRIGGER {name} {when} BEGIN{body.format(**_WORDS)}\nEND"
        yield Trigger(name, statement, (statement,))


# PostgreSQL

# tgtype holds one bit for each of these. Disabled triggers are told as missing.
_READ_POSTGRESQL: Final = """
SELECT t.tgname,
       concat_ws(' ',
           CASE WHEN t.tgtype & 2 > 0 THEN 'BEFORE' ELSE 'AFTER' END,
           CASE WHEN t.tgtype & 4 > 0 THEN 'INSERT' END,
           CASE WHEN t.tgtype & 8 > 0 THEN 'DELETE' END,
           CASE WHEN t.tgtype & 16 > 0 THEN 'UPDATE' END,
           CASE WHEN t.tgtype & 32 > 0 THEN 'TRUNCATE' END,
           CASE WHEN t.tgtype & 1 > 0 THEN 'ROW' ELSE 'STATEMENT' END)
       || ' (' || coalesce((SELECT string_agg(a.attname, ' ' ORDER BY a.attname COLLATE "C")
                              FROM pg_attribute a
                             WHERE a.attrelid = t.tgrelid AND a.attnum = ANY (t.tgattr)), '')
       || ')' || p.prosrc
  FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
 WHERE t.tgrelid = to_regclass('runstore_run') AND NOT t.tgisinternal
   AND t.tgenabled IN ('O', 'A') AND t.tgqual IS NULL
"""

# One query asks for the number and for the identity, without which there is none.
_NEXT: Final = """
    SELECT nextval('{schema_text}.runstore_revision'), pg_current_xact_id()::text::bigint
      INTO {revision}, {xid}
      FROM {schema}.runstore_store_identity WHERE id = 1;
    IF NOT FOUND THEN
        RAISE EXCEPTION '{missing}' USING ERRCODE = '23514';
    END IF;
    IF {revision} > {largest} THEN
        RAISE EXCEPTION '{overflow}' USING ERRCODE = '23514';
    END IF;"""
_REPLACE: Final = """
    ON CONFLICT (run_id) DO UPDATE
        SET revision = EXCLUDED.revision, revision_xid = EXCLUDED.revision_xid;"""

_STAMP_BODY: Final = """
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.run_id IS DISTINCT FROM OLD.run_id THEN
        RAISE EXCEPTION '{rename}' USING ERRCODE = '23514';
    END IF;{stamp_row}
    RETURN NEW;
END
"""
# The journal of the deleted run is still there, and the new one goes on counting behind it.
#
# After the insert and not before: a delete of the same id that this insert had to wait for has
# left its tombstone meanwhile, and may have drawn the higher number. Then the row draws again.
_UNBURY_BODY: Final = """
DECLARE
    buried bigint;
BEGIN
    DELETE FROM {schema}.runstore_run_tombstone WHERE run_id = NEW.run_id
        RETURNING revision INTO buried;
    IF buried > NEW.revision THEN
        UPDATE {schema}.runstore_run SET revision = 0 WHERE run_id = NEW.run_id;
    END IF;
    IF buried IS NOT NULL THEN
        UPDATE {schema}.runstore_run
           SET journal_seq = GREATEST(journal_seq,
                   (SELECT MAX(seq) + 1 FROM {schema}.runstore_journal_entry
                     WHERE run_id = NEW.run_id AND companion = '')),
               ownership_seq = GREATEST(ownership_seq,
                   (SELECT MAX(seq) + 1 FROM {schema}.runstore_journal_entry
                     WHERE run_id = NEW.run_id AND companion = 'run-store'))
         WHERE run_id = NEW.run_id;
    END IF;
    RETURN NULL;
END
"""
_BURY_BODY: Final = """
DECLARE
    next_revision bigint;
    xid bigint;
BEGIN{stamp_tombstone}
    INSERT INTO {schema}.runstore_run_tombstone (run_id, revision, revision_xid)
        VALUES (OLD.run_id, next_revision, xid){replace}
    RETURN NULL;
END
"""
_BURY_ALL_BODY: Final = """
DECLARE
    next_revision bigint;
    xid bigint;
BEGIN{stamp_tombstone}
    INSERT INTO {schema}.runstore_run_tombstone (run_id, revision, revision_xid)
        SELECT run_id, nextval('{schema_text}.runstore_revision'), xid
          FROM {schema}.runstore_run{replace}
    RETURN NULL;
END
"""

# Event, the event as the catalog tells it, and body of the function, by name.
_POSTGRESQL: Final = {
    "runstore_run_stamp": (
        "BEFORE INSERT OR UPDATE OF {columns} ON {table} FOR EACH ROW",
        "BEFORE INSERT UPDATE ROW",
        _STAMP_BODY,
    ),
    "runstore_run_unbury": (
        "AFTER INSERT ON {table} FOR EACH ROW",
        "AFTER INSERT ROW",
        _UNBURY_BODY,
    ),
    "runstore_run_bury": ("AFTER DELETE ON {table} FOR EACH ROW", "AFTER DELETE ROW", _BURY_BODY),
    "runstore_run_bury_all": (
        "BEFORE TRUNCATE ON {table} FOR EACH STATEMENT",
        "BEFORE TRUNCATE STATEMENT",
        _BURY_ALL_BODY,
    ),
}
_CREATE_FUNCTION: Final = """
CREATE FUNCTION {schema}.{name}() RETURNS trigger LANGUAGE plpgsql AS $runstore${body}$runstore$
"""


def _on_postgresql(counted: list[str], schema: str) -> Iterator[Trigger]:
    # Names are written with their schema: a restore, or a tool, may run with an empty search
    # path, and its changes count as well.
    places = {**_WORDS, "schema": schema, "schema_text": schema.replace("'", "''")}
    parts = {
        "stamp_row": _NEXT.format(revision="NEW.revision", xid="NEW.revision_xid", **places),
        "stamp_tombstone": _NEXT.format(revision="next_revision", xid="xid", **places),
        "replace": _REPLACE,
    }
    table = f"{schema}.runstore_run"
    for name, (event, told, template) in _POSTGRESQL.items():
        body = template.format(**places, **parts)
        columns = counted if "{columns}" in event else []
        when = event.format(table=table, columns=", ".join(f'"{name}"' for name in columns))
        yield Trigger(
            name,
            f"{told} ({' '.join(sorted(columns))}){body}",
            (
                _CREATE_FUNCTION.format(schema=schema, name=name, body=body),
                f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION {schema}.{name}()",
            ),
        )


def _schema(connection: "BaseDatabaseWrapper") -> str:
    """Give the schema of the run table, quoted; before there is one, where it will be made."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT quote_ident(coalesce((SELECT n.nspname FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.oid = to_regclass('runstore_run')), current_schema()))"
        )
        (schema,) = cursor.fetchone()
    return str(schema)
