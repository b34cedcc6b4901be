"""Settle what ended: each run under its fence, again after a database failure, never twice."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final, assert_never

from django.db import Error as DjangoError

from django_runstore import conf
from django_runstore.db.boundary import drop_lost_connection
from django_runstore.db.lock_wait import bounded_lock_wait
from django_runstore.display_text import printable
from django_runstore.errors import RunNotFound, RunPersistenceFailed, RunStoreError
from django_runstore.handlers import registry
from django_runstore.handlers.execution import Failed
from django_runstore.handlers.retrying import RetryPolicy
from django_runstore.outcomes import FenceLost, GuardFailed, NotFound, Transitioned
from django_runstore.supervision.announcements import counted
from django_runstore.supervision.endings import (
    NO_RETRIES,
    Ending,
    RecoveryBudget,
    RetryBudget,
    WorkerLost,
    first_choice,
    last_choice,
    second_choice,
)
from django_runstore.supervision.pauses import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_runstore.outcomes import TransitionOutcome
    from django_runstore.owners import OwnerId
    from django_runstore.services import RunStore
    from django_runstore.snapshots import OwnedTransition

logger = logging.getLogger(__name__)

SHORTEST_RETRY_MS: Final = 100
LONGEST_RETRY_MS: Final = 5_000


class Choice(Enum):
    """Which transition of an ending is tried."""

    FIRST = "first"
    AFTER_GUARD = "after_guard"
    UNSTORABLE = "unstorable"


@dataclass(frozen=True, slots=True)
class Settlement:
    """
    What became of an ending.

    Attributes:
        status: What the run is now, or None when it was somebody else's or cannot be settled.
        maybe_ours: The database failed before: an earlier attempt may have got through
            without an answer, so that a lost fence need not mean another owner.
    """

    ending: Ending
    status: str | None
    maybe_ours: bool = False


@dataclass(slots=True)
class _Pending:
    ending: Ending
    choice: Choice = Choice.FIRST
    complaint: str = ""
    failures: int = 0


@dataclass(slots=True)
class Settler:
    """
    Keeps every ending until its run is settled or no longer its owner's.

    Args:
        store: Where the runs are.
        owner: Who owns them.
        backoff: The pauses after failures of the database; replaced in tests.
    """

    store: RunStore
    owner: OwnerId
    backoff: Backoff = field(default_factory=lambda: Backoff(SHORTEST_RETRY_MS, LONGEST_RETRY_MS))
    _pending: dict[tuple[str, int], _Pending] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, ending: Ending) -> None:
        """Take an ending on; it is tried with the next ``attempt()``."""
        self._pending.setdefault((ending.run_id, ending.fence), _Pending(ending))

    def discard(self, run_id: str, fence: int) -> Ending | None:
        """Forget the ending of a run that is somebody else's by now."""
        pending = self._pending.pop((run_id, fence), None)
        return None if pending is None else pending.ending

    def runs(self) -> list[tuple[str, int]]:
        """List what is not settled, as pairs of run id and fence."""
        return list(self._pending)

    def attempt(self, *, may_settle: Callable[[Ending], bool] = lambda _: True) -> list[Settlement]:
        """
        Try what is due, in one transaction.

        Args:
            may_settle: Holds back a run whose ownership has to be confirmed first.

        Returns:
            What need not be tried again. A failure of the database is logged and leaves
            everything where it is, to be tried again after a pause.
        """
        if self.backoff.remaining_ms() > 0:
            return []
        done: list[Settlement] = []
        # Twice: a run that its guard refused has its other transition tried at once.
        for _ in range(2):
            due = [pending for pending in self._pending.values() if may_settle(pending.ending)]
            if not due:
                break
            done += self._try(due)
            if self.backoff.failures:
                break
        return done

    def _try(self, due: list[_Pending]) -> list[Settlement]:
        try:
            chosen = {pending.ending.run_id: self._transition(pending) for pending in due}
            # Who waits for a row here has signals to answer.
            with bounded_lock_wait(self.store.using, conf.current().lease.heartbeat_interval_ms):
                answers = self.store.transition_many(self.owner, list(chosen.values()))
        except RunNotFound:
            return self._one_by_one(due) or [self._forget(due[0], None)]
        except (RunPersistenceFailed, DjangoError, OSError) as error:
            if len(due) > 1 and failure_name(error) == "busy":
                # One row that somebody has locked must not keep the others.
                return self._one_by_one(due)
            self._postpone(due, error)
            return []
        except Exception as error:  # noqa: BLE001 - one run's fault must not hold up the others
            return self._one_by_one(due) or self._give_up(due[0], error)
        self.backoff.succeeded()
        judged = (
            self._judge(pending, chosen[pending.ending.run_id], answers[pending.ending.run_id])
            for pending in due
        )
        return [done for done in judged if done is not None]

    def _one_by_one(self, due: list[_Pending]) -> list[Settlement]:
        """Try again without company, so that the run at fault shows; nothing for a single one."""
        if len(due) == 1:
            return []
        return [done for pending in due for done in self._try([pending])]

    def _transition(self, pending: _Pending) -> OwnedTransition:
        now_ms = math.floor(self.store.clock.now_ms())
        match pending.choice:
            case Choice.FIRST:
                return first_choice(pending.ending, *self._budgets(pending.ending), now_ms)
            case Choice.AFTER_GUARD:
                return second_choice(pending.ending, now_ms)
            case Choice.UNSTORABLE:
                return last_choice(pending.ending, pending.complaint)
            case _ as unreachable:
                assert_never(unreachable)

    def _budgets(self, ending: Ending) -> tuple[RecoveryBudget, RetryBudget]:
        allowed = conf.current().max_recoveries
        if not isinstance(ending.outcome, WorkerLost | Failed):
            return RecoveryBudget(0, allowed), NO_RETRIES
        # Read now: progress since the claim has set the count of recoveries back.
        row = self.store.get(ending.run_id)
        handler = registry.get(row.handler)
        policy = RetryPolicy() if handler is None else handler.retries
        retries = RetryBudget(
            row.failure_count,
            policy.max_attempts,
            policy.delay_ms(row.failure_count + 1),
            row.deadline_at_ms,
        )
        return RecoveryBudget(row.recovery_count, allowed), retries

    def _judge(
        self, pending: _Pending, transition: OwnedTransition, answer: TransitionOutcome
    ) -> Settlement | None:
        match answer:
            case Transitioned():
                return self._forget(pending, str(transition.to_status))
            case FenceLost() | NotFound():
                return self._forget(pending, None)
            case GuardFailed():
                # Back to the first one should the request have gone away again, which only
                # another tool can have done.
                first = pending.choice is Choice.FIRST
                pending.choice = Choice.AFTER_GUARD if first else Choice.FIRST
                return None
            case _ as unreachable:
                assert_never(unreachable)

    def _forget(self, pending: _Pending, status: str | None) -> Settlement:
        ending = pending.ending
        del self._pending[ending.run_id, ending.fence]
        return Settlement(ending, status, maybe_ours=pending.failures > 0)

    def _give_up(self, pending: _Pending, error: Exception) -> list[Settlement]:
        """Fail the run instead; and should that be refused too, leave it to go stale."""
        # Only a typed error is known to carry no state.
        complaint = str(error) if isinstance(error, RunStoreError) else type(error).__name__
        logger.error(
            "run %s: its outcome could not be stored: %s",
            printable(pending.ending.run_id),
            complaint,
            extra={"run_id": pending.ending.run_id},
        )
        if pending.choice is Choice.UNSTORABLE:
            return [self._forget(pending, None)]
        pending.choice, pending.complaint = Choice.UNSTORABLE, complaint
        return self._try([pending])

    def _postpone(self, due: list[_Pending], error: Exception) -> None:
        self.backoff.failed()
        for pending in due:
            pending.failures += 1
        if self.backoff.failures == 1:
            logger.warning(
                "the database failed (%s); %s kept and tried again",
                failure_name(error),
                counted(len(self._pending), "outcome"),
            )
        drop_lost_connection(self.store.using)


def failure_name(error: BaseException) -> str:
    """Name a failure without the driver's words, which can quote rows and passwords."""
    if isinstance(error, RunStoreError):
        return str(error.detail.get("cause") or error.code)
    return type(error).__name__
