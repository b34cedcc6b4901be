"""Encode what users hand over, with an error that says where it cannot be stored."""

import hashlib
from collections.abc import Callable

from django_runstore.durable import JsonComplaint, canonical_json, encode_json
from django_runstore.handlers.errors import InvalidValue


def encode_value(operation: str, field: str, value: object) -> str:
    """
    Give the JSON text of ``value``.

    Raises:
        InvalidValue: it cannot be stored; ``detail`` has the path and the rule, never a value.
    """
    return _encoded(operation, field, value, encode_json)


def digest_value(operation: str, field: str, value: object) -> str:
    """
    Give 64 hexadecimal digits that are the same for values that mean the same.

    The order of an object's keys does not matter, and 1 is 1.0.

    Raises:
        InvalidValue: as ``encode_value``.
    """
    text = _encoded(operation, field, value, canonical_json)
    return hashlib.sha256(text.encode()).hexdigest()


def _encoded(operation: str, field: str, value: object, encode: Callable[[object], str]) -> str:
    try:
        return encode(value)
    except JsonComplaint as error:
        complaint, path = error.complaint, error.path
    # Raised outside the handler: the complaint's traceback can reach the value.
    message = f"{field}{path.removeprefix('$')} {complaint}"
    raise InvalidValue(operation, message, {"field": field, "path": path, "detail": complaint})
