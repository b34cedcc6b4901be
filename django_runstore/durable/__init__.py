"""
Say which values can be stored, compared and read back unchanged.

Identifiers, integers and JSON are admitted here before anything else looks at
them: what comes out is an exact ``str``, ``int`` or a detached copy, whatever
went in. No method of a caller's object is ever run to find out.
"""

from django_runstore.durable.complaints import JsonComplaint
from django_runstore.durable.event_json import MAX_EVENT_DEPTH, event_json, parse_event_json
from django_runstore.durable.integers import MAX_SAFE_INTEGER, safe_integer
from django_runstore.durable.json_equality import structurally_equal
from django_runstore.durable.json_text import (
    admit_json_text,
    canonical_json,
    encode_admitted,
    encode_json,
    parse_json_text,
)
from django_runstore.durable.json_values import (
    MAX_JSON_DEPTH,
    MAX_JSON_MEMBERS,
    MAX_JSON_VALUES,
    JsonValue,
    admit_json,
)
from django_runstore.durable.text import (
    MAX_DURABLE_UNITS,
    MAX_DURABLE_UTF8_BYTES,
    durable_text,
    is_durable_text,
    utf16_units,
)

__all__ = [
    "MAX_DURABLE_UNITS",
    "MAX_DURABLE_UTF8_BYTES",
    "MAX_EVENT_DEPTH",
    "MAX_JSON_DEPTH",
    "MAX_JSON_MEMBERS",
    "MAX_JSON_VALUES",
    "MAX_SAFE_INTEGER",
    "JsonComplaint",
    "JsonValue",
    "admit_json",
    "admit_json_text",
    "canonical_json",
    "durable_text",
    "encode_admitted",
    "encode_json",
    "event_json",
    "is_durable_text",
    "parse_event_json",
    "parse_json_text",
    "safe_integer",
    "structurally_equal",
    "utf16_units",
]
