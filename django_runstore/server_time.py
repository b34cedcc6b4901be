"""
Reading a database server's own time without touching the caller's transaction.

A failing query inside a transaction makes PostgreSQL refuse the rest of it, and a query
as its first statement fixes the snapshot at REPEATABLE READ. So inside a transaction the
time is asked for on a second connection that is closed right away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db import connections

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.backends.base.base import BaseDatabaseWrapper

# now() stands still within a transaction; clock_timestamp() does not.
_SERVER_TIME_SQL: Final = {
    "postgresql": "SELECT extract(epoch FROM clock_timestamp()) * 1000",
}


@dataclass(frozen=True, slots=True)
class ServerReading:
    """What the server said, between two readings of the clock that carries it on."""

    before_ms: float
    server_ms: float
    after_ms: float

    @property
    def round_trip_ms(self) -> float:
        """How long the question took; the reading may be off by half of it."""
        return self.after_ms - self.before_ms

    @property
    def midpoint_ms(self) -> float:
        """When, on the carrying clock, the server most likely read its own."""
        return (self.before_ms + self.after_ms) / 2


def has_server_time(using: str) -> bool:
    """Tell whether a server with a clock of its own stands behind the alias."""
    return connections[using].vendor in _SERVER_TIME_SQL


def read_server_time(using: str, read_carrier_ms: Callable[[], float]) -> ServerReading:
    """
    Ask the server of an alias for its time, in milliseconds since the Unix epoch.

    Raises:
        django.db.Error: the server cannot be reached or refuses.
    """
    connection = connections[using]
    if connection.connection is None:
        # This thread has not used the database; leave no open connection behind in it.
        return _read_and_close(connection, read_carrier_ms)
    if not connection.get_autocommit():  # in atomic() too, whatever state its transaction is in
        return _read_and_close(connection.copy(), read_carrier_ms)
    return _read(connection, read_carrier_ms)


def _read_and_close(
    connection: BaseDatabaseWrapper, read_carrier_ms: Callable[[], float]
) -> ServerReading:
    try:
        return _read(connection, read_carrier_ms)
    finally:
        connection.close()


def _read(connection: BaseDatabaseWrapper, read_carrier_ms: Callable[[], float]) -> ServerReading:
    with connection.cursor() as cursor:
        # From here on: connecting takes several round trips and says nothing about the time.
        before_ms = read_carrier_ms()
        cursor.execute(_SERVER_TIME_SQL[connection.vendor])
        (milliseconds,) = cursor.fetchone()
        after_ms = read_carrier_ms()
    return ServerReading(before_ms, float(milliseconds), after_ms)
