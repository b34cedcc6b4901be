"""Call a handler and turn whatever happens into an outcome that can be stored."""

import traceback
from collections import deque
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from django_runstore.durable import encode_json
from django_runstore.errors import DatabaseFailure, RunPersistenceFailed, SinkFailed, StoreError
from django_runstore.handlers.context import RunContext
from django_runstore.handlers.errors import InvalidValue
from django_runstore.handlers.interruption import RunInterrupted
from django_runstore.handlers.registry import Handler
from django_runstore.handlers.values import encode_value

LONGEST_MESSAGE: Final = 2_000
MOST_FRAMES: Final = 30
LONGEST_FRAME: Final = 300
LARGEST_ERROR_BYTES: Final = 16_384


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
        ``Completed``: with what the handler returned.
        ``Failed``: the handler raised, whatever it was (``sys.exit()`` ends the run and not
            its worker), or returned what cannot be stored.
        ``Interrupted``: it left because it was told to, or because a save failed while the
            database was away; the run can go on from its last save.

    Raises:
        KeyboardInterrupt: a person wants this process to end, not this run.
    """
    try:
        result = handler.function(context)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its outcome
        return _outcome_of(error)
    try:
        return Completed(encode_value("result", "result", result))
    except InvalidValue as error:
        return Failed(describe_error(error))


def _outcome_of(error: BaseException) -> Failed | Interrupted:
    interruption = _interruption_in(error)
    if interruption is not None:
        return Interrupted(interruption.reason)
    if isinstance(error, RunPersistenceFailed | SinkFailed) and _passes(error):
        return Interrupted("database_unavailable")
    return Failed(describe_error(error))


def _interruption_in(error: BaseException) -> RunInterrupted | None:
    """Find the interruption, also in the group that a task group makes of it."""
    if isinstance(error, RunInterrupted):
        return error
    if isinstance(error, BaseExceptionGroup):
        found = (_interruption_in(member) for member in error.exceptions)
        return next((member for member in found if member is not None), None)
    return None


def _passes(error: StoreError) -> bool:
    """
    Tell whether the database failed a write: no fault of the run, which can go on later.

    Also where its class is unknown, such as a statement that took too long: a run that comes
    back in vain can be seen and cancelled, one that is called failed is lost.
    """
    passing = {"busy", "io", "unknown"}
    return isinstance(error.__cause__, DatabaseFailure) and error.__cause__.code in passing


def describe_error(error: BaseException) -> str:
    """
    Spell an exception as JSON that every database can store, in at most ``LARGEST_ERROR_BYTES``.

    The message is the exception's own, so a handler that quotes a secret stores it. Frames
    name files, lines and functions, the innermost last; lines of source and values of
    variables are left out.
    """
    frames = [
        _storable(f"{frame.f_code.co_filename}:{line} {frame.f_code.co_qualname}", LONGEST_FRAME)
        for frame, line in deque(traceback.walk_tb(error.__traceback__), MOST_FRAMES)
    ]
    described = {
        "type": _storable(type(error).__qualname__, LONGEST_FRAME),
        "message": _storable(_message_of(error), LONGEST_MESSAGE),
    }
    # The place of the fault is worth more than the way there, which is left out if it must:
    # JSON spells one control character in six bytes.
    text = encode_json({**described, "traceback": frames})
    while frames and len(text.encode()) > LARGEST_ERROR_BYTES:
        del frames[0]
        text = encode_json({**described, "traceback": frames})
    return text


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an exception whose own text cannot be had
        return "(the error has no readable message)"


def _storable(text: str, longest: int) -> str:
    """Escape what not every database stores, NUL and lone surrogates, and cut what is left."""
    # Cut before as well, so that a message of many megabytes is not copied over and over.
    head = str.__str__(text)[: longest + 1].replace("\0", "\\x00")
    escaped = head.encode("utf-8", "backslashreplace").decode("utf-8")
    if len(escaped) <= longest:
        return escaped
    return f"{escaped[:longest]}... ({len(text)} characters)"
