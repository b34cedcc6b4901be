"""How the execution of a run ended, and which transition of the run that calls for."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, assert_never

from django_runstore.handlers.execution import Completed, Failed, Interrupted
from django_runstore.snapshots import OwnedTransition, RunNote, TransitionGuard, Waiting
from django_runstore.states import RunStatus
from django_runstore.supervision.protocol import Finished
from django_runstore.unset import UNSET

WORKER_LOST: Final = "runstore.worker.lost"
PUT_BACK: Final = "runstore.run.put_back"
RETRIED: Final = "runstore.run.retried"
GIVEN_UP: Final = "runstore.run.given_up"
PARKED: Final = "runstore.run.parked"
STOPPED: Final = "runstore.run.cancelled"

UNKNOWN_HANDLER: Final = "unknown_handler"
"""The worker does not know the handler, though its supervisor does: code was replaced."""

UNREADABLE: Final = "unreadable"
"""The worker could not read the run."""

DATABASE_UNAVAILABLE: Final = "database_unavailable"
"""The handler left because the database was away."""

NOT_STARTED: Final = "not_started"
"""The worker ended before it entered the run, which is not the run's doing."""

DEADLINE_PASSED: Final = "deadline_passed"
"""The run was not settled by its deadline."""

UPGRADE: Final = "upgrade"
"""What a run waits for whose state no code here can upgrade."""

UNANSWERED: Final = "unanswered"
"""The run was claimed, and the answer of the database was lost."""

RETRY_LATER_MS: Final = 5_000
"""How long a run is left alone that would end the same way at once, so that nothing spins."""

_NO_REQUEST: Final = TransitionGuard(cancel_requested="absent")
_A_REQUEST: Final = TransitionGuard(cancel_requested="present")
_TRIED_LATER: Final = frozenset({UNKNOWN_HANDLER, UNREADABLE, DATABASE_UNAVAILABLE})


@dataclass(frozen=True, slots=True)
class WorkerExit:
    """How a worker process ended: its return code as ``subprocess`` gives it."""

    code: int

    def __str__(self) -> str:
        """Say it in words, as in ``killed by signal 9 (SIGKILL)``."""
        if self.code >= 0:
            return f"exit status {self.code}"
        try:
            name = f" ({signal.Signals(-self.code).name})"
        except ValueError:
            name = ""
        return f"killed by signal {-self.code}{name}"


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """The worker died under the run, by nobody's order."""


Outcome: TypeAlias = Completed | Failed | Interrupted | WorkerLost


@dataclass(frozen=True, slots=True)
class Ending:
    """
    The end of one execution, to be settled under the fence it ran with.

    Attributes:
        exit: How the worker ended, where the execution ended with it.
        is_unasked: The handler left as if it had been told to, and nobody had. It may do
            so each time: whoever sends its worker a signal can be the handler itself.
    """

    run_id: str
    fence: int
    outcome: Outcome
    exit: WorkerExit | None = None
    is_unasked: bool = False

    @property
    def loses_ownership(self) -> bool:
        """Whether somebody else owns the run, so that there is nothing to settle."""
        return isinstance(self.outcome, Interrupted) and self.outcome.reason == "fence_lost"


@dataclass(frozen=True, slots=True)
class RecoveryBudget:
    """How often a run has lost its worker or host since its last progress, and may."""

    used: int
    allowed: int

    @property
    def is_spent(self) -> bool:
        """Whether one more loss is one too many."""
        return self.used >= self.allowed


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """
    How often a run has failed before this time, and what its handler allows.

    Attributes:
        delay_ms: How long the run waits if it is tried again.
        deadline_at_ms: When it would fail anyway; None without a deadline.
    """

    failures: int
    max_attempts: int
    delay_ms: int
    deadline_at_ms: int | None = None

    def objection(self, now_ms: int) -> str | None:
        """Say what speaks against another attempt, as a word; None for nothing."""
        if self.failures + 1 >= self.max_attempts:
            return "max_attempts"
        if self.deadline_at_ms is not None and now_ms + self.delay_ms >= self.deadline_at_ms:
            return "deadline"
        return None


NO_RETRIES: Final = RetryBudget(failures=0, max_attempts=1, delay_ms=0)


def outcome_of(finished: Finished) -> Outcome:
    """Read the outcome that a worker reported."""
    match finished.kind:
        case "completed":
            return Completed(finished.text or "null")
        case "failed":
            text = finished.text or error_json("Unknown", "the worker gave no reason")
            return Failed(text, finished.is_final, finished.is_unreadable)
        case "interrupted":
            return Interrupted(finished.text or "stopping")
        case _ as unreachable:
            assert_never(unreachable)


def report_of(run_id: str, fence: int, outcome: Completed | Failed | Interrupted) -> Finished:
    """Write an outcome as the worker reports it."""
    match outcome:
        case Completed(result_json):
            return Finished(run_id, fence, "completed", result_json)
        case Failed(text, is_final, is_unreadable):
            return Finished(run_id, fence, "failed", text, is_final, is_unreadable)
        case Interrupted(reason):
            # A handler may raise the interruption itself, with whatever for a reason.
            return Finished(run_id, fence, "interrupted", str(reason))
        case _ as unreachable:
            assert_never(unreachable)


