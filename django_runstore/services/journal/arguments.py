"""Check what callers hand to ``Journal``, before anything is read. Spec: run-store 8."""

from dataclasses import fields
from typing import Final, NoReturn

from django_runstore.durable import (
    MAX_SAFE_INTEGER,
    JsonComplaint,
    durable_text,
    encode_json,
    safe_integer,
)
from django_runstore.durable.integers import exact_integer
from django_runstore.durable.text import exact_text
from django_runstore.errors import InvalidEvent
from django_runstore.owners import OwnerId
from django_runstore.services.arguments import OWNER_FIELDS, exact_fields

LARGEST_SEQUENCE: Final = MAX_SAFE_INTEGER - 1
"""The maximum is left out because the next one must be allocatable."""

LARGEST_PAGE: Final = 10_000
MOST_TYPES: Final = 64

_LARGEST_COMPANION_BYTES: Final = 512
_EVENT: Final = "event violates the journal input contract"
_TEXT: Final = "must be well-formed durable text"
_SEQUENCE: Final = f"must be an integer from 0 to {LARGEST_SEQUENCE}"


def refuse(operation: str, field: str, rule: str, message: str | None = None) -> NoReturn:
    """Raise the typed error for one field."""
    raise InvalidEvent(operation, message or f"{field} {rule}", {"field": field, "detail": rule})


def text(operation: str, value: object, field: str, message: str | None = None) -> str:
    """Admit an identifier: 1 to 1,024 UTF-16 units, at most 2,048 bytes, well-formed."""
    admitted = durable_text(value)
    if admitted is None:
        refuse(operation, field, _TEXT, message)
    return admitted


def companion(operation: str, value: object, message: str | None = None) -> str:
    """Admit the empty text, for the run's own stream, or a name that fits beside a run id."""
    if type(value) is str and not value:
        return ""
    admitted = durable_text(value)
    if admitted is None or len(admitted.encode()) > _LARGEST_COMPANION_BYTES:
        rule = f"{_TEXT} of at most {_LARGEST_COMPANION_BYTES} bytes, or empty"
        refuse(operation, "companion", rule, message)
    return admitted


def sequence(operation: str, value: object, field: str, message: str | None = None) -> int:
    """Admit the number of an entry."""
    admitted = safe_integer(value)
    if admitted is None or admitted > LARGEST_SEQUENCE:
        refuse(operation, field, _SEQUENCE, message)
    return admitted


def cursor(operation: str, value: object) -> int:
    """Admit the sequence to go on after; ``None`` and -1 stand for the beginning."""
    if value is None:
        return -1
    admitted = exact_integer(value)
    if admitted is None or not -1 <= admitted <= MAX_SAFE_INTEGER:
        refuse(operation, "after", "must be a sequence, or -1 for the beginning")
    return admitted


def page_size(operation: str, value: object) -> int:
    """Admit the number of entries of a page."""
    admitted = exact_integer(value)
    if admitted is None or not 1 <= admitted <= LARGEST_PAGE:
        refuse(operation, "limit", f"must be an integer from 1 to {LARGEST_PAGE}")
    return admitted


def positive(operation: str, value: object, field: str) -> int:
    """Admit a size or a time."""
    admitted = safe_integer(value)
    if not admitted:
        refuse(operation, field, "must be a positive integer")
    return admitted


def event_types(operation: str, value: object) -> tuple[str, ...] | None:
    """Admit 1 to 64 exact types, or nothing for all."""
    if value is None:
        return None
    rule = f"must be 1 to {MOST_TYPES} event types"
    # Compared by identity: "in" would run the __eq__ of the value's metaclass.
    if not any(type(value) is kind for kind in (list, tuple, set, frozenset)):
        refuse(operation, "event_types", rule)
    names = tuple(value)  # type: ignore[arg-type, var-annotated]  # of one of these kinds
    if not 1 <= len(names) <= MOST_TYPES:
        refuse(operation, "event_types", rule)
    return tuple(text(operation, name, "event_types") for name in names)


def owner(operation: str, value: object, fence: object) -> tuple[OwnerId, int | None]:
    """
    Admit an owner and a grant.

    An owner that no run can have, of an empty host or nonce, is no error here: it holds
    nothing. Spec: run-store 3.1.
    """
    parts = exact_fields(value, OwnerId, OWNER_FIELDS)
    host_id, pid, nonce = (None, None, None) if parts is None else parts
    exact = exact_text(host_id), exact_integer(pid), exact_text(nonce)
    grant = safe_integer(fence)
    malformed = exact[0] is None or exact[1] is None or exact[2] is None or exact[1] < 0
    if malformed or (grant is None and fence is not None):
        raise InvalidEvent(operation, f"{operation} requires a well-formed owner fence")
    return OwnerId(*exact), grant  # type: ignore[arg-type]  # none of them is None


def state(operation: str, value: object) -> str:
    """Admit the state of a checkpoint, which is stored as it is."""
    try:
        return encode_json(value)
    except JsonComplaint as error:
        complaint = error.complaint
    return refuse(operation, "state", complaint)


def names_of(kind: type) -> tuple[str, ...]:
    """Name the fields of a record."""
    return tuple(field.name for field in fields(kind))
