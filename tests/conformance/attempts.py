"""A run that A owns, an attempt store over it, and every operation with arguments it admits."""

from dataclasses import replace
from typing import Any

from django.db import connection

from django_runstore.attempts import AttemptId, AttemptPatch, AttemptRecord, FinishAttempt
from django_runstore.models import Attempt
from django_runstore.services import AttemptStore
from tests.conformance.calls import call
from tests.conformance.world import A, World

DIGEST = "step-digest"
ID = AttemptId("run", DIGEST, 0)
RUNNING = AttemptRecord("run", DIGEST, 0, "running", 10, meta={"by": "a"})
FINISHED = FinishAttempt("run", DIGEST, 0, "succeeded", 20, outcome={"n": 1})

OPERATIONS = {
    item.operation: item
    for item in (
        call("put", owner=A, attempt=replace(RUNNING, attempt=1), fence=None),
        call("get", attempt_id=ID),
        call("latest", run_id="run", step_key_digest=DIGEST),
        call(
            "heartbeat",
            owner=A,
            run_id="run",
            step_key_digest=DIGEST,
            attempt=0,
            now_ms=12,
            checkpoint={"at": 1},
            fence=None,
        ),
        call("finish", owner=A, record=FINISHED, fence=None),
        call("patch", owner=A, attempt_id=ID, patch=AttemptPatch(outcome=1), fence=None),
    )
}

READS = ("get", "latest")
WRITES = {name: operation for name, operation in OPERATIONS.items() if name not in READS}


def opened(**options: Any) -> AttemptStore:
    """A store over a run that is running under A with fence 1, and no attempt yet."""
    World().active(A)
    return AttemptStore(**options)


def started(**options: Any) -> AttemptStore:
    """The same with one attempt in progress."""
    store = opened(**options)
    assert store.put(RUNNING, A).code == "inserted"
    return store


def rows() -> list[dict[str, Any]]:
    """Every column of every attempt there is, in the order of their ids."""
    columns = Attempt.objects.order_by("run_id", "step_key_digest", "attempt").values()
    return [{name: value for name, value in row.items() if name != "id"} for row in columns]


def write_raw(attempt: int = 0, **columns: object) -> None:
    """Set columns of an attempt by SQL."""
    assignments = ", ".join(f"{name} = %s" for name in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE runstore_attempt SET {assignments} WHERE attempt = %s",  # noqa: S608 - column names of a test
            [*columns.values(), attempt],
        )
        assert cursor.rowcount == 1
