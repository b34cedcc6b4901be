"""Put events and what they are about into one transaction. Spec: run-store 8.4."""

from collections.abc import Callable
from typing import TypeVar

from django.db import connections, transaction

from django_runstore.db.boundary import is_nested, write
from django_runstore.metrics import tallies
from django_runstore.services import door
from django_runstore.services.journal.core import JournalCore
from django_runstore.services.twin import twin

T = TypeVar("T")


class Transacting(JournalCore):
    """``transaction.atomic`` in the words of the specification."""

    @door.operation(tallies.uncounted)
    def transact(self, body: Callable[[], T]) -> T:
        """
        Call ``body`` in a transaction, or in a savepoint of the one that is open.

        What it writes, events included, is committed together or not at all, and no reader is
        handed anything before the outermost commit. ``transaction.atomic`` does the same;
        this one also takes SQLite's write lock first, so that ``body`` may read and then write.

        Raises:
            Exception: whatever ``body`` raised, or Django for the transaction itself.
        """
        return write(self.using, body, attempts=1)

    def when_committed(self, update: Callable[[], object]) -> bool:
        """
        Call ``update`` after the outermost commit, or now when no transaction is open.

        Not called at all when the transaction, or the savepoint around this call, rolls back.

        Returns:
            False in a transaction that Django knows nothing of, autocommit being off: nobody
            will learn of its commit, so ``update`` is not called.
        """
        if not connections[self.using].in_atomic_block and is_nested(self.using):
            return False
        transaction.on_commit(update, using=self.using)
        return True

    atransact = twin(transact)
