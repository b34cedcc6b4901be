"""``on_commit()`` of handlers in a ``TestCase``, whose transaction never commits."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from django.db import connections

from django_runstore.services.twin import joins_a_block

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.db.backends.base.base import BaseDatabaseWrapper

logger = logging.getLogger(__name__)


class CommitHooks:
    """
    What has been registered with ``on_commit()`` since this was made.

    What was there before is the test's: Django leaves a callback in its list although
    ``captureOnCommitCallbacks(execute=True)`` has run it.
    """

    def __init__(self) -> None:
        self._earlier = {alias: len(connections[alias].run_on_commit) for alias in connections}

    def run(self) -> None:
        """
        Run what would be committed by now, as nothing is open but the transaction of a test.

        Each callback runs once, on whichever database it was registered, and so do those that
        others register.

        Raises:
            Exception: whatever a callback raised that is not ``robust``; the rest is not run.
        """
        for connection, earlier in self._waiting():
            while len(connection.run_on_commit) > earlier:
                registered: tuple[Any, ...] = connection.run_on_commit.pop(earlier)
                _, hook, is_robust = registered
                _call(hook, is_robust=is_robust)

    def drop(self) -> None:
        """Forget what waits for a commit that does not come."""
        for connection, earlier in self._waiting():
            del connection.run_on_commit[earlier:]

    def _waiting(self) -> Iterator[tuple[BaseDatabaseWrapper, int]]:
        for alias, earlier in self._earlier.items():
            connection = connections[alias]
            if connection.in_atomic_block and not joins_a_block(alias):
                yield connection, earlier


def _call(hook: Callable[[], object], *, is_robust: bool) -> None:
    try:
        hook()
    except Exception as error:
        if not is_robust:
            raise
        # The class alone: the message may hold what the rows hold.
        logger.error("an on_commit callback failed: %s", type(error).__name__)  # noqa: TRY400
