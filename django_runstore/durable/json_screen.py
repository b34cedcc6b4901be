"""Clear ordinary parsed JSON at a fraction of the cost of admitting it."""

import math

from django_runstore.durable.json_values import MAX_JSON_DEPTH, MAX_JSON_VALUES, JsonValue

# Surely finite as a float. Larger integers are left to admission.
_LARGE_INTEGER = 2**1000


def is_plainly_admissible(text: str, value: JsonValue) -> bool:
    """
    Say whether freshly parsed JSON surely keeps every rule of ``admit_json``.

    State is admitted on each write and each read, and copying it member by
    member costs several times what parsing it does. What the parser made is
    plain, acyclic and held by nobody else, so a pass over each level clears
    most of it. In any doubt the answer is no, and ``admit_json`` decides and
    words the complaint.

    Args:
        text: The well-formed text that was parsed.
        value: What the parser made of it.
    """
    # Only an escape can put a surrogate into a string of well-formed text. One
    # character is found far faster than three.
    if "\\" in text and ("\\ud" in text or "\\uD" in text):
        return False
    values = 1
    level = [value]
    for _depth in range(MAX_JSON_DEPTH + 1):
        inner = _members_of_finite(level)
        if not inner:
            return inner is not None
        # Each value but the root is a member, so this bounds the members too.
        values += len(inner)
        if values > MAX_JSON_VALUES:
            return False
        level = inner
    return False


def _members_of_finite(level: list[JsonValue]) -> list[JsonValue] | None:
    """Collect what the containers of a level hold; None if a number is too large."""
    inner: list[JsonValue] = []
    for value in level:
        if type(value) is dict:
            inner.extend(value.values())
        elif type(value) is list:
            inner.extend(value)
        elif type(value) is float:
            if not math.isfinite(value):
                return None
        elif type(value) is int and not -_LARGE_INTEGER < value < _LARGE_INTEGER:
            return None
    return inner
