"""
Columns of the attempt table: how a value becomes them, and how they become a value again.

A row that ``AttemptStore`` could not have written is refused as ``decode_failed``; neither
the complaint nor what it carries holds any of the row's text. Spec: run-store 5.4.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from django_runstore.attempts import AttemptKey, AttemptRecord
from django_runstore.durable import (
    JsonComplaint,
    encode_admitted,
    is_durable_text,
    parse_json_text,
    safe_integer,
)
from django_runstore.errors import AttemptDecodeFailed
from django_runstore.unset import UNSET

# Whatever a store's own maximum is: one with a smaller one still reads what others wrote.
LARGEST_CHECKPOINT_BYTES: Final = 16_777_216

TIME_COLUMNS: Final = ("finished_at_ms", "heartbeat_at_ms")
JSON_VALUES: Final = ("checkpoint", "error", "outcome", "meta")
_PLAIN_FIELDS: Final = (
    "run_id",
    "step_key_digest",
    "attempt",
    "state",
    "started_at_ms",
    "step_name",
)
COLUMNS: Final = (
    *_PLAIN_FIELDS,
    "step_key_hash",
    *TIME_COLUMNS,
    *(f"{name}_json" for name in JSON_VALUES),
)

_COULD_NOT_DECODE: Final = "could not decode attempt row"


def step_key_hash(step_key_digest: str) -> bytes:
    """Give what the step key is indexed by, which has a length that fits an index."""
    return hashlib.sha256(step_key_digest.encode()).digest()


def step_columns(key: AttemptKey) -> dict[str, Any]:
    """Give the columns that find the attempts of a step."""
    return {"run_id": key.run_id, "step_key_hash": step_key_hash(key.step_key_digest)}


def key_columns(key: AttemptKey) -> dict[str, Any]:
    """Give the columns that find an attempt's row."""
    return {**step_columns(key), "attempt": key.attempt}


def value_columns(record: AttemptRecord) -> dict[str, Any]:
    """Give every column that is not part of the key; what is absent becomes null."""
    times = {name: getattr(record, name) for name in TIME_COLUMNS}
    return {
        "state": record.state,
        "started_at_ms": record.started_at_ms,
        "step_name": record.step_name,
        **{name: None if value is UNSET else value for name, value in times.items()},
        **{f"{name}_json": None for name in JSON_VALUES},
        **json_columns({name: getattr(record, name) for name in JSON_VALUES}),
    }


def json_columns(values: Mapping[str, Any]) -> dict[str, str]:
    """Give the columns of those admitted values that are there."""
    return {
        f"{name}_json": encode_admitted(value)
        for name, value in values.items()
        if value is not UNSET
    }


def decode_attempt(operation: str, columns: Mapping[str, Any]) -> AttemptRecord:
    """
    Check every column of a row of ``COLUMNS`` and return the attempt as a value.

    Raises:
        AttemptDecodeFailed: a column has a wrong type or range, or its text is not JSON; the
            message names the column and the rule.
    """
    if not _fits_schema(columns):
        raise AttemptDecodeFailed(operation, _COULD_NOT_DECODE)
    plain = {name: columns[name] for name in _PLAIN_FIELDS}
    times: dict[str, Any] = {
        name: UNSET if columns[name] is None else columns[name] for name in TIME_COLUMNS
    }
    values = {name: _parsed(operation, name, columns[f"{name}_json"]) for name in JSON_VALUES}
    return AttemptRecord(**plain, **times, **values)


def _fits_schema(columns: Mapping[str, Any]) -> bool:
    digest = columns["step_key_digest"]
    return (
        all(is_durable_text(columns[name]) for name in ("run_id", "step_key_digest", "state"))
        # Found by this hash, so another one means that the step key is not the one looked for.
        and columns["step_key_hash"] == step_key_hash(digest)
        and all(safe_integer(columns[name]) is not None for name in ("attempt", "started_at_ms"))
        and all(columns[n] is None or safe_integer(columns[n]) is not None for n in TIME_COLUMNS)
        and (columns["step_name"] == "" or is_durable_text(columns["step_name"]))
        and columns["meta_json"] is not None
    )


def _parsed(operation: str, name: str, text: str | None) -> Any:  # noqa: ANN401 - any JSON value or UNSET
    if text is None:
        return UNSET
    most = LARGEST_CHECKPOINT_BYTES if name == "checkpoint" else None
    try:
        return parse_json_text(text, max_bytes=most)
    except JsonComplaint as error:
        complaint = error.complaint
    # Raised outside the handler, so that the parser's words do not travel along.
    raise AttemptDecodeFailed(operation, f"{name}_json {complaint}")
