"""Count the bytes that a JSON value is charged against a byte limit."""

import json

# Exponents of ten between which JavaScript writes a number without an exponent.
_LAST_PLAIN_EXPONENT = 21
_FIRST_PLAIN_EXPONENT = -6

_text_of = json.JSONEncoder(ensure_ascii=False).encode


def text_bytes(text: str) -> int:
    r"""
    Count the quotes, the escapes and the UTF-8 bytes of a string.

    Args:
        text: Well-formed text.

    Spec: run-store 9.3: 2 for ``"``, ``\`` and the five short escapes, 6 for
    other controls, otherwise the character's length in UTF-8.
    """
    return len(_text_of(text).encode())


def container_bytes(members: int) -> int:
    """Count the two brackets and the commas between ``members`` members."""
    return 2 + max(0, members - 1)


def number_bytes(number: float) -> int:
    """
    Count the characters of a number as JavaScript writes it.

    An integer is charged its digits. JavaScript would round one above 2**53
    first; it is stored exactly here, so every digit is paid for.

    Args:
        number: A finite ``int`` or ``float``.

    Spec: run-store 9.3.
    """
    return len(str(number) if isinstance(number, int) else javascript_text(number))


def javascript_text(number: float) -> str:
    """
    Write a float as JavaScript does: ``1``, ``0.00001``, ``1e-7``, ``1e+21``.

    Python and JavaScript agree on the shortest digits that read back as the
    same number and differ only in how they are laid out.

    Args:
        number: A finite ``float``.
    """
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    leading = (whole + fraction).lstrip("0")
    digits = leading.rstrip("0")
    if not digits:
        return "0"
    # Where the decimal point stands, counted from the first significant digit.
    point = len(leading) - len(fraction) + int(exponent or 0)
    sign = "-" if number < 0 else ""
    return sign + _laid_out(digits, point)


def _laid_out(digits: str, point: int) -> str:
    if len(digits) <= point <= _LAST_PLAIN_EXPONENT:
        return digits.ljust(point, "0")
    if 0 < point <= _LAST_PLAIN_EXPONENT:
        return f"{digits[:point]}.{digits[point:]}"
    if _FIRST_PLAIN_EXPONENT < point <= 0:
        return f"0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{rest}e{point - 1:+d}"
