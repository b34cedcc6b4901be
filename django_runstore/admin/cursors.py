"""Numbers that come back in forms and addresses: used when they are ones, and ignored otherwise."""

import re
from typing import Final

from django_runstore.durable import safe_integer

_DIGITS: Final = re.compile("[0-9]{1,16}")


def whole_number(text: str | None) -> int | None:
    """Read a sequence or a time in milliseconds; None for whatever could not be one."""
    if text is None or not _DIGITS.fullmatch(text):
        return None
    return safe_integer(int(text))
