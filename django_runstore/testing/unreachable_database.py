"""A database that cannot be reached, as its driver would tell it."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, NoReturn

from django.db import connections

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.db.backends.base.base import BaseDatabaseWrapper

_WORDS: Final = "the database cannot be reached: a test cut the connection"


@contextmanager
def unreachable(aliases: Iterable[str]) -> Iterator[None]:
    """
    Inside the block, fail what this thread asks of these databases; afterwards all is well.

    Statements, savepoints, commits and new connections fail as those of a lost connection
    do. A transaction that was open before is open afterwards, and as whole as it was: not one
    statement has reached it. A server would have ended it.
    """
    with ExitStack() as cuts:
        for alias in aliases:
            cuts.enter_context(_cut(connections[alias]))
        yield


@contextmanager
def _cut(connection: BaseDatabaseWrapper) -> Iterator[None]:
    def refuse(*_: object, **__: object) -> NoReturn:
        with connection.wrap_database_errors:
            raise _driver_error(connection)

    in_block, was_broken = connection.in_atomic_block, connection.needs_rollback
    with ExitStack() as replaced:
        replaced.enter_context(connection.execute_wrapper(refuse))
        replaced.enter_context(_replaced(connection, "get_new_connection", refuse))
        replaced.enter_context(_replaced(connection, "commit", refuse))
        replaced.enter_context(_replaced(connection, "is_usable", lambda: False))
        try:
            yield
        finally:
            if in_block and not connection.closed_in_transaction:
                # A failed write of the ORM marks the block as broken, and this one is not.
                connection.needs_rollback = was_broken


@contextmanager
def _replaced(connection: BaseDatabaseWrapper, name: str, value: Any) -> Iterator[None]:  # noqa: ANN401 - a method of the driver's
    """Put something in the place of a method of one connection, which may have been replaced."""
    own = vars(connection)
    before = own.get(name)
    own[name] = value
    try:
        yield
    finally:
        if before is None:
            del own[name]
        else:
            own[name] = before


def _driver_error(connection: BaseDatabaseWrapper) -> Exception:
    # Drivers of servers raise it without an SQLSTATE when there is nobody to give one.
    driver: Any = connection.Database  # type: ignore[attr-defined]  # each backend has one
    error: Exception = driver.OperationalError(_WORDS)
    if isinstance(error, sqlite3.Error):
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        error.sqlite_errorname = "SQLITE_IOERR"
    return error
