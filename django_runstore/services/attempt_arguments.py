"""
Check what callers hand to ``AttemptStore``, before anything is read. Spec: run-store 5.

Judged and copied like the arguments of ``RunStore``. An error says which rule is broken and
carries nothing else: what is wrong with an attempt is often the very value to keep secret.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NoReturn

from django_runstore.attempt_rows import JSON_VALUES, LARGEST_CHECKPOINT_BYTES
from django_runstore.attempts import AttemptId, AttemptPatch, AttemptRecord, FinishAttempt
from django_runstore.durable import (
    JsonComplaint,
    admit_json,
    complaints,
    durable_text,
    encode_json,
    safe_integer,
)
from django_runstore.errors import InvalidAttempt
from django_runstore.owners import OwnerId
from django_runstore.services.arguments import OWNER_FIELDS, exact_fields, identity
from django_runstore.unset import UNSET, UnsetType

_MOST_STATES: Final = 256
_LARGEST_STATES_BYTES: Final = 65_536

PUT_MODES: Final = ("insert", "upsert")

_RECORD: Final = tuple(field.name for field in fields(AttemptRecord))
_FINISH: Final = tuple(field.name for field in fields(FinishAttempt))
_PATCH: Final = tuple(field.name for field in fields(AttemptPatch))
_ID: Final = tuple(field.name for field in fields(AttemptId))

_IDENTITY: Final = "attempt identity violates the durable identifier contract"
_ATTEMPT: Final = "attempt violates the persistence contract"
_FINISHED: Final = "finished attempt violates the contract"
_TERMINAL: Final = "finish requires a terminal state and valid timestamp"
_TIMESTAMP: Final = "must be a non-negative safe integer"


@dataclass(frozen=True, slots=True)
class Options:
    """What an attempt store was built with; a copy that no caller can change."""

    in_progress_states: tuple[str, ...]
    max_checkpoint_bytes: int
    put_mode: str


def refuse(operation: str, detail: str) -> NoReturn:
    """Raise the typed error."""
    raise InvalidAttempt(operation, detail)


def options(
    operation: str, in_progress_states: object, max_checkpoint_bytes: object, put_mode: object
) -> Options:
    """Admit the options of a store. Spec: run-store 5.1."""
    states = _states(operation, in_progress_states)
    most = safe_integer(max_checkpoint_bytes)
    if most is None or not 1 <= most <= LARGEST_CHECKPOINT_BYTES:
        refuse(operation, f"max_checkpoint_bytes must be between 1 and {LARGEST_CHECKPOINT_BYTES}")
    mode = durable_text(put_mode)
    if mode is None or mode not in PUT_MODES:
        refuse(operation, f"put_mode must be {' or '.join(PUT_MODES)}")
    return Options(states, most, mode)


def _states(operation: str, value: object) -> tuple[str, ...]:
    """Admit a list or tuple of 1 to 256 different state names."""
    if (type(value) is not list and type(value) is not tuple) or len(value) > _MOST_STATES:
        refuse(operation, "in_progress_states must be an inert string array")
    names = [durable_text(name) for name in tuple(value)]
    states = tuple(name for name in names if name is not None)
    if not states or len(states) != len(names) or len(set(states)) != len(states):
        refuse(operation, "in_progress_states must contain unique durable state names")
    if len(encode_json(states).encode()) > _LARGEST_STATES_BYTES:
        refuse(operation, "in_progress_states must be an inert string array")
    return states


def owner(operation: str, value: object) -> OwnerId:
    """Admit exactly an ``OwnerId`` with durable texts and a non-negative pid."""
    parts = exact_fields(value, OwnerId, OWNER_FIELDS)
    admitted = None if parts is None else identity(*parts)
    if admitted is None:
        refuse(operation, "owner must be an inert, valid owner identity")
    return admitted


def fence(operation: str, value: object) -> int | None:
    """Admit a grant number or nothing."""
    admitted = safe_integer(value)
    if admitted is None and value is not None:
        refuse(operation, f"fence {_TIMESTAMP}")
    return admitted


def now_ms(operation: str, value: object) -> int:
    """Admit a caller's reading; it is bound to no clock."""
    admitted = safe_integer(value)
    if admitted is None:
        refuse(operation, f"now_ms {_TIMESTAMP}")
    return admitted


def attempt_id(operation: str, value: object) -> AttemptId:
    """Admit an ``AttemptId``, or a whole ``AttemptRecord`` in its place."""
    kind = AttemptRecord if type(value) is AttemptRecord else AttemptId
    parts = exact_fields(value, kind, _ID)
    if parts is None:
        refuse(operation, "attempt id must be an inert data record")
    return identifier(operation, parts)


