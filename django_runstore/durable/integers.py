"""Admit integers that every database and every JSON reader keep exactly."""

from typing import cast

MAX_SAFE_INTEGER = 2**53 - 1


def exact_integer(value: object) -> int | None:
    """
    Copy an integer, of whatever subclass but ``bool``, into an exact ``int``.

    Args:
        value: Anything. None of its code is run.

    Returns:
        The number, or ``None`` for anything else, ``1.0`` and ``True`` included.
    """
    kind = type(value)
    if kind is bool or not issubclass(kind, int):
        return None
    return int.__int__(cast("int", value))


def safe_integer(value: object) -> int | None:
    """
    Admit ``value`` as a count, an ordinal or a time in milliseconds.

    Args:
        value: Anything. ``bool`` and ``float`` are refused even where they
            equal an integer; an ``IntEnum`` member is copied.

    Returns:
        An exact ``int`` from 0 to 2**53 - 1, or ``None``.

    Spec: run-store 4.1.
    """
    number = exact_integer(value)
    if number is None or not 0 <= number <= MAX_SAFE_INTEGER:
        return None
    return number
