"""Call a handler and turn whatever happens into an outcome that can be stored."""

from dataclasses import dataclass, field
from typing import TypeAlias

from django_runstore.handlers.context import RunContext
from django_runstore.handlers.described_errors import describe_error
from django_runstore.handlers.errors import InvalidValue
from django_runstore.handlers.interruption import interruption_of
from django_runstore.handlers.registry import Handler
from django_runstore.handlers.retrying import NonRetryableError
from django_runstore.handlers.upgrading import UpgradeFailedError, upgrade_state
from django_runstore.handlers.values import encode_value


@dataclass(frozen=True, slots=True)
class Completed:
    """The handler returned."""

    result_json: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Failed:
    """
    The handler raised, or returned what cannot be stored.

    Attributes:
        is_final: Whether it would end the same way each time, so that nothing is retried.
        is_unreadable: Whether the handler was not even entered, since the state of an older
            release could not be upgraded: what is at fault is the code, not the run.
    """

    error_json: str = field(repr=False)
    is_final: bool = False
    is_unreadable: bool = False


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The handler left because it was told to."""

    reason: str


Outcome: TypeAlias = Completed | Failed | Interrupted


def execute(handler: Handler, context: RunContext) -> Outcome:
    """
    Run the handler to its end.

    Returns:
        ``Completed``: with what the handler returned.
        ``Failed``: the handler raised, whatever it was (``sys.exit()`` ends the run and not
            its worker), or returned what cannot be stored; or its ``upgrade`` did, in which
            case it was not entered.
        ``Interrupted``: it left because it was told to, or because a save failed while the
            database was away; the run can go on from its last save.

    Raises:
        KeyboardInterrupt: a person wants this process to end, not this run.
    """
    try:
        upgrade_state(handler, context)
        result = handler.function(context)
    except KeyboardInterrupt:
        raise
    except UpgradeFailedError as error:
        return Failed(describe_error(error.__cause__ or error), is_unreadable=True)
    except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its outcome
        return _outcome_of(error)
    try:
        return Completed(encode_value("result", "result", result))
    except InvalidValue as error:
        return Failed(describe_error(error), is_final=True)


def _outcome_of(error: BaseException) -> Failed | Interrupted:
    reason = interruption_of(error)
    if reason is not None:
        return Interrupted(reason)
    return Failed(describe_error(error), is_final=isinstance(error, NonRetryableError))
