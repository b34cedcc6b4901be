"""Write what goes into the journal as JSON, and read it back. Spec: run-store 8.1."""

import datetime as dt
import math
from collections.abc import Sized
from typing import Final

from django_runstore.durable import complaints
from django_runstore.durable.complaints import JsonComplaint
from django_runstore.durable.json_text import CANONICAL_ENCODER, decode_json_text
from django_runstore.durable.json_values import JsonAdmission, JsonValue
from django_runstore.unset import UNSET

MAX_EVENT_DEPTH: Final = 256
MAX_EVENT_VALUES: Final = 1_000_000

_DATES: Final = (dt.datetime, dt.date, dt.time)


def event_json(value: object) -> str:
    """
    Write ``value`` so that equal contents of events have equal texts.

    More is admitted than into state, since an entry is a record for people: dates and times
    are written in ISO 8601, numbers that are not finite as null, members that are ``UNSET``
    are left out. Keys are sorted by code point at every level, and a float without a
    fraction is written as the integer it equals.

    Args:
        value: Anything; containers nested at most ``MAX_EVENT_DEPTH`` deep and at most
            ``MAX_EVENT_VALUES`` members in all.

    Raises:
        JsonComplaint: the first rule that is broken, and where.

    Example:
        >>> event_json({"at": dt.date(2026, 10, 1), "a": float("nan")})
        '{"a":null,"at":"2026-10-01"}'
    """
    return CANONICAL_ENCODER.encode(_EventAdmission().admit(value))


def parse_event_json(text: object) -> JsonValue:
    """
    Read what ``event_json`` wrote.

    Raises:
        JsonComplaint: it is no JSON text.
    """
    if type(text) is not str or not text:
        raise JsonComplaint(complaints.EMPTY_TEXT)
    return decode_json_text(text)


class _EventAdmission(JsonAdmission):
    most_members = MAX_EVENT_VALUES
    most_values = MAX_EVENT_VALUES + 1  # The root is no member.
    greatest_depth = MAX_EVENT_DEPTH
    too_deep = complaints.EVENT_DEPTH

    def _enter(self, source: Sized) -> None:
        # Containers are what is counted here: a scalar in the deepest of them is fine.
        if len(self.open) >= MAX_EVENT_DEPTH:
            raise self._complaint(self.too_deep)
        super()._enter(source)

    def _read_members(self, source: dict[object, object]) -> list[tuple[object, object]]:
        return [member for member in super()._read_members(source) if member[1] is not UNSET]

    def _copy_float(self, number: float) -> float | None:  # type: ignore[override]  # null is admitted here
        if not math.isfinite(number):
            return None
        return int(number) if number.is_integer() else number

    def _copy_rarer(self, value: object) -> JsonValue:
        # A list cannot do without a member that is absent.
        if value is UNSET and self.open:
            return None
        # Compared by identity, so that no code of the caller's class runs.
        if any(type(value) is kind for kind in _DATES):
            return self._copy_date(value)
        return super()._copy_rarer(value)

    def _copy_date(self, value: object) -> str:
        try:
            return value.isoformat()  # type: ignore[attr-defined, no-any-return]  # of one of _DATES
        except Exception:  # noqa: BLE001 - the offset of a time zone is the caller's code
            complaint = self._complaint(complaints.INSPECTION)
        raise complaint