def identifier(operation: str, parts: Sequence[object], rule: str = _IDENTITY) -> AttemptId:
    """Admit run id, step key digest and attempt number."""
    run_id, step_key_digest, attempt = parts
    texts = durable_text(run_id), durable_text(step_key_digest)
    number = safe_integer(attempt)
    if texts[0] is None or texts[1] is None or number is None:
        refuse(operation, rule)
    return AttemptId(texts[0], texts[1], number)


def record(operation: str, value: object, max_checkpoint_bytes: int) -> AttemptRecord:
    """Admit exactly an ``AttemptRecord``; the copy holds detached values."""
    parts = exact_fields(value, AttemptRecord, _RECORD)
    if parts is None:
        refuse(operation, "attempt must be an inert data record")
    given = dict(zip(_RECORD, parts, strict=True))
    values = _values(operation, given, LARGEST_CHECKPOINT_BYTES)
    key = identifier(operation, [given[name] for name in _ID], _ATTEMPT)
    state = durable_text(given["state"])
    started_at_ms = safe_integer(given["started_at_ms"])
    if state is None or started_at_ms is None or given["meta"] is UNSET:
        refuse(operation, _ATTEMPT)
    finished_at_ms, heartbeat_at_ms = (
        _optional_time(operation, given[name]) for name in ("finished_at_ms", "heartbeat_at_ms")
    )
    step_name = _label(operation, given["step_name"])
    if max_checkpoint_bytes < LARGEST_CHECKPOINT_BYTES:
        # Once more, since an attempt of a broken contract is named before one of a checkpoint
        # that is only too large for this store.
        checkpoint(operation, values["checkpoint"], max_checkpoint_bytes)
    return AttemptRecord(
        key.run_id,
        key.step_key_digest,
        key.attempt,
        state,
        started_at_ms,
        finished_at_ms=finished_at_ms,
        heartbeat_at_ms=heartbeat_at_ms,
        step_name=step_name,
        **values,
    )


def finish(operation: str, value: object, in_progress_states: tuple[str, ...]) -> FinishAttempt:
    """Admit exactly a ``FinishAttempt`` whose state is not one that is in progress."""
    parts = exact_fields(value, FinishAttempt, _FINISH)
    if parts is None:
        refuse(operation, "finished attempt must be an inert data record")
    given = dict(zip(_FINISH, parts, strict=True))
    values = _values(operation, given, LARGEST_CHECKPOINT_BYTES)
    key = identifier(operation, [given[name] for name in _ID], _FINISHED)
    state, finished_at_ms = durable_text(given["state"]), safe_integer(given["finished_at_ms"])
    if state is None or finished_at_ms is None:
        refuse(operation, _FINISHED)
    if state in in_progress_states:
        refuse(operation, _TERMINAL)
    return FinishAttempt(
        key.run_id, key.step_key_digest, key.attempt, state, finished_at_ms, **values
    )


def patch(operation: str, value: object, max_checkpoint_bytes: int) -> AttemptPatch:
    """Admit exactly an ``AttemptPatch``."""
    parts = exact_fields(value, AttemptPatch, _PATCH)
    if parts is None:
        refuse(operation, "attempt patch must be an inert data record")
    given = dict(zip(_PATCH, parts, strict=True))
    return AttemptPatch(**_values(operation, given, max_checkpoint_bytes))


def checkpoint(operation: str, value: object, max_bytes: int) -> Any:  # noqa: ANN401 - any JSON value
    """Admit a checkpoint of at most ``max_bytes``, or its absence."""
    return _value(operation, "checkpoint", value, max_bytes)


def storable(operation: str, columns: dict[str, Any]) -> dict[str, Any]:
    """Refuse the rare checkpoint that costs less than its limit and has more text than is read."""
    text = columns.get("checkpoint_json")
    if text is not None and len(text.encode()) > LARGEST_CHECKPOINT_BYTES:
        refuse(operation, f"checkpoint {complaints.BYTES}")
    return columns


def _values(operation: str, given: dict[str, Any], max_bytes: int) -> dict[str, Any]:
    """Admit the JSON values among ``given``, the checkpoint first."""
    return {
        name: _value(operation, name, given[name], max_bytes if name == "checkpoint" else None)
        for name in JSON_VALUES
        if name in given
    }


def _value(operation: str, name: str, value: object, max_bytes: int | None) -> Any:  # noqa: ANN401 - any JSON value
    if value is UNSET:
        return UNSET
    try:
        return admit_json(value, max_bytes=max_bytes)
    except JsonComplaint as error:
        complaint = error.complaint
    # Raised outside the handler: the complaint's traceback can reach the value.
    return refuse(operation, f"{name} {complaint}")


def _optional_time(operation: str, value: object) -> int | UnsetType:
    if value is UNSET:
        return UNSET
    admitted = safe_integer(value)
    if admitted is None:
        refuse(operation, _ATTEMPT)
    return admitted


def _label(operation: str, value: object) -> str:
    if type(value) is str and not value:
        return ""
    admitted = durable_text(value)
    if admitted is None:
        refuse(operation, _ATTEMPT)
    return admitted
