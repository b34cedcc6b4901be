"""The run table without its triggers, and what else the tests of revisions do by SQL."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from django_runstore.db import triggers
from django_runstore.db.triggers import install_triggers, remove_triggers
from django_runstore.models import Run


def execute(statement: str, parameters: list[object] | None = None) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)


def names_of_triggers() -> tuple[str, ...]:
    on_sqlite = connection.vendor == "sqlite"
    return tuple(triggers._SQLITE if on_sqlite else triggers._POSTGRESQL)


def install_again() -> None:
    for statement in install_triggers(connection, Run):
        execute(statement)


@contextmanager
def triggers_off() -> Iterator[None]:
    """Have nothing counted for a while, as in a table that was made anew."""
    for statement in remove_triggers(connection):
        execute(statement)
    try:
        yield
    finally:
        install_again()


@contextmanager
def identity_gone() -> Iterator[None]:
    """Take the row with the database's identity away for a while."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM runstore_store_identity")
        row = cursor.fetchone()
    execute("DELETE FROM runstore_store_identity")
    try:
        yield
    finally:
        places = ", ".join(["%s"] * len(row))
        execute(f"INSERT INTO runstore_store_identity VALUES ({places})", list(row))  # noqa: S608 - a test's own words


@contextmanager
def last_revision_at(revision: int) -> Iterator[None]:
    """Have the database count on from ``revision``, and afterwards from where it was."""
    before = _count_from(revision)
    try:
        yield
    finally:
        _count_from(before)


def _count_from(revision: int) -> int:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT revision FROM runstore_store_identity")
            (before,) = cursor.fetchone()
            cursor.execute("UPDATE runstore_store_identity SET revision = %s", [revision])
        else:
            cursor.execute("SELECT last_value FROM runstore_revision")
            (before,) = cursor.fetchone()
            cursor.execute("SELECT setval('runstore_revision', %s)", [revision])
    return int(before)


@contextmanager
def table_hidden(table: str) -> Iterator[None]:
    """Have a table missing for a while, for whoever asks for it."""
    execute(f"ALTER TABLE {table} RENAME TO hidden")
    try:
        yield
    finally:
        execute(f"ALTER TABLE hidden RENAME TO {table}")
        # SQLite has written the other name, and then this one in quotes, into the triggers.
        install_again()
