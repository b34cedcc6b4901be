"""What a handler is given: its run, under its fence. Spec: design 8."""

from typing import Any, Final

from django_runstore.durable import durable_text, encode_json, parse_json_text
from django_runstore.handlers.errors import InvalidValue
from django_runstore.handlers.interruption import RunInterrupted
from django_runstore.handlers.lease import OwnershipSignal
from django_runstore.handlers.values import encode_value
from django_runstore.models import Run
from django_runstore.outcomes import FenceLost, HeartbeatOutcome, NotFound, TransitionOutcome
from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.snapshots import RunRow
from django_runstore.states import RunStatus

_LONGEST_MESSAGE: Final = 500


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
    def cancel_requested(self) -> bool:
        """
        Whether somebody asked the run to stop; reads one row.

        For handlers that clean up before they stop; ``check()`` stops by itself.
        """
        if self._signal.expired():
            raise RunInterrupted("lease_lapsed")
        reason = self._signal.stop_reason()
        if reason == "cancelled":
            return True
        if reason is not None:
            raise RunInterrupted(reason)
        runs = Run.objects.using(self._store.using).filter(pk=self.run_id)
        return runs.filter(cancel_requested_at_ms__isnull=False).exists()

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
        """
        self.check()
        text = encode_value("save", "state", state)
        outcome = self._store.transition_owned(
            self.run_id, self._owner, RunStatus.RUNNING, text, fence=self._fence
        )
        self._still_mine(outcome)
        self._note_progress(None)
        self.state = parse_json_text(text)

    def progress(self, fraction: float | None, message: str = "") -> None:
        """
        Say how far the work is, for people.

        Args:
            fraction: From 0 to 1, or ``None`` when unknown.
            message: At most 500 characters; shown in the admin, so no secrets.

        Raises:
            InvalidValue: the fraction or the message breaks these rules.
            RunInterrupted: the run should stop, or is no longer this process's.
        """
        self.check()
        detail = "must be a number from 0 to 1, or None"
        number = fraction if type(fraction) in {int, float} else None
        if (fraction is not None and number is None) or not 0 <= (number or 0) <= 1:
            raise InvalidValue("progress", detail, {"field": "fraction", "detail": detail})
        if message != "" and (durable_text(message) is None or len(message) > _LONGEST_MESSAGE):
            detail = f"must be well-formed text of at most {_LONGEST_MESSAGE} characters"
            raise InvalidValue("progress", detail, {"field": "message", "detail": detail})
        self._note_progress(encode_json({"fraction": number, "message": str(message)}))

    def _note_progress(self, progress_json: str | None) -> None:
        outcome = self._store.save_progress(
            self.run_id, self._owner, fence=self._fence, progress_json=progress_json
        )
        self._still_mine(outcome)
        self._signal.advanced()

    def _still_mine(self, outcome: TransitionOutcome | HeartbeatOutcome) -> None:
        if isinstance(outcome, FenceLost | NotFound):
            raise RunInterrupted("fence_lost")
