"""Handlers by name: declared with ``@handler`` in an app's ``runs`` module."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django_runstore.handlers.declaration import (
    ConcurrencyKey,
    OnNoProgress,
    admit_concurrency_key,
    admit_duration,
    admit_on_no_progress,
    admit_positive,
    admit_priority,
    admit_retries,
    admit_state_version,
    admit_text,
    check_function,
    refuse,
)
from django_runstore.handlers.handle import RunHandle
from django_runstore.handlers.retrying import Backoff, RetryPolicy
from django_runstore.handlers.submission import submit
from django_runstore.handlers.upgrading import Upgrade

if TYPE_CHECKING:
    from django_runstore.handlers.context import RunContext

HandlerFunction = Callable[["RunContext"], Any]


@dataclass(frozen=True, slots=True)
class Handler:
    """
    A registered handler. Calling it calls the function, so unit tests need no database.

    Attributes:
        name: What runs of this handler are stored under; stays when the function is moved.
        function: Takes a ``RunContext`` and returns any JSON value, the run's result.
        queue: Where its runs go unless a submission says otherwise.
        priority: The same; higher runs first.
        retries: How often its runs may fail, and how long they wait in between.
        deadline_after_ms: How long after its submission a run fails if it is not settled.
        concurrency_key: Of its runs, or a function that gives it from the state.
        concurrency_limit: How many runs of one key may be executed at once.
        state_version: Of the states that it reads and writes.
        upgrade: Brings an older state into this version.
        no_progress_after_ms: How long an execution may go without progress.
        on_no_progress: Whether it is then only told of, or stopped.
    """

    name: str
    function: HandlerFunction
    queue: str = "default"
    priority: int = 0
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    deadline_after_ms: int | None = None
    concurrency_key: ConcurrencyKey = ""
    concurrency_limit: int = 1
    state_version: int = 1
    upgrade: Upgrade | None = None
    no_progress_after_ms: int | None = None
    on_no_progress: OnNoProgress = "flag"

    def __call__(self, run: "RunContext") -> Any:  # noqa: ANN401 - any JSON value
        """Call the function."""
        return self.function(run)

    def submit(
        self,
        state: Any = None,  # noqa: ANN401 - any JSON value
        *,
        run_id: str | None = None,
        queue: str | None = None,
        priority: int | None = None,
        available_at_ms: int | None = None,
        deadline_at_ms: int | None = None,
        concurrency_key: str | None = None,
        concurrency_limit: int | None = None,
        parent_run_id: str | None = None,
        using: str | None = None,
    ) -> RunHandle:
        """
        Store a run of this handler, in the caller's transaction when there is one.

        Args:
            state: Any JSON value; the handler finds it as ``run.state``.
            run_id: Yours to choose; submitting an id again gives the run that is there.
                A new, time-ordered one by default.
            queue, priority: Instead of the handler's.
            available_at_ms: Not before this time, in milliseconds since the Unix epoch.
            deadline_at_ms: A run that is not settled by then fails; instead of the handler's
                ``deadline_after_ms``.
            concurrency_key, concurrency_limit: Instead of the handler's; an empty key for no
                limit.
            parent_run_id: An existing run this one descends from.
            using: Database alias; where the routers send writes of runs by default.

        Raises:
            InvalidValue: the state cannot be stored.
            InvalidRun: another argument breaks the store's contract.
            RunIdTaken: the id belongs to a run of another handler.
            RunConstraint: the parent does not exist.
            RunPersistenceFailed: the database failed.
        """
        if concurrency_key is None:
            named = self.concurrency_key
            concurrency_key = named(state) if callable(named) else named
        return submit(
            self.name,
            state,
            run_id=run_id,
            queue=self.queue if queue is None else queue,
            priority=self.priority if priority is None else priority,
            available_at_ms=available_at_ms,
            deadline_at_ms=deadline_at_ms,
            deadline_after_ms=self.deadline_after_ms,
            concurrency_key=concurrency_key,
            concurrency_limit=self.concurrency_limit
            if concurrency_limit is None
            else concurrency_limit,
            state_version=self.state_version,
            parent_run_id=parent_run_id,
            using=using,
        )


class Registry:
    """All handlers of this process."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._lock = threading.Lock()

    def add(self, handler: Handler) -> None:
        """
        Register a handler.

        Raises:
            InvalidHandler: the name is taken by another function.
        """
        with self._lock:
            known = self._handlers.get(handler.name)
            # The same function may come again: a module that is reloaded.
            if known is not None and _place(known.function) != _place(handler.function):
                refuse(
                    f"handler name {handler.name!r} is taken by {_place(known.function)}", "name"
                )
            self._handlers[handler.name] = handler

    def get(self, name: str) -> Handler | None:
        """Give the handler of this name, if this process knows it."""
        return self._handlers.get(name)

    def names(self) -> frozenset[str]:
        """Give the names of all handlers that this process knows."""
        return frozenset(self._handlers)

    def state_versions(self) -> dict[str, int]:
        """Give for each handler that this process knows the newest state that it reads."""
        return {name: known.state_version for name, known in list(self._handlers.items())}


