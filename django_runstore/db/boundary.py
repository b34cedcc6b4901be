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
from django_runstore.models import Run

T = TypeVar("T")

MOST_ATTEMPTS: Final = 10
BASE_DELAY_MS: Final = 50
LONGEST_DELAY_MS: Final = 10_000


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
        return _attempt(using, body)
    for attempt in range(1, attempts):
        try:
            return _attempt(using, body)
        except Exception as error:
            if classify(error) != "busy":
                raise
        _pause(attempt)
    return _attempt(using, body)


def is_nested(using: str) -> bool:
    """Tell whether a write on this alias would join a transaction that is already open."""
    connection = connections[using]
    return connection.in_atomic_block or not connection.get_autocommit()


def _attempt(using: str, body: Callable[[], T]) -> T:
    with transaction.atomic(using=using):
        take_write_lock(using)
        return body()


def take_write_lock(using: str) -> None:
    """
    Take SQLite's write lock before anything is read; nothing elsewhere.

    An UPDATE that matches no row waits for the lock as long as the busy timeout allows.
    A transaction that had read first would be refused without waiting.
    """
    if has_one_writer(using):
        Run.unguarded.using(using).filter(run_id="").update(fence=0)


def _pause(attempt: int) -> None:
    """Wait before the next attempt: doubling, jittered so that contenders spread out."""
    longest = min(BASE_DELAY_MS * 2 ** (attempt - 1), LONGEST_DELAY_MS)
    time.sleep(random.uniform(longest / 2, longest) / 1000)  # noqa: S311 - jitter, not a secret