def first_choice(
    ending: Ending, recoveries: RecoveryBudget, retries: RetryBudget, now_ms: int
) -> OwnedTransition:
    """
    Name the transition that an ending calls for while nobody has asked to cancel the run.

    Args:
        ending: Of an execution that did not lose its ownership.
        recoveries: What is left of the run's recoveries; asked for lost workers only.
        retries: What is left of its attempts; asked for failures only.
        now_ms: The store's clock.
    """
    match ending.outcome:
        case Completed(result_json):
            return _to(ending, RunStatus.COMPLETED, guard=_NO_REQUEST, result_json=result_json)
        case Failed(text, is_unreadable=True):
            # Not failed: the next release may read it, and then somebody wakes it.
            return _to(
                ending,
                RunStatus.SUSPENDED,
                guard=_NO_REQUEST,
                error_json=text,
                available_at_ms=None,
                waiting=Waiting(UPGRADE),
                note=RunNote(PARKED, {"reason": UPGRADE}),
            )
        case Failed():
            return _after_failure(ending, ending.outcome, retries, now_ms)
        case Interrupted("cancelled"):
            return _to(ending, RunStatus.CANCELLED, guard=_A_REQUEST, note=_stopped(ending))
        case Interrupted("deadline_passed") if not ending.is_unasked:
            text = error_json("DeadlinePassed", "the run was not settled by its deadline")
            return _to(ending, RunStatus.FAILED, guard=_NO_REQUEST, error_json=text)
        case Interrupted(reason):
            spins = ending.is_unasked or reason in _TRIED_LATER
            later = now_ms + RETRY_LATER_MS if spins else UNSET
            note = RunNote(PUT_BACK, {"reason": reason, **_exit_payload(ending)})
            return _to(
                ending, RunStatus.SUSPENDED, guard=_NO_REQUEST, available_at_ms=later, note=note
            )
        case WorkerLost():
            return _after_loss(ending, recoveries)
        case _ as unreachable:
            assert_never(unreachable)


def second_choice(ending: Ending, now_ms: int) -> OwnedTransition:
    """Name the transition after the guard of the first one refused it."""
    if ending.outcome == Interrupted("cancelled"):
        # Stopped for a request that is not there: nothing speaks against another execution,
        # but a handler that says so by itself would say it again at once.
        later = now_ms + RETRY_LATER_MS if ending.is_unasked else UNSET
        note = RunNote(PUT_BACK, {"reason": "cancelled", **_exit_payload(ending)})
        return _to(ending, RunStatus.SUSPENDED, available_at_ms=later, note=note)
    failed = ending.outcome if isinstance(ending.outcome, Failed) else None
    return _to(
        ending,
        RunStatus.CANCELLED,
        guard=_A_REQUEST,
        error_json=None if failed is None else failed.error_json,
        counts_failure=failed is not None and not failed.is_unreadable,
        note=_stopped(ending),
    )


def last_choice(ending: Ending, complaint: str) -> OwnedTransition:
    """Fail a run whose outcome the store refuses to take; the reason itself can be stored."""
    text = error_json("UnstorableOutcome", f"the outcome could not be stored: {complaint}")
    return _to(ending, RunStatus.FAILED, error_json=text, counts_failure=True)


def error_json(kind: str, message: str) -> str:
    """Write an error of the supervision in the shape of a handler's."""
    return json.dumps({"type": kind, "message": message, "traceback": []})


def _after_failure(
    ending: Ending, failed: Failed, retries: RetryBudget, now_ms: int
) -> OwnedTransition:
    failures = retries.failures + 1
    objection = "not_retryable" if failed.is_final else retries.objection(now_ms)
    if objection is None:
        told: dict[str, str | int | bool | None] = {
            "failures": failures,
            "max_attempts": retries.max_attempts,
            "delay_ms": retries.delay_ms,
        }
        return _to(
            ending,
            RunStatus.SUSPENDED,
            guard=_NO_REQUEST,
            error_json=failed.error_json,
            available_at_ms=now_ms + retries.delay_ms,
            counts_failure=True,
            note=RunNote(RETRIED, told),
        )
    limits: dict[str, str | int | bool | None] = {
        "failures": failures,
        "max_attempts": retries.max_attempts,
        "because": objection,
    }
    # Unguarded: what went wrong is worth more than that it was to be cancelled.
    return _to(
        ending,
        RunStatus.FAILED,
        error_json=failed.error_json,
        counts_failure=True,
        note=RunNote(GIVEN_UP, limits),
    )


def _after_loss(ending: Ending, budget: RecoveryBudget) -> OwnedTransition:
    payload = _exit_payload(ending)
    note = RunNote(WORKER_LOST, {**payload, "recoveries": budget.used + 1})
    if not budget.is_spent:
        return _to(ending, RunStatus.SUSPENDED, guard=_NO_REQUEST, counts_recovery=True, note=note)
    message = (
        f"the run lost its worker or host {budget.used + 1} times without progress in between, "
        f"most recently to {ending.exit or 'an unknown end'}; RUNSTORE['MAX_RECOVERIES'] is "
        f"{budget.allowed}"
    )
    return _to(
        ending,
        RunStatus.FAILED,
        guard=_NO_REQUEST,
        error_json=error_json("WorkerLost", message),
        counts_recovery=True,
        note=note,
    )


def _stopped(ending: Ending) -> RunNote:
    """Say when the run stopped: the time of the entry. Asked and seen have times of their own."""
    return RunNote(STOPPED, _exit_payload(ending))


def _exit_payload(ending: Ending) -> dict[str, str | int | bool | None]:
    if ending.exit is None:
        return {}
    return {"exit_status": ending.exit.code, "exit": str(ending.exit)}


def _to(ending: Ending, status: RunStatus, **details: Any) -> OwnedTransition:
    return OwnedTransition(ending.run_id, ending.fence, status, **details)
