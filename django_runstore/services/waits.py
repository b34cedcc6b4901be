"""What a run waits for, as the four columns that are written and cleared together."""

from collections.abc import Mapping
from typing import Any, Final

from django_runstore.services import arguments
from django_runstore.snapshots import Waiting

NOT_WAITING: Final[Mapping[str, Any]] = {
    "waiting_reason": None,
    "waiting_wake_at_ms": None,
    "waiting_token": None,
    "waiting_request": None,
}


def waiting_columns(operation: str, wait: object) -> dict[str, Any]:
    """Check a wait and spell it as columns, all four of them."""
    reason, wake_at_ms, token, request_json = arguments.fields(
        operation,
        wait,
        Waiting,
        "waiting",
        "must be an inert waiting record",
        ("reason", "wake_at_ms", "token", "request_json"),
    )
    return {
        "waiting_reason": arguments.indexed_text(operation, reason, "waiting.reason"),
        "waiting_wake_at_ms": arguments.optional_timestamp(
            operation, wake_at_ms, "waiting.wake_at_ms"
        ),
        "waiting_token": (
            None if token is None else arguments.text(operation, token, "waiting.token")
        ),
        "waiting_request": arguments.optional_json(operation, request_json, "waiting.request_json"),
    }