registry: Final = Registry()


def handler(
    name: str,
    *,
    queue: str = "default",
    priority: int = 0,
    max_attempts: int = 1,
    backoff: Backoff | None = None,
    deadline_after_ms: int | None = None,
    concurrency_key: ConcurrencyKey = "",
    concurrency_limit: int = 1,
    state_version: int = 1,
    upgrade: Upgrade | None = None,
    no_progress_after_ms: int | None = None,
    on_no_progress: OnNoProgress = "flag",
) -> Callable[[HandlerFunction], Handler]:
    """
    Declare a function as the handler of runs called ``name``.

    Example::

        @handler("report.monthly", queue="reports")
        def monthly(run): ...


        monthly.submit({"month": "2026-10"}, run_id="report-2026-10")

    The decorated name is a ``Handler``: ``monthly.submit(...)`` stores a run, while
    ``monthly(run)``, or ``monthly.function(run)``, calls the function with whatever a unit
    test has for a context.

    Args:
        name: What its runs are stored under; keep it when the function moves.
        queue, priority: Of its runs, unless a submission says otherwise.
        max_attempts: How many executions of a run may end with an exception. By default the
            first one fails the run: only the author knows whether doing it again does harm.
        backoff: How long a run waits after a failure, in milliseconds: a number, one number
            per failure, or a function of the number of failures. ``ExponentialBackoff()`` by
            default: about 1 s, 2 s, 4 s and so on up to 15 minutes.
        deadline_after_ms: A run that is not settled this long after its submission fails.
        concurrency_key: Runs with the same key are executed ``concurrency_limit`` at once at
            the most, wherever their supervisors are. A text, or a function that gives one from
            the submitted state; empty for no such limit.
        concurrency_limit: 1 or more.
        state_version: 1 or more; raise it when the shape of the state changes. Runs whose
            state is of a newer version are left for a newer release.
        upgrade: From version 2 on: ``upgrade(state, version)`` returns a state of an older
            version in this one. It is called before the handler, and its result is stored.
            A run whose upgrade raises is parked with the error.
        no_progress_after_ms: An execution that makes no progress for so long (no completed
            step, no ``save()`` or ``progress()``) is told of in its journal and in the log.
        on_no_progress: ``"stop"`` to stop it as well, which counts as a failure.

    Raises:
        InvalidHandler: the name or the queue is not durable text, the name is taken, a number
            is out of its range, the backoff is none, or the function is not a plain one.
    """
    make = partial(
        Handler,
        admit_text(
            name, "name", "a handler's name must be well-formed durable text, as in @handler('a.b')"
        ),
        queue=admit_text(queue, "queue", "a queue must be well-formed durable text"),
        priority=admit_priority(priority),
        retries=admit_retries(max_attempts, backoff),
        deadline_after_ms=admit_duration(deadline_after_ms, "deadline_after_ms"),
        concurrency_key=admit_concurrency_key(concurrency_key),
        concurrency_limit=admit_positive(concurrency_limit, "concurrency_limit"),
        state_version=admit_state_version(state_version, upgrade),
        upgrade=upgrade,
        no_progress_after_ms=admit_duration(no_progress_after_ms, "no_progress_after_ms"),
        on_no_progress=admit_on_no_progress(on_no_progress),
    )

    def declare(function: HandlerFunction) -> Handler:
        check_function(function)
        declared = make(function)
        registry.add(declared)
        return declared

    return declare


def _place(function: HandlerFunction) -> str:
    name = getattr(function, "__qualname__", type(function).__name__)
    return f"{getattr(function, '__module__', '?')}.{name}"
