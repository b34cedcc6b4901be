"""How a handler is told to stop, and which errors mean nothing else."""

from typing import Final

from django_runstore.errors import (
    AttemptPersistenceFailed,
    DatabaseFailure,
    RunPersistenceFailed,
    SinkFailed,
)

_PASSING: Final = frozenset({"busy", "io", "unknown"})


class RunInterrupted(BaseException):
    """
    The run has to leave the handler now; it is not a failure.

    Not an ``Exception``, so that a handler's ``except Exception`` cannot swallow it. Let it
    pass; use ``finally`` to clean up.

    Attributes:
        reason: Why, such as ``draining`` or ``cancelled``.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def interruption_of(error: BaseException) -> str | None:
    """
    Give the reason when ``error`` ends an execution without being a failure of the work.

    An interruption, also inside the group that a task group makes of it. Or a database that
    failed a save or a step: no fault of the run, which can go on later. That holds also where
    the class of the failure is unknown, such as a statement that took too long: a run that
    comes back in vain can be seen and cancelled, one that is called failed is lost.

    Returns:
        The reason, or ``None`` for a failure.
    """
    found = _interruption_in(error)
    if found is not None:
        return found.reason
    if isinstance(error, RunPersistenceFailed | AttemptPersistenceFailed | SinkFailed):
        cause = error.__cause__
        if isinstance(cause, DatabaseFailure) and cause.code in _PASSING:
            return "database_unavailable"
    return None


def _interruption_in(error: BaseException) -> RunInterrupted | None:
    if isinstance(error, RunInterrupted):
        return error
    if isinstance(error, BaseExceptionGroup):
        members = (_interruption_in(member) for member in error.exceptions)
        return next((member for member in members if member is not None), None)
    return None
