"""Spell an exception as JSON that can be stored."""

import traceback
from collections import deque
from typing import Final

from django_runstore.durable import encode_json

LONGEST_MESSAGE: Final = 2_000
MOST_FRAMES: Final = 30
LONGEST_FRAME: Final = 300
LARGEST_ERROR_BYTES: Final = 16_384


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
