"""One execution of a run: who executes it, and whether it has been told to stop."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django_runstore.display_text import printable
from django_runstore.handlers.execution import Failed, Interrupted
from django_runstore.supervision.endings import (
    DEADLINE_PASSED,
    NOT_STARTED,
    UNREADABLE,
    Ending,
    WorkerLost,
    error_json,
)

if TYPE_CHECKING:
    from django_runstore.snapshots import RunRow
    from django_runstore.supervision.crew import Place
    from django_runstore.supervision.endings import Outcome
    from django_runstore.supervision.worker_process import WorkerProcess

FENCE_LOST: Final = "fence_lost"
LEASE_LAPSED: Final = "lease_lapsed"
CANCELLED: Final = "cancelled"
NO_PROGRESS: Final = "no_progress"

KILL_AFTER_MS: Final = 1_000
"""How long a handler has from SIGTERM to SIGKILL."""


@dataclass(slots=True)
class Stopping:
    """A run was told to stop: why, and when the patience ends."""

    reason: str
    terminate_at_ms: float
    kill_at_ms: float
    is_forced: bool = False
    """Whether its process was signalled, so that its death is our doing."""

    is_killed: bool = False


@dataclass(slots=True, eq=False)
class Execution:
    """One ownership of one run, and the worker that executes it."""

    run_id: str
    fence: int
    handler: str
    place: Place
    process: WorkerProcess | None
    begun_at_ms: float
    deadline_at_ms: float = math.inf
    """When the run's deadline passes, by the clock for intervals."""

    claimed_at_ms: int = 0
    """When it was claimed, by the store's clock."""

    is_started: bool = False
    is_over: bool = False
    """Whether it has ended and only waits to be settled."""

    is_lost: bool = False
    is_lapsed: bool = False
    stopping: Stopping | None = None

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from every other execution."""
        return self.run_id, self.fence

    @property
    def is_given_up(self) -> bool:
        """Whether a request to cancel the run would change nothing any more."""
        is_cancelled = self.stopping is not None and self.stopping.reason == CANCELLED
        return self.is_over or self.is_lost or self.is_lapsed or is_cancelled

    @property
    def is_stopped_by_us(self) -> bool:
        """Whether the death of its worker would be no surprise."""
        stopping = self.stopping
        return self.is_lapsed or (
            stopping is not None and (stopping.is_forced or stopping.reason == CANCELLED)
        )

    @property
    def facts(self) -> dict[str, object]:
        """What log records about it carry."""
        return {"run_id": self.run_id, "fence": self.fence, "handler": self.handler}

    def left_unasked(self, outcome: Outcome) -> bool:
        """Tell whether the handler left as if it had been told to, and nobody had."""
        if not isinstance(outcome, Interrupted) or self.stopping is not None:
            return False
        # The worker sees for itself that the lease has lapsed, and may do so first.
        return not self.is_lapsed and outcome.reason != LEASE_LAPSED

    def outcome_for(self, outcome: Outcome) -> Outcome:
        """Give what the run is settled by: to hang is a failure, as to raise is."""
        stopping = self.stopping
        if stopping is None or outcome != Interrupted(NO_PROGRESS):
            return outcome
        return Failed(error_json("NoProgress", "the run did not advance and was stopped"))

    def outcome_of_death(self) -> Interrupted | WorkerLost:
        """Say what it means for the run that the worker ended before the handler did."""
        if self.is_lapsed:
            return Interrupted(LEASE_LAPSED)
        if self.stopping is not None and self.is_stopped_by_us:
            return Interrupted(self.stopping.reason)
        return WorkerLost() if self.is_started else Interrupted(NOT_STARTED)


def reason_to_stay_out(run: RunRow, *, is_past_deadline: bool) -> str | None:
    """Say why nobody needs to enter a run that was just claimed; None when it is to begin."""
    if run.cancel_requested_at_ms is not None:
        return CANCELLED
    return DEADLINE_PASSED if is_past_deadline else None


def deadline_of(run: RunRow, confirmed_at_ms: float) -> float:
    """
    Translate the deadline of a run just claimed to the clock for intervals.

    Args:
        run: As it was claimed.
        confirmed_at_ms: ``boottime_ms()`` as read before the claim.
    """
    if run.deadline_at_ms is None or run.heartbeat_at_ms is None:
        return math.inf
    # The claim stamped its first heartbeat by the clock that deadlines are compared with.
    return confirmed_at_ms + run.deadline_at_ms - run.heartbeat_at_ms


def cannot_read(ending: Ending | None) -> bool:
    """Tell whether the worker could not read the run, though its supervisor could."""
    return ending is not None and ending.outcome == Interrupted(UNREADABLE)


def explanation_of(ending: Ending | None) -> str:
    """Say why a run ended as it did, to follow on how; empty where that says it all."""
    if ending is None:
        return ""
    match ending.outcome:
        case Interrupted(reason):
            return f" ({printable(reason)})"
        case WorkerLost():
            return f" (worker lost: {ending.exit})"
        case _:
            return ""
