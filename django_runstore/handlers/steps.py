"""Steps of a run: what was finished once is not done again. Spec: design 8, run-store 5."""

import inspect
import os
from collections.abc import Callable
from threading import Lock
from typing import Any, Final, NoReturn, assert_never

from django_runstore.attempts import AttemptId
from django_runstore.durable import durable_text, parse_json_text
from django_runstore.handlers.described_errors import describe_error
from django_runstore.handlers.errors import InvalidValue
from django_runstore.handlers.idle_connection import IdleConnection
from django_runstore.handlers.interruption import RunInterrupted, interruption_of
from django_runstore.handlers.lease import OwnershipSignal
from django_runstore.handlers.values import digest_value, encode_value
from django_runstore.outcomes import (
    Conflict,
    ExistingSame,
    FenceLost,
    Finished,
    Inserted,
    NotFound,
    RunMissing,
    StateChanged,
    Upserted,
)
from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.services.step_attempts import StepAttempts
from django_runstore.services.twin import joins_a_block
from django_runstore.unset import UNSET

RUNNING: Final = "running"
COMPLETED: Final = "completed"
FAILED: Final = "failed"
INTERRUPTED: Final = "interrupted"

_OPERATION: Final = "step"
_FENCE: Final = "fence"


class Steps:
    """
    The steps of one execution of a run, recorded under its owner and fence.

    Args:
        signal: Says whether ownership is still confirmed.
        connection: What the execution's statements go through.
    """

    def __init__(
        self,
        run_id: str,
        owner: OwnerId,
        fence: int,
        store: RunStore,
        signal: OwnershipSignal,
        connection: IdleConnection,
    ) -> None:
        self._run_id = run_id
        self._owner = owner
        self._fence = fence
        self._signal = signal
        self._connection = connection
        self._attempts = StepAttempts(store.using, clock=store.clock, arbiter=store.arbiter)
        self._pid = os.getpid()
        self._lock = Lock()
        self._under_way: set[str] = set()

    def run(
        self,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[Any, bool]:
        """
        Return what the step comes to, and whether it was done just now.

        Raises:
            BaseException: what the function raised, once that is recorded.
        """
        _admit(name, function)
        self._connection.before_use()
        if joins_a_block(self._attempts.using):
            # A rollback would take the record with it, but not what the step did elsewhere;
            # and in a block that an error has broken not even that error could be recorded.
            _refuse("step", "cannot be taken inside an atomic block; leave the block first")
        inputs = {key: value for key, value in kwargs.items() if key != _FENCE}
        key = digest_value(_OPERATION, "inputs", {"name": name, "args": args, "kwargs": inputs})
        with self._lock:
            if key in self._under_way:
                _refuse("name", "is a step that is under way with the same inputs")
            self._under_way.add(key)
        try:
            return self._once(name, key, lambda: function(*args, **kwargs))
        finally:
            with self._lock:
                self._under_way.discard(key)

    def _once(self, name: str, key: str, body: Callable[[], Any]) -> tuple[Any, bool]:
        before = self._attempts.latest(self._run_id, key)
        if before is not None and before.state == COMPLETED:
            return before.outcome, False
        if before is not None and before.state == RUNNING:
            # Whoever began it is gone, or this handler would not run: nobody finishes it.
            self._finish(AttemptId(self._run_id, key, before.attempt), INTERRUPTED)
        attempt = AttemptId(self._run_id, key, 0 if before is None else before.attempt + 1)
        self._begin(name, attempt)
        try:
            result = self._call(body)
        except KeyboardInterrupt:
            # A person wants this process to end now.
            raise
        except BaseException as error:
            if os.getpid() == self._pid:
                self._record_failure(attempt, error)
            raise
        try:
            text = encode_value(_OPERATION, "result", result)
        except InvalidValue as error:
            self._record_failure(attempt, error)
            raise
        # The stored form and not the result itself: a replay could give nothing else.
        outcome = parse_json_text(text)
        self._finish(attempt, COMPLETED, outcome=outcome)
        return outcome, True

    def _call(self, body: Callable[[], Any]) -> Any:  # noqa: ANN401 - any JSON value
        """Call the function, and see to it that what it comes to can be recorded."""
        try:
            result = body()
        finally:
            if os.getpid() == self._pid:
                self._connection.before_use()
        if os.getpid() != self._pid:
            # A process that the function forked. The step, like its connection, is the parent's.
            raise RunInterrupted("forked")
        return result

    def _begin(self, name: str, attempt: AttemptId) -> None:
        outcome = self._attempts.begin_attempt(
            attempt,
            RUNNING,
            self._owner,
            fence=self._fence,
            step_name=name,
            meta={"fence": self._fence},
        )
        match outcome:
            case Inserted() | Upserted():
                return
            case ExistingSame() | Conflict():
                # Only under the very same ownership, and by other means than these.
                _refuse("name", "is a step that somebody else recorded meanwhile")
            case FenceLost() | RunMissing():
                raise RunInterrupted("fence_lost")
            case unreachable:
                assert_never(unreachable)

    def _record_failure(self, attempt: AttemptId, error: BaseException) -> None:
        if interruption_of(error) is None:
            self._finish(attempt, FAILED, error=parse_json_text(describe_error(error)))
        else:
            # No failure, and no reason to wait for a database that may be away: should this
            # not be written, the next attempt finds it and writes it then.
            self._try_to_finish(attempt)

    def _try_to_finish(self, attempt: AttemptId) -> None:
        try:
            self._finish(attempt, INTERRUPTED)
        except Exception:  # noqa: BLE001, S110 - the interruption under way matters more
            pass
        except RunInterrupted:
            pass

    def _finish(
        self,
        attempt: AttemptId,
        state: str,
        *,
        outcome: Any = UNSET,  # noqa: ANN401 - any JSON value
        error: Any = UNSET,  # noqa: ANN401 - any JSON value
    ) -> None:
        if self._signal.expired():
            raise RunInterrupted("lease_lapsed")
        ended = self._attempts.end_attempt(
            attempt, state, self._owner, fence=self._fence, outcome=outcome, error=error
        )
        match ended:
            case Finished():
                return
            case FenceLost() | NotFound() | StateChanged():
                raise RunInterrupted("fence_lost")
            case unreachable:
                assert_never(unreachable)


def _admit(name: object, function: object) -> None:
    if durable_text(name) is None:
        _refuse("name", "must be well-formed text of 1 to 1,024 characters")
    if not callable(function) or inspect.iscoroutinefunction(function):
        _refuse("function", "must be a plain function")


def _refuse(field: str, rule: str) -> NoReturn:
    raise InvalidValue(_OPERATION, f"{field} {rule}", {"field": field, "detail": rule})
