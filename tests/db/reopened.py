"""The database under test, opened in another way than the settings say."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper


@contextmanager
def reopened(**options: Any) -> Iterator[None]:
    """Have this thread, and those started meanwhile, connect with other OPTIONS."""
    known = connection.settings_dict["OPTIONS"]
    before = dict(known)
    connection.close()
    known.update(options)
    try:
        yield
    finally:
        connection.close()
        known.clear()
        known.update(before)


@contextmanager
def second_connection(**options: Any) -> Iterator[BaseDatabaseWrapper]:
    """Open another connection to the same database, in the same thread."""
    second = connection.copy()
    second.settings_dict["OPTIONS"] |= options
    try:
        yield second
    finally:
        second.close()


@contextmanager
def write_lock_held_elsewhere() -> Iterator[None]:
    """Hold SQLite's write lock on another connection."""
    with second_connection() as other, other.cursor() as cursor:
        cursor.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")
