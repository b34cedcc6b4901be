"""Rows written past the store, as another program with the database's password would."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from django_runstore.models import Run


def update_raw(run_id: str, **columns: object) -> None:
    """Set columns of a row by SQL."""
    assignments = ", ".join(f"{name} = %s" for name in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE runstore_run SET {assignments} WHERE run_id = %s",  # noqa: S608 - column names of a test
            [*columns.values(), run_id],
        )
        assert cursor.rowcount == 1


@contextmanager
def checks_off() -> Iterator[None]:
    """Let SQL write rows that no CHECK would admit, until the test's transaction ends."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA ignore_check_constraints = ON")
        else:
            for constraint in Run._meta.constraints:
                if constraint.name != "runstore_run_lineage_round":
                    cursor.execute(f"ALTER TABLE runstore_run DROP CONSTRAINT {constraint.name}")
    try:
        yield
    finally:
        if connection.vendor == "sqlite":
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA ignore_check_constraints = OFF")


@contextmanager
def silent_updates_of(run_id: str) -> Iterator[None]:
    """Have a trigger drop every update of one run without a word."""
    with _trigger_before_update(run_id, "RETURN NULL;", "SELECT RAISE(IGNORE);"):
        yield


@contextmanager
def failing_updates_of(run_id: str) -> Iterator[None]:
    """Have a trigger refuse every update of one run, as a CHECK would."""
    with _trigger_before_update(
        run_id,
        "RAISE EXCEPTION 'refused' USING ERRCODE = '23514';",
        "SELECT RAISE(ABORT, 'refused');",
    ):
        yield


@contextmanager
def _trigger_before_update(run_id: str, on_postgresql: str, on_sqlite: str) -> Iterator[None]:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(
                "CREATE TRIGGER meddle BEFORE UPDATE ON runstore_run "
                f"WHEN OLD.run_id = '{run_id}' BEGIN {on_sqlite} END"
            )
            drop = "DROP TRIGGER meddle"
        else:
            cursor.execute(
                "CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN {on_postgresql} END $$"
            )
            cursor.execute(
                "CREATE TRIGGER meddle BEFORE UPDATE ON runstore_run FOR EACH ROW "
                f"WHEN (OLD.run_id = '{run_id}') EXECUTE FUNCTION meddle()"
            )
            drop = "DROP TRIGGER meddle ON runstore_run; DROP FUNCTION meddle()"
        yield
        # Queued foreign key checks would keep the table from being altered.
        if connection.vendor != "sqlite":
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(drop)
