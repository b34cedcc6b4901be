"""Bound how long maintenance takes, and how long it waits for locks that somebody else holds."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import connections, transaction

from django_runstore.db.backends import has_one_writer

STATEMENT_PER_LOCK_WAIT: Final = 10
"""How many times as long as for a lock a statement of a sweep may take altogether."""


def limit_statements(using: str, lock_wait_ms: int) -> None:
    """
    Let no statement of this transaction wait or work for long: the next sweep tries again.

    A row costs a few buffers to find, so what takes seconds hangs, or found no index. Past
    the limit the database ends the statement, which is an error like any other.

    Args:
        using: Database alias.
        lock_wait_ms: For a lock; ``STATEMENT_PER_LOCK_WAIT`` times that for a statement.
    """
    if has_one_writer(using):
        return
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT set_config('lock_timeout', %s, true),"
            " set_config('statement_timeout', %s, true)",
            [f"{lock_wait_ms}ms", f"{STATEMENT_PER_LOCK_WAIT * lock_wait_ms}ms"],
        )


def limit_lock_wait(using: str, timeout_ms: int) -> None:
    """
    Let no statement of this transaction wait longer than ``timeout_ms`` for a lock.

    The setting ends with the transaction, so a pooler in transaction mode keeps nothing of
    it. SQLite has a busy timeout per connection instead.
    """
    if has_one_writer(using):
        return
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{timeout_ms}ms"])


@contextmanager
def bounded_lock_wait(using: str, timeout_ms: int) -> Iterator[None]:
    """Let no statement of the block, a transaction, wait longer than this for a lock."""
    if has_one_writer(using):
        # Nothing to set, and a transaction that only reads at first could not wait later.
        yield
        return
    with transaction.atomic(using=using):
        limit_lock_wait(using, timeout_ms)
        yield
