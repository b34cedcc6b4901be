"""Store a new run, or find the one that has the id already."""

import math
from typing import Any

from django.db import router

from django_runstore.errors import RunConstraint, RunNotFound
from django_runstore.handlers.errors import RunIdTaken
from django_runstore.handlers.handle import RunHandle
from django_runstore.handlers.run_ids import new_run_id
from django_runstore.handlers.values import encode_value
from django_runstore.models import Run
from django_runstore.services import RunStore

_OPERATION = "submit"


def submit(
    handler: str,
    state: Any,  # noqa: ANN401 - any JSON value
    *,
    run_id: str | None,
    queue: str,
    priority: int,
    available_at_ms: int | None,
    deadline_at_ms: int | None,
    deadline_after_ms: int | None,
    concurrency_key: str,
    concurrency_limit: int,
    state_version: int,
    parent_run_id: str | None,
    using: str | None,
) -> RunHandle:
    """Insert the run; when the id is taken, give a handle to the run that has it."""
    alias = router.db_for_write(Run) if using is None else using
    text = encode_value(_OPERATION, "state", state)
    identifier = new_run_id() if run_id is None else run_id
    store = RunStore(using=alias)
    if deadline_at_ms is None and deadline_after_ms is not None:
        deadline_at_ms = math.floor(store.clock.now_ms()) + deadline_after_ms
    try:
        store.create(
            identifier,
            text,
            handler=handler,
            queue=queue,
            priority=priority,
            available_at_ms=available_at_ms,
            deadline_at_ms=deadline_at_ms,
            concurrency_key=concurrency_key,
            concurrency_limit=concurrency_limit,
            state_version=state_version,
            parent_run_id=parent_run_id,
        )
    except RunConstraint as error:
        # Insert first and look afterwards: of two processes that submit one id at once, the
        # loser finds the winner's row.
        constraint = error
    else:
        return RunHandle(identifier, using=alias)
    try:
        known = store.get(identifier)
    except RunNotFound:
        # Not the id, then: the parent does not exist.
        raise constraint from constraint.__cause__
    if known.handler != handler:
        rule = f"run id belongs to a run of handler {known.handler!r}, not {handler!r}"
        raise RunIdTaken(_OPERATION, rule, {"run_id": identifier, "field": "run_id"})
    return RunHandle(identifier, using=alias)
