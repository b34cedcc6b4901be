"""
The write boundary: every write of this package happens inside ``write()``.

Spec: run-store 10.3 and 10.4. The outermost write is a transaction of its own and is
replayed when the database was busy. Inside a caller's transaction it is a savepoint, is
never replayed, and commits or rolls back with the caller.
"""

import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

from django.db import connections, transaction

from django_runstore.db.backends import has_one_writer
from django_runstore.db.failures import classify
from django_runstore.metrics import count
from django_runstore.metrics.contract import DB_WRITE_RETRIES

T = TypeVar("T")

MOST_ATTEMPTS: Final = 10
BASE_DELAY_MS: Final = 50
LONGEST_DELAY_MS: Final = 10_000

_TOUCH_NO_ROW: Final = "UPDATE runstore_run SET fence = 0 WHERE run_id = ''"


def write(using: str, body: Callable[[], T], *, attempts: int = MOST_ATTEMPTS) -> T:
    """
    Run ``body`` in one serialized write and return what it returned.

    ``body`` may run several times: it must keep nothing from an attempt that failed.
    Callbacks that it registers with ``transaction.on_commit`` run once, after the
    outermost commit, and not at all for an attempt that was rolled back.

    Args:
        attempts: How often the outermost write is tried while the database is busy.

    Raises:
        Exception: whatever ``body`` or the database raised last.
    """
    if is_nested(using):
        return _join(using, body)
    for attempt in range(1, attempts):
        commits: list[None] = []
        try:
            return _attempt(using, body, commits)
        except Exception as error:
            # A callback that fails after the commit is no reason to write a second time.
            if commits or classify(error) != "busy":
                raise
        count(DB_WRITE_RETRIES)
        _pause(attempt)
    return _attempt(using, body, [])


def is_nested(using: str) -> bool:
    """Tell whether a write on this alias would join a transaction that is already open."""
    connection = connections[using]
    if connection.in_atomic_block:
        return True
    if connection.connection is None:
        # Django's own question would connect, and fail, where the database is away.
        return not connection.settings_dict["AUTOCOMMIT"]
    return not connection.get_autocommit()


def drop_ended_connection(using: str) -> None:
    """
    After long work elsewhere, let go of a connection that was ended meanwhile.

    Servers, firewalls and poolers end connections that idle. What is written next would fail,
    and what took an hour would have to be done again, and fail again.
    """
    connection = connections[using]
    if connection.connection is None or is_nested(using):
        return
    if not connection.is_usable():
        connection.close()


def drop_lost_connection(using: str) -> None:
    """
    After an ``io`` failure, let go of the connection, dead or not.

    Django does so between requests only. A process without requests would otherwise go on
    with a dead connection, or with one to a server that was demoted to a standby, which
    answers and refuses every write.
    """
    connection = connections[using]
    # Whoever opened a transaction, or turned autocommit off, finds out at its end.
    if connection.autocommit and not connection.in_atomic_block:
        connection.close()


def _attempt(using: str, body: Callable[[], T], commits: list[None]) -> T:
    with transaction.atomic(using=using):
        transaction.on_commit(lambda: commits.append(None), using=using)
        take_write_lock(using)
        return body()


def _join(using: str, body: Callable[[], T]) -> T:
    # Before the savepoint: without autocommit SQLite begins a transaction with the first
    # write, and a savepoint opened before it would be that transaction and commit it.
    take_write_lock(using)
    with transaction.atomic(using=using):
        return body()


def take_write_lock(using: str) -> None:
    """
    Take SQLite's write lock before anything is read; nothing elsewhere.

    An UPDATE that matches no row waits for the lock as long as the busy timeout allows.
    A transaction that had read first would be refused without waiting.
    """
    if has_one_writer(using):
        # By cursor: an update of the ORM that fails would break the caller's block with it.
        with connections[using].cursor() as cursor:
            cursor.execute(_TOUCH_NO_ROW)


def _pause(attempt: int) -> None:
    """Wait before the next attempt: doubling, jittered so that contenders spread out."""
    longest = min(BASE_DELAY_MS * 2 ** (attempt - 1), LONGEST_DELAY_MS)
    time.sleep(random.uniform(longest / 2, longest) / 1000)  # noqa: S311 - jitter, not a secret
