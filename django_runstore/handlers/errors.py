"""What can go wrong around handlers before or after a run exists."""

from django_runstore.errors import StoreError


class HandlerError(StoreError):
    """Base of the errors of handlers and run handles."""

    service = "Handler"
    code = "handler_error"


class InvalidHandler(HandlerError):  # noqa: N818 - in line with InvalidRun
    """A handler was declared wrongly: its name, its function, or a name used twice."""

    code = "invalid_handler"


class InvalidValue(HandlerError):  # noqa: N818 - in line with InvalidRun
    """A state, result or progress value cannot be stored; nothing was written."""

    code = "invalid_value"


class RunIdTaken(HandlerError):  # noqa: N818 - in line with RunNotFound
    """The run id belongs to a run of another handler."""

    code = "run_id_taken"


class RunUnfinished(HandlerError):  # noqa: N818 - in line with RunNotFound
    """There is no result yet, or none came within the time given."""

    code = "run_unfinished"


class RunUnsuccessful(HandlerError):  # noqa: N818 - in line with RunNotFound
    """The run is settled without a result: ``RunFailed`` or ``RunCancelled``."""

    code = "run_unsuccessful"


class RunFailed(RunUnsuccessful):
    """The handler raised, or its result could not be stored; ``RunHandle.error`` says why."""

    code = "run_failed"


class RunCancelled(RunUnsuccessful):
    """The run was stopped on request."""

    code = "run_cancelled"
