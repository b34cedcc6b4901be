"""Admit text that two databases store, compare and return the same way."""

from typing import cast

MAX_DURABLE_UNITS = 1024

# A PostgreSQL btree entry holds about 2,700 bytes, and identifiers are indexed.
MAX_DURABLE_UTF8_BYTES = 2048


def exact_text(value: object) -> str | None:
    """
    Copy a string, of whatever subclass, into an exact ``str``.

    A ``SafeString`` or a ``TextChoices`` member is text to the person who
    passes it, so it counts; what is kept has none of its methods.

    Args:
        value: Anything. None of its code is run.

    Returns:
        The characters, or ``None`` when ``value`` is not a string.
    """
    # Not isinstance: for anything but a string it goes on to read __class__,
    # and that can be a property.
    if not issubclass(type(value), str):
        return None
    return str.__str__(cast("str", value))


def is_well_formed(text: str) -> bool:
    """
    Say whether ``text`` can be encoded, which a surrogate on its own cannot.

    Args:
        text: An exact ``str``. Two surrogates that would make one character in
            UTF-16 are still two unencodable ones in a Python string.
    """
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def utf16_units(text: str) -> int:
    """
    Count the UTF-16 code units of ``text``: an astral character is two.

    Example:
        >>> utf16_units("run-😀")
        6
    """
    # str's own method, because the text may be of a subclass that has another.
    return len(str.encode(text, "utf-16-le", "surrogatepass")) // 2


def durable_text(value: object) -> str | None:
    """
    Admit ``value`` as an identifier and copy it into an exact ``str``.

    Durable text is 1 to 1,024 UTF-16 units and at most 2,048 UTF-8 bytes long,
    without NUL and without lone surrogates. SQLite would turn every lone
    surrogate into the same U+FFFD, so that two ids collide, and its
    ``length()`` stops at a NUL.

    Args:
        value: Anything; subclasses of ``str`` are admitted and copied, and
            none of their code is run.

    Returns:
        The text, or ``None`` when a rule is broken.

    Spec: run-store 9.1.
    """
    text = exact_text(value)
    # Every character is at least one unit: a huge string is refused unread.
    if text is None or not 1 <= len(text) <= MAX_DURABLE_UNITS or "\0" in text:
        return None
    if text.isascii():
        return text
    if not is_well_formed(text) or utf16_units(text) > MAX_DURABLE_UNITS:
        return None
    return text if len(text.encode()) <= MAX_DURABLE_UTF8_BYTES else None


def is_durable_text(value: object) -> bool:
    """Say whether ``durable_text`` admits ``value``."""
    return durable_text(value) is not None
