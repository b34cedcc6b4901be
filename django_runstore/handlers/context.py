"""What a handler is given: its run, under its fence. Spec: design 8."""

from collections.abc import Callable
from typing import Any, Final, NoReturn, assert_never

from django_runstore import conf
from django_runstore.clocks import boottime_ms
from django_runstore.durable import durable_text, encode_json, parse_json_text
from django_runstore.durable.text import exact_text
from django_runstore.errors import FenceLostError, RunNotFound
from django_runstore.events import JournalEvent
from django_runstore.handlers.errors import InvalidValue
from django_runstore.handlers.idle_connection import IdleConnection
from django_runstore.handlers.interruption import RunInterrupted
from django_runstore.handlers.lease import OwnershipSignal
from django_runstore.handlers.steps import Steps
from django_runstore.handlers.values import encode_value
from django_runstore.outcomes import FenceLost, NotFound, Updated
from django_runstore.owners import OwnerId
from django_runstore.services import Journal, RunStore
from django_runstore.snapshots import RunRow

LOG_SOURCE: Final = "handler"

_LONGEST_MESSAGE: Final = 500
_FRACTION: Final = "must be a number from 0 to 1, or None"


class RunContext:
    """
    The run as its handler sees it. Every write carries owner and fence.

    Each method first looks whether the handler should stop, and then raises
    ``RunInterrupted``: let it pass.
    """

    def __init__(
        self, row: RunRow, fence: int, owner: OwnerId, store: RunStore, signal: OwnershipSignal
    ) -> None:
        self._row = row
        self._fence = fence
        self._owner = owner
        self._store = store
        self._signal = signal
        self._saw_cancel_request = False
        self._looked_at_ms = float("-inf")
        self._connection = IdleConnection(store.using)
        self._steps: Steps | None = None
        self.state: Any = parse_json_text(row.state_json)
        """The JSON value the run was submitted with, or that was last saved; yours to change."""

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self._row.run_id

    @property
    def fence(self) -> int:
        """
        The number of this ownership, higher than that of every earlier one.

        Hand it to whatever has effects outside the database, to refuse lower ones there.
        """
        return self._fence

    @property
    def state_version(self) -> int:
        """Which shape the state had when this execution began; 0 when nobody has said."""
        return self._row.state_version

    @property
    def cancel_requested(self) -> bool:
        """
        Whether somebody asked the run to stop.

        For handlers that clean up before they stop; ``check()`` stops by itself. Once true,
        ``save()`` and ``progress()`` raise as soon as the supervisor has seen the request too.

        Cheap enough for every turn of a loop: it asks the database at most once per heartbeat
        interval (``RUNSTORE["LEASE"]``), so a ``False`` may be that old.

        Raises:
            RunInterrupted: the run should stop for another reason, or is no longer this
                process's.
            RunPersistenceFailed: the database failed.
        """
        if self._signal.expired():
            raise RunInterrupted("lease_lapsed")
        reason = self._signal.stop_reason()
        if reason == "cancelled":
            return True
        if reason is not None:
            raise RunInterrupted(reason)
        if not self._saw_cancel_request:
            self._look_for_cancel_request()
        return self._saw_cancel_request

    def check(self) -> None:
        """
        Stop here if the run should stop; costs no statement.

        Raises:
            RunInterrupted: ownership is no longer confirmed, or the run was cancelled, or its
                process is about to stop.
        """
        if self._signal.expired():
            raise RunInterrupted("lease_lapsed")
        reason = self._signal.stop_reason()
        if reason is not None:
            raise RunInterrupted(reason)

    def save(self, state: Any) -> None:  # noqa: ANN401 - any JSON value
        """
        Replace the stored state: where another process goes on if this one dies.

        Args:
            state: Any JSON value. It also becomes ``run.state``.

        Raises:
            InvalidValue: the state cannot be stored; the stored one is as it was.
            RunInterrupted: the run should stop, or is no longer this process's.
            RunPersistenceFailed: the database failed; let it pass too, and the run goes on
                from its last save when the database is back.
        """
        self.check()
        text = encode_value("save", "state", state)
        self._advance(state_json=text)
        self.state = parse_json_text(text)

    def store_upgraded(self, state_json: str, state_version: int) -> None:
        """Replace the stored state by what ``upgrade`` made of it; not for handlers."""
        self.check()
        self._advance(state_json=state_json, state_version=state_version)
        self.state = parse_json_text(state_json)

    def progress(self, fraction: float | None, message: str = "") -> None:
        """
        Say how far the work is, for people. One write each: call it as often as people look.

        Args:
            fraction: From 0 to 1, or ``None`` when unknown.
            message: At most 500 characters; shown in the admin, so no secrets.

        Raises:
            InvalidValue: the fraction or the message breaks these rules.
            RunInterrupted: the run should stop, or is no longer this process's.
        """
        self.check()
        said = {"fraction": _admit_fraction(fraction), "message": _admit_message(message)}
        self._advance(progress_json=encode_json(said))

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        **kwargs: Any,
    ) -> Any:  # noqa: ANN401 - any JSON value
        """
        Call ``function(*args, **kwargs)`` and remember what it returned: once done, done.

        A step is known by its name and its inputs, never by its position: add, drop and
        reorder steps as the code grows. When the run is executed again, after a crash, a
        deploy or a takeover, a completed step is not called; what it returned then is returned
        now. One that failed, or was cut short, is called again, as the next attempt.

        So a step's *result* is recorded exactly once, and its effects outside the database
        happen at least once: a process can die between the two. Pass ``fence=run.fence`` on
        to whatever can refuse an older one. ``fence`` is no part of a step's identity.

        Args:
            name: What people see; at most 1,024 characters.
            function: A plain function. Not what is already a result: pass what computes it.
            args, kwargs: Any JSON values. They are hashed and not stored; the order of keys
                does not matter, and 1 is 1.0.

        Returns:
            The result as it is stored, so a tuple comes back as a list, the first time too.

        Raises:
            InvalidValue: name, function, inputs or result cannot be stored; ``detail`` has the
                path. A result that cannot be is recorded as the step's failure.
            RunInterrupted: the run should stop, or is no longer this process's.
            AttemptPersistenceFailed: the database failed; let it pass, as in ``save``.
            BaseException: what ``function`` raised, after it was recorded.
        """
        self.check()
        if self._steps is None:
            self._steps = Steps(
                self.run_id, self._owner, self._fence, self._store, self._signal, self._connection
            )
        result, is_new = self._steps.run(name, function, args, kwargs)
        if is_new:
            self._advance()
        return result

    def log(self, event_type: str, payload: Any = None) -> None:  # noqa: ANN401 - any JSON value
        """
        Append an entry to the run's journal, for whoever reads or follows it.

        A handler that is executed again logs again.

        Args:
            event_type: What happened, such as ``invoice.sent``.
            payload: Any JSON value; credentials in it are redacted.

        Raises:
            InvalidEvent: one of them breaks the contract; nothing was written.
            RunInterrupted: the run should stop, or is no longer this process's.
            SinkFailed: the database failed; let it pass, as in ``save``.
        """
        self.check()
        journal = Journal(self._store.using, self._store.clock, self._store.arbiter)
        event = JournalEvent(self.run_id, LOG_SOURCE, event_type, payload)
        self._connection.before_use()
        try:
            journal.emit_durable(event, self._owner, fence=self._fence)
        except FenceLostError:
            raise RunInterrupted("fence_lost") from None

    def _advance(
        self,
        *,
        state_json: str | None = None,
        state_version: int | None = None,
        progress_json: str | None = None,
    ) -> None:
        """
        Write under the fence that the work moved.

        One write for a state too: it is a save by the owner and an advance in the same row.
        """
        self._connection.before_use()
        outcome = self._store.save_progress(
            self.run_id,
            self._owner,
            fence=self._fence,
            progress_json=progress_json,
            state_json=state_json,
            state_version=state_version,
        )
        match outcome:
            case Updated():
                self._signal.advanced()
            case FenceLost() | NotFound():
                raise RunInterrupted("fence_lost")
            case unreachable:
                assert_never(unreachable)

    def _look_for_cancel_request(self) -> None:
        now_ms = boottime_ms()
        if now_ms - self._looked_at_ms < conf.current().lease.heartbeat_interval_ms:
            return
        self._looked_at_ms = now_ms
        self._connection.before_use()
        try:
            row = self._store.get(self.run_id)
        except RunNotFound:
            row = None
        # A request may be meant for whoever owns the run by now.
        if row is None or (row.owner, row.owner_fence) != (self._owner, self._fence):
            raise RunInterrupted("fence_lost")
        self._saw_cancel_request = row.cancel_requested_at_ms is not None


def _admit_fraction(fraction: object) -> float | None:
    if fraction is None:
        return None
    # A bool is a number to Python and a mistake here.
    if isinstance(fraction, bool) or not isinstance(fraction, int | float):
        _refuse("fraction", _FRACTION)
    return fraction if 0 <= fraction <= 1 else _refuse("fraction", _FRACTION)


def _admit_message(message: object) -> str:
    text = exact_text(message)
    if text is None or len(text) > _LONGEST_MESSAGE or (text and durable_text(text) is None):
        _refuse("message", f"must be well-formed text of at most {_LONGEST_MESSAGE} characters")
    return text


def _refuse(field: str, rule: str) -> NoReturn:
    raise InvalidValue("progress", f"{field} {rule}", {"field": field, "detail": rule})
