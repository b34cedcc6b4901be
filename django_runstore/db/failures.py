"""Reduce a driver's exception to one of five codes. Spec: run-store 10.3."""

import sqlite3
from collections.abc import Iterator
from typing import Final

from django.db import DatabaseError as DjangoDatabaseError
from django.db import IntegrityError, InterfaceError, NotSupportedError
from django.db.transaction import TransactionManagementError

from django_runstore.clocks import ClockUnavailable
from django_runstore.errors import DatabaseFailure, FailureCode

_MOST_CAUSES: Final = 8

# serialization_failure, deadlock_detected, lock_not_available
_BUSY_SQLSTATES: Final = frozenset({"40001", "40P01", "55P03"})
# Class 23: integrity constraint violation.
_CONSTRAINT_CLASS: Final = "23"
_IN_FAILED_TRANSACTION: Final = "25P02"
# Class 08: connection exception; class 53: insufficient resources; class 58: system error;
# 57P01 to 57P05: the server is going away, not yet there, or has ended an idle session, as
# 25P03 and 25P04 do with a transaction that idles or takes too long. 25006: it has become
# read-only, as a primary does that was demoted.
_IO_PREFIXES: Final = ("08", "53", "58", "57P", "25P03", "25P04", "25006")
_BUSY_SQLITE: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_IO_SQLITE: Final = frozenset(
    {
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_READONLY,
    }
)


def classify(error: BaseException) -> FailureCode:
    """
    Name the class of a failure, following causes for at most eight links.

    ``io`` beats ``busy``: retrying over a broken connection or disk helps nobody.
    Application errors that merely quote a database's words are ``unknown``.
    """
    codes = [code for code in map(_code_of, _with_causes(error)) if code is not None]
    decisive: FailureCode
    for decisive in ("constraint", "io", "busy", "unsupported"):
        if decisive in codes:
            return decisive
    return "unknown"


def tells_of_broken_block(error: BaseException) -> bool:
    """Tell whether the transaction had failed before, so that nothing was even tried."""
    return isinstance(error, TransactionManagementError) or any(
        getattr(cause, "sqlstate", None) == _IN_FAILED_TRANSACTION for cause in _with_causes(error)
    )


def describe(error: BaseException) -> dict[str, str | None]:
    """Name an error's class and SQLSTATE for a log: what no row can get into."""
    states = (getattr(cause, "sqlstate", None) for cause in _with_causes(error))
    return {
        "error": type(error).__name__,
        "sqlstate": next((state for state in states if isinstance(state, str)), None),
    }


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen and len(seen) <= _MOST_CAUSES:
        yield current
        seen.add(id(current))
        current = current.__cause__


def _code_of(error: BaseException) -> FailureCode | None:
    if isinstance(error, DatabaseFailure):
        return error.code
    if isinstance(error, ClockUnavailable):
        # Too slow to tell the time; the next attempt may find it less loaded.
        return "busy"
    sqlstate = getattr(error, "sqlstate", None)
    if isinstance(sqlstate, str):
        return _code_of_sqlstate(sqlstate)
    sqlite_code = getattr(error, "sqlite_errorcode", None)
    if isinstance(sqlite_code, int):
        return _code_of_sqlite(sqlite_code)
    if isinstance(error, IntegrityError):
        return "constraint"
    if isinstance(error, NotSupportedError):
        return "unsupported"
    if isinstance(error, (InterfaceError, OSError)) or _is_lost_connection(error):
        return "io"
    return None


def _code_of_sqlstate(sqlstate: str) -> FailureCode | None:
    if sqlstate in _BUSY_SQLSTATES:
        return "busy"
    if sqlstate.startswith(_CONSTRAINT_CLASS):
        return "constraint"
    return "io" if sqlstate.startswith(_IO_PREFIXES) else None


def _code_of_sqlite(code: int) -> FailureCode | None:
    primary = code & 0xFF  # the extended codes keep the primary one in their low byte
    if primary in _BUSY_SQLITE:
        return "busy"
    if primary == sqlite3.SQLITE_CONSTRAINT:
        return "constraint"
    return "io" if primary in _IO_SQLITE else None


def _is_lost_connection(error: BaseException) -> bool:
    # psycopg reports a dropped, refused or timed out connection as an OperationalError, or a
    # kind of it, without an SQLSTATE; Django wraps it and keeps it as the cause, so only the
    # driver's own counts.
    return (
        any(kind.__name__ == "OperationalError" for kind in type(error).__mro__)
        and not isinstance(error, DjangoDatabaseError)
        and getattr(error, "sqlstate", "") is None
    )
