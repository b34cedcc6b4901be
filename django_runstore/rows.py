"""
Turn a stored run into a checked ``RunRow``. Spec: run-store 4.1, row decoding.

A row that these services could not have written is refused as ``decode_failed``, with
facts about its columns and never their text.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from django_runstore.durable import (
    JsonComplaint,
    admit_json_text,
    durable_text,
    is_durable_text,
    safe_integer,
)
from django_runstore.errors import RunDecodeFailed
from django_runstore.models import Run
from django_runstore.owners import OwnerId
from django_runstore.snapshots import CancelAcknowledgement, RunRow, Waiting
from django_runstore.states import RunStatus

_COULD_NOT_DECODE: Final = "could not decode run row"
_VIOLATES_INVARIANTS: Final = "run row violates durable invariants"

_TEXTS: Final = ("run_id", "queue")
_OPTIONAL_TEXTS: Final = (
    "owner_host_id",
    "owner_nonce",
    "claim_host_id",
    "claim_nonce",
    "parent_run_id",
    "lineage_id",
    "waiting_reason",
    "waiting_token",
)
_LABELS: Final = ("handler", "concurrency_key", "code_version")
_INTEGERS: Final = (
    "created_at_ms",
    "concurrency_limit",
    "fence",
    "state_version",
    "failure_count",
    "recovery_count",
)
_OPTIONAL_INTEGERS: Final = (
    "started_at_ms",
    "finished_at_ms",
    "owner_pid",
    "heartbeat_at_ms",
    "owner_fence",
    "claim_pid",
    "claimed_at_ms",
    "round_ordinal",
    "cancel_requested_at_ms",
    "available_at_ms",
    "deadline_at_ms",
    "progressed_at_ms",
    "waiting_wake_at_ms",
)
_OPTIONAL_JSON: Final = ("progress_json", "result_json", "error_json", "waiting_request")


def decode_run(operation: str, run: Run) -> RunRow:
    """
    Check every column of ``run`` and return it as a value.

    Raises:
        RunDecodeFailed: a column has a wrong type or range (detail ``stage``), or columns
            disagree with each other (detail lists which).
    """
    columns = {field.attname: getattr(run, field.attname) for field in Run._meta.concrete_fields}
    if not _fits_schema(columns):
        raise RunDecodeFailed(
            operation, _COULD_NOT_DECODE, {"run_id": run.run_id, "stage": "row-schema"}
        )
    owner = _triple(columns, "owner")
    claim = _triple(columns, "claim")
    state_valid = _is_json(columns["state_json"])
    if not (_is_consistent(columns, owner, claim) and state_valid):
        raise RunDecodeFailed(
            operation,
            _VIOLATES_INVARIANTS,
            {
                "run_id": run.run_id,
                "status": str(columns["status"]),
                "heartbeat_at_ms": columns["heartbeat_at_ms"],
                "claimed_at_ms": columns["claimed_at_ms"],
                "has_claim_columns": _any_set(columns, "claim"),
                "has_owner_columns": _any_set(columns, "owner"),
                "state_json_valid": state_valid,
            },
        )
    return _build(operation, columns, owner, claim)


def decode_waiting(operation: str, run_id: str, columns: Mapping[str, Any]) -> Waiting:
    """
    Check the four columns of a wait and return them as a value.

    Raises:
        RunDecodeFailed: a column has a wrong type or range.
    """
    reason, wake_at_ms, token, request = (
        columns[f"waiting_{part}"] for part in ("reason", "wake_at_ms", "token", "request")
    )
    if (
        is_durable_text(reason)
        and (wake_at_ms is None or safe_integer(wake_at_ms) is not None)
        and (token is None or is_durable_text(token))
        and (request is None or _is_json(request))
    ):
        return Waiting(reason, wake_at_ms, token, request)
    raise RunDecodeFailed(operation, _COULD_NOT_DECODE, {"run_id": run_id, "stage": "row-schema"})


def _fits_schema(columns: dict[str, Any]) -> bool:
    return (
        columns["status"] in RunStatus.values
        and all(is_durable_text(columns[name]) for name in _TEXTS)
        and all(columns[n] is None or is_durable_text(columns[n]) for n in _OPTIONAL_TEXTS)
        and all(columns[n] == "" or is_durable_text(columns[n]) for n in _LABELS)
        and all(safe_integer(columns[name]) is not None for name in _INTEGERS)
        and all(
            columns[n] is None or safe_integer(columns[n]) is not None for n in _OPTIONAL_INTEGERS
        )
        and type(columns["priority"]) is int
        and type(columns["state_json"]) is str
        and all(columns[n] is None or _is_json(columns[n]) for n in _OPTIONAL_JSON)
    )


def _is_json(text: object) -> bool:
    try:
        admit_json_text(text)
    except JsonComplaint:
        return False
    return True


def _any_set(columns: dict[str, Any], role: str) -> bool:
    return any(columns[f"{role}_{part}"] is not None for part in ("host_id", "pid", "nonce"))


def _triple(columns: dict[str, Any], role: str) -> OwnerId | None:
    """Give the identity when all three of its columns are set, else nothing."""
    host_id, pid, nonce = (columns[f"{role}_{part}"] for part in ("host_id", "pid", "nonce"))
    if host_id is None or pid is None or nonce is None:
        return None
    return OwnerId(host_id, pid, nonce)


def _is_consistent(columns: dict[str, Any], owner: OwnerId | None, claim: OwnerId | None) -> bool:
    return (
        _any_set(columns, "owner") == (owner is not None)
        and _any_set(columns, "claim") == (claim is not None)
        and (owner is not None) == (columns["heartbeat_at_ms"] is not None)
        and (owner is not None) == (columns["status"] == RunStatus.RUNNING)
        and (claim is not None) == (columns["claimed_at_ms"] is not None)
    )


def _acknowledgement(operation: str, run_id: str, text: str | None) -> CancelAcknowledgement | None:
    if text is None:
        return None
    try:
        value = json.loads(text)
        owner = value["owner"]
        observed_at_ms = safe_integer(value["observed_at_ms"])
        host_id, nonce = durable_text(owner["host_id"]), durable_text(owner["nonce"])
        pid = safe_integer(owner["pid"])
    except (ValueError, TypeError, KeyError, RecursionError):
        observed_at_ms = host_id = pid = nonce = None
    if observed_at_ms is not None and host_id and pid is not None and nonce:
        return CancelAcknowledgement(observed_at_ms, OwnerId(host_id, pid, nonce))
    # Raised outside the handler, so that the parser's words do not travel along.
    raise RunDecodeFailed(operation, _COULD_NOT_DECODE, {"run_id": run_id, "stage": "row-schema"})


def _build(
    operation: str, columns: dict[str, Any], owner: OwnerId | None, claim: OwnerId | None
) -> RunRow:
    plain = {
        name: columns[name]
        for name in RunRow.__dataclass_fields__
        if name in columns and name != "status"
    }
    return RunRow(
        status=RunStatus(columns["status"]),
        owner=owner,
        claim=claim,
        cancel_acknowledgement=_acknowledgement(
            operation, columns["run_id"], columns["cancel_acknowledgement_json"]
        ),
        **plain,
    )
