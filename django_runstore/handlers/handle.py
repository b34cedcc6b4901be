"""A run as its submitter sees it: how it stands, what came out, and a way to stop it."""

import math
import random
import time
from typing import Any, Final

from django.db import router

from django_runstore.db.boundary import is_nested
from django_runstore.durable import parse_json_text
from django_runstore.handlers.errors import InvalidValue, RunCancelled, RunFailed, RunUnfinished
from django_runstore.models import Run
from django_runstore.outcomes import CancelOutcome
from django_runstore.services import RunStore
from django_runstore.snapshots import RunRow
from django_runstore.states import RunStatus, is_terminal_run_status

_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0

_WITHOUT_RESULT: Final = {RunStatus.FAILED: RunFailed, RunStatus.CANCELLED: RunCancelled}


class RunHandle:
    """
    A reference to a run by its id; each property reads the row anew.

    Args:
        run_id: The id of the run.
        using: Database alias; where the routers send writes of runs by default.
    """

    def __init__(self, run_id: str, *, using: str | None = None) -> None:
        self.run_id = run_id
        self._store = RunStore(using=router.db_for_write(Run) if using is None else using)

    def __repr__(self) -> str:
        """Show the id."""
        return f"RunHandle({self.run_id!r})"

    @property
    def row(self) -> RunRow:
        """The whole run. Raises ``RunNotFound`` when there is none."""
        return self._store.get(self.run_id)

    @property
    def status(self) -> RunStatus:
        """Where the run stands."""
        return self.row.status

    @property
    def state(self) -> Any:  # noqa: ANN401 - any JSON value
        """The last saved state."""
        return parse_json_text(self.row.state_json)

    @property
    def progress(self) -> Any:  # noqa: ANN401 - a JSON object or None
        """What the handler last said: ``{"fraction": ..., "message": ...}``, or ``None``."""
        return _parsed(self.row.progress_json)

    @property
    def error(self) -> Any:  # noqa: ANN401 - a JSON object or None
        """Why it failed: ``{"type": ..., "message": ..., "traceback": [...]}``, or ``None``."""
        return _parsed(self.row.error_json)

    def result(self) -> Any:  # noqa: ANN401 - any JSON value
        """
        Give what the handler returned.

        Raises:
            RunUnfinished: the run is not settled; ``wait()`` for it.
            RunFailed: it failed; ``error`` says why.
            RunCancelled: it was stopped on request.
            RunNotFound: there is no such run.
        """
        row = self.row
        if row.status == RunStatus.COMPLETED:
            return _parsed(row.result_json)
        kind = _WITHOUT_RESULT.get(row.status, RunUnfinished)
        detail = {"run_id": row.run_id, "status": str(row.status)}
        raise kind("result", f"run {row.run_id} is {row.status}", detail)

    def cancel(self) -> CancelOutcome:
        """
        Ask the run to stop; the handler is interrupted at its next save, progress or check.

        Returns:
            As ``RunStore.request_cancel``.
        """
        return self._store.request_cancel(self.run_id)

    def wait(self, timeout: float) -> RunStatus:
        """
        Wait until the run is settled and give its status.

        Args:
            timeout: Seconds; 0 looks once.

        Raises:
            RunUnfinished: it was not settled in time, or the call is inside an atomic block
                (or with autocommit off): a run submitted there cannot begin before the
                block is left, and a snapshot never shows what others do meanwhile.
            InvalidValue: the timeout is not a number of seconds.
            RunNotFound: there is no such run.
        """
        if type(timeout) not in {int, float} or math.isnan(timeout) or timeout < 0:
            rule = "must be a number of seconds, 0 or more"
            raise InvalidValue("wait", f"timeout {rule}", {"field": "timeout", "detail": rule})
        if is_nested(self._store.using):
            rule = "cannot wait inside an atomic block; the run begins when it is left"
            raise RunUnfinished("wait", rule, {"run_id": self.run_id, "detail": rule})
        deadline = time.monotonic() + timeout
        pause = _FIRST_PAUSE_S
        while not is_terminal_run_status(status := self.status):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                detail = {"run_id": self.run_id, "status": str(status)}
                rule = f"run {self.run_id} is {status} after {timeout} s"
                raise RunUnfinished("wait", rule, detail)
            # Jittered, so that many waiters do not ask in step.
            time.sleep(min(random.uniform(pause / 2, pause), remaining))  # noqa: S311 - no secret
            pause = min(pause * 2, _LONGEST_PAUSE_S)
        return status


def _parsed(text: str | None) -> Any:  # noqa: ANN401 - any JSON value
    return None if text is None else parse_json_text(text)
