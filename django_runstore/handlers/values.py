"""Encode what users hand over, with an error that says where it cannot be stored."""

from django_runstore.durable import JsonComplaint, encode_json
from django_runstore.handlers.errors import InvalidValue


def encode_value(operation: str, field: str, value: object) -> str:
    """
    Give the JSON text of ``value``.

    Raises:
        InvalidValue: it cannot be stored; ``detail`` has the path and the rule, never a value.
    """
    try:
        return encode_json(value)
    except JsonComplaint as error:
        complaint, path = error.complaint, error.path
    # Raised outside the handler: the complaint's traceback can reach the value.
    message = f"{field} {complaint} (at {path})"
    raise InvalidValue(operation, message, {"field": field, "path": path, "detail": complaint})
