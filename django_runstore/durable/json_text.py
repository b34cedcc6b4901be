"""Admit JSON text as it stands, and write JSON text from values."""

import json
import re
from typing import NoReturn, cast

from django_runstore.durable import complaints
from django_runstore.durable.complaints import JsonComplaint
from django_runstore.durable.json_screen import is_plainly_admissible
from django_runstore.durable.json_values import MAX_JSON_DEPTH, JsonValue, admit_json
from django_runstore.durable.text import exact_text, is_well_formed

_STRING_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def admit_json_text(text: object, *, max_bytes: int | None = None) -> str:
    """
    Admit JSON text and return it unchanged, white space and key order included.

    Any JSON value is allowed at the root. ``NaN`` and ``Infinity`` are not
    JSON; of a repeated key the last value is the one that is checked. An
    escaped NUL inside a string is fine.

    Args:
        text: Anything; only a non-empty string can be admitted.
        max_bytes: The most UTF-8 bytes the text may have, white space
            included, or ``None`` for no limit.

    Returns:
        The same characters, as an exact ``str``.

    Raises:
        JsonComplaint: the text is empty or not JSON, or what it holds breaks a
            rule of ``admit_json``.

    Spec: run-store 9.3.
    """
    exact, _ = _admit(text, max_bytes)
    return exact


def parse_json_text(text: object, *, max_bytes: int | None = None) -> JsonValue:
    """
    Read admitted JSON text.

    Args:
        text: As for ``admit_json_text``.
        max_bytes: As for ``admit_json_text``.

    Returns:
        What the text holds. Integers are exact at any size.

    Raises:
        JsonComplaint: as for ``admit_json_text``.
    """
    _, value = _admit(text, max_bytes)
    return value


def encode_json(value: object, *, max_bytes: int | None = None) -> str:
    """
    Admit ``value`` and write it as compact JSON text, members in their order.

    Args:
        value: As for ``admit_json``.
        max_bytes: As for ``admit_json``.

    Raises:
        JsonComplaint: as for ``admit_json``.

    Example:
        >>> encode_json({"city": "Zürich", "at": (1, 2)})
        '{"city":"Zürich","at":[1,2]}'
    """
    return encode_admitted(admit_json(value, max_bytes=max_bytes))


def encode_admitted(value: JsonValue) -> str:
    """Write what ``admit_json`` returned as compact JSON text, without admitting it again."""
    return _ENCODER.encode(value)


def canonical_json(value: object) -> str:
    """
    Write ``value`` so that equal values, and only they, have equal texts.

    Keys are sorted by code point at every level, and a float without a
    fraction is written as the integer it equals: two values have the same
    canonical text exactly when they are ``structurally_equal``. Meant for
    digests, not for storing: 1.0 comes back as 1.

    Args:
        value: As for ``admit_json``.

    Raises:
        JsonComplaint: as for ``admit_json``.

    Example:
        >>> canonical_json({"b": 1.0, "a": [True]})
        '{"a":[true],"b":1}'
    """
    return CANONICAL_ENCODER.encode(_with_one_number_form(admit_json(value)))


def _admit(text: object, max_bytes: int | None) -> tuple[str, JsonValue]:
    exact = exact_text(text)
    if not exact:
        raise JsonComplaint(complaints.EMPTY_TEXT)
    # Looked for in the text as well as in the value: where a key is repeated,
    # the value no longer holds everything that will be stored.
    if not is_well_formed(exact):
        raise JsonComplaint(complaints.TEXT)
    if max_bytes is not None and len(exact.encode()) > max_bytes:
        raise JsonComplaint(complaints.BYTES)
    value = decode_json_text(exact)
    if max_bytes is None and is_plainly_admissible(exact, value):
        return exact, value
    return exact, admit_json(value, max_bytes=max_bytes)


def decode_json_text(text: str) -> JsonValue:
    """
    Read well-formed text as JSON, whatever the size of what it holds.

    Raises:
        JsonComplaint: it is not JSON, or nests deeper than it can be read.
    """
    # The complaint is raised after the handlers, so that it does not carry the
    # parser's error as its context: that one holds the whole text.
    try:
        return cast("JsonValue", _DECODER.decode(text))
    except json.JSONDecodeError:
        complaint = complaints.INVALID_TEXT
    except ValueError:
        # An integer of more digits than the interpreter converts: at least
        # 640, where the largest finite float has 309.
        complaint = complaints.NON_FINITE
    except RecursionError:
        if not _nests_too_deeply(text):
            raise  # The caller's own stack is used up; the text is not to blame.
        complaint = complaints.DEPTH
    raise JsonComplaint(complaint)


def _refuse_constant(_name: str) -> NoReturn:
    reason = "not JSON"
    raise json.JSONDecodeError(reason, "", 0)


def _nests_too_deeply(text: str) -> bool:
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        found = match[0]
        if found in "[{":
            depth += 1
            # An empty container may sit at the greatest depth, inside as many others.
            if depth > MAX_JSON_DEPTH + 1:
                return True
        elif found in "]}":
            depth -= 1
    return False


def _with_one_number_form(value: JsonValue) -> JsonValue:
    """Rewrite floats that are integers; admission has bounded the recursion."""
    if isinstance(value, dict):
        return {key: _with_one_number_form(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_with_one_number_form(member) for member in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)

# The cycle check is admission's, so the encoder does not repeat it.
_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
)
CANONICAL_ENCODER = json.JSONEncoder(
    ensure_ascii=False,
    allow_nan=False,
    check_circular=False,
    separators=(",", ":"),
    sort_keys=True,
)
