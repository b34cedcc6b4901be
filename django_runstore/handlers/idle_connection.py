"""The connection of a handler that does something else for a while."""

from typing import Final

from django_runstore.clocks import boottime_ms
from django_runstore.db.boundary import drop_ended_connection

# Nothing ends a connection that has idled for less.
LONG_MS: Final = 5_000


class IdleConnection:
    """
    Lets go of a connection that was ended while nobody used it.

    Without, the first write after long work would fail, the run would be put back, and the
    next execution would work as long and fail as this one.
    """

    def __init__(self, using: str) -> None:
        self._using = using
        self._used_ms = boottime_ms()

    def before_use(self) -> None:
        """See to it that the database can be asked; one statement after long work, else none."""
        now_ms = boottime_ms()
        if now_ms - self._used_ms >= LONG_MS:
            drop_ended_connection(self._using)
        self._used_ms = now_ms
