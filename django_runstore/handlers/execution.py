"""Call a handler and turn whatever happens into an outcome that can be stored."""

import traceback
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from django_runstore.durable import encode_json
from django_runstore.errors import DatabaseFailure, RunPersistenceFailed
from django_runstore.handlers.context import RunContext
from django_runstore.handlers.errors import InvalidValue
from django_runstore.handlers.interruption import RunInterrupted
from django_runstore.handlers.registry import Handler
from django_runstore.handlers.values import encode_value

LONGEST_MESSAGE: Final = 2_000
MOST_FRAMES: Final = 30
LONGEST_FRAME: Final = 300


@dataclass(frozen=True, slots=True)
class Completed:
    """The handler returned."""

    result_json: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler raised, or returned what cannot be stored."""

    error_json: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The handler left because it was told to."""

    reason: str


Outcome: TypeAlias = Completed | Failed | Interrupted


def execute(handler: Handler, context: RunContext) -> Outcome:
    """
    Run the handler to its end.

    Returns:
        ``Completed``, ``Failed`` or ``Interrupted``; the latter also when a save failed
        because the database was away, since the run can go on from its last save. Only what
        no handler should catch, such as ``KeyboardInterrupt``, is let through.
    """
    try:
        result = handler.function(context)
    except RunInterrupted as interruption:
        return Interrupted(interruption.reason)
    except RunPersistenceFailed as error:
        if _passes(error):
            return Interrupted("database_unavailable")
        return Failed(describe_error(error))
    except SystemExit as error:
        # A handler that calls sys.exit() ends itself, not its worker.
        return Failed(describe_error(error))
    except Exception as error:  # noqa: BLE001 - whatever a handler raises is its outcome
        return Failed(describe_error(error))
    try:
        return Completed(encode_value("result", "result", result))
    except InvalidValue as error:
        return Failed(describe_error(error))


def _passes(error: RunPersistenceFailed) -> bool:
    """Tell whether the database was merely away: no fault of the run, which can go on later."""
    return isinstance(error.__cause__, DatabaseFailure) and error.__cause__.code in {"busy", "io"}


def describe_error(error: BaseException) -> str:
    """
    Spell an exception as bounded JSON that every database can store.

    The message is the exception's own. Frames name files, lines and functions; values of
    variables are left out.
    """
    frames = traceback.extract_tb(error.__traceback__)[-MOST_FRAMES:]
    return encode_json(
        {
            "type": _storable(type(error).__qualname__, LONGEST_FRAME),
            "message": _storable(_message_of(error), LONGEST_MESSAGE),
            "traceback": [
                _storable(f"{frame.filename}:{frame.lineno} {frame.name}", LONGEST_FRAME)
                for frame in frames
            ],
        }
    )


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an exception whose own text cannot be had
        return "(the error has no readable message)"


def _storable(text: str, longest: int) -> str:
    """Cut, and escape what no database or terminal should get: NUL and lone surrogates."""
    cut = text if len(text) <= longest else f"{text[:longest]}... ({len(text)} characters)"
    return cut.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")
