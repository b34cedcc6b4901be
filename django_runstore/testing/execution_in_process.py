"""One execution in the process of the test: what it is told, and how it dies."""

from __future__ import annotations

import inspect
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

from django.db import Error as DjangoError
from django.db import connections

from django_runstore.errors import RunStoreError
from django_runstore.handlers.context import RunContext
from django_runstore.supervision.endings import DEADLINE_PASSED
from django_runstore.supervision.execution import CANCELLED, reason_to_stay_out
from django_runstore.supervision.owned_rows import cancel_requests
from django_runstore.testing.commit_hooks import CommitHooks
from django_runstore.testing.moments import Moment, reach
from django_runstore.testing.unreachable_database import unreachable

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_runstore.handlers.registry import Handler
    from django_runstore.owners import OwnerId
    from django_runstore.services import RunStore
    from django_runstore.snapshots import RunRow

P = ParamSpec("P")
R = TypeVar("R")


class ProcessDied(BaseException):
    """Takes the place of a SIGKILL: the process of this handler is no more."""


class ExecutionInProcess:
    """
    The ownership of one execution, as ``RunContext`` asks for it.

    A request to cancel, or a deadline that has passed, is seen at the very next look: there
    is no supervisor beside the handler that would see it within a poll.
    """

    def __init__(self, store: RunStore, owner: OwnerId, run: RunRow, fence: int) -> None:
        self.run = run
        self.fence = fence
        self.commit_hooks = CommitHooks()
        self.is_dead = False
        self.error: BaseException | None = None
        """What the handler raised."""

        self._store = store
        self._owner = owner
        self._stop_reason: str | None = None
        self._aftermath = ExitStack()

    @property
    def using(self) -> str:
        """The alias of its database."""
        return self._store.using

    @property
    def was_told_to_stop(self) -> bool:
        """Whether the handler had a reason to leave."""
        return self._stop_reason is not None

    def stays_out(self) -> str | None:
        """Say why the handler need not be entered; None when it is to be."""
        late = self._is_past_deadline()
        self._stop_reason = reason_to_stay_out(self.run, is_past_deadline=late)
        return self._stop_reason

    def context(self) -> RunContext:
        """Make what the handler is given."""
        return _WatchedContext(self, self._owner, self._store)

    def watched(self, handler: Handler) -> Handler:
        """Make a handler that does the same, and leaves here what it raised."""

        def enter(context: RunContext) -> Any:  # noqa: ANN401 - any JSON value
            reach(Moment("entered"), self)
            return handler.function(context)

        upgrade = handler.upgrade and self._noting_errors(handler.upgrade)
        return replace(handler, function=self._noting_errors(enter), upgrade=upgrade)

    def _noting_errors(self, function: Callable[P, R]) -> Callable[P, R]:
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                self.error = error
                raise

        return call

    def die(self) -> NoReturn:
        """
        End as a process does that is killed.

        Python still unwinds the handler, with its ``finally`` and ``except`` blocks. None
        of them gets anything into a database any more.
        """
        self.is_dead = True
        self._aftermath.enter_context(unreachable(connections))
        raise ProcessDied

    def bury(self) -> None:
        """Give the databases back to the living, without what the dead would have committed."""
        self._aftermath.close()
        if self.is_dead:
            self.commit_hooks.drop()

    # --- as OwnershipSignal -------------------------------------------------------

    def expired(self) -> bool:
        """Tell that the ownership holds: a frozen owner, too, finds out by its next write."""
        if self.is_dead:
            raise ProcessDied
        return False

    def stop_reason(self) -> str | None:
        """Look at the deadline and for a request to cancel, as a supervisor does."""
        if self._stop_reason is None:
            try:
                self._stop_reason = self._reason_to_stop()
            except (RunStoreError, DjangoError, OSError):
                # A supervisor would look again, and the handler know nothing of it.
                return None
        return self._stop_reason

    def advanced(self) -> None:
        """Take note of progress; the store keeps it."""

    def _reason_to_stop(self) -> str | None:
        if cancel_requests(self._store.using, [self.run.run_id]):
            self._store.acknowledge_cancel(self.run.run_id, self._owner, fence=self.fence)
            return CANCELLED
        return DEADLINE_PASSED if self._is_past_deadline() else None

    def _is_past_deadline(self) -> bool:
        deadline_ms = self.run.deadline_at_ms
        return deadline_ms is not None and self._store.clock.now_ms() >= deadline_ms


class _WatchedContext(RunContext):
    """The handler's run, with moments between its steps."""

    def __init__(self, execution: ExecutionInProcess, owner: OwnerId, store: RunStore) -> None:
        super().__init__(execution.run, execution.fence, owner, store, execution)
        self._execution = execution

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        **kwargs: Any,
    ) -> Any:  # noqa: ANN401 - any JSON value
        """Do what ``RunContext.step`` does, and let happen what is planned around it."""
        self.check()
        reach(Moment("before", name), self._execution)
        result = super().step(name, self._watched(name, function), *args, **kwargs)
        reach(Moment("after", name), self._execution)
        return result

    def _watched(self, name: str, function: Any) -> Any:  # noqa: ANN401 - what is no function too
        if not callable(function) or inspect.iscoroutinefunction(function):
            # Left as it is: the step refuses it, and says why.
            return function

        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any JSON value
            result = function(*args, **kwargs)
            reach(Moment("unrecorded", name), self._execution)
            return result

        return call
