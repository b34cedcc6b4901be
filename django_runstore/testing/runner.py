"""A supervisor and its worker in the process of the test."""

from __future__ import annotations

import itertools
import math
import os
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from django.db import Error as DjangoError
from django.db import router

from django_runstore.db.failures import classify
from django_runstore.errors import RunStoreError
from django_runstore.handlers import RunFailed, registry
from django_runstore.handlers.execution import Completed, Failed, Interrupted, execute
from django_runstore.models import Run
from django_runstore.outcomes import Activated
from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.services.twin import joins_a_block
from django_runstore.snapshots import ClaimedRun
from django_runstore.states import RunStatus
from django_runstore.supervision.claims import claim_due
from django_runstore.supervision.endings import Ending
from django_runstore.supervision.pauses import Backoff
from django_runstore.supervision.settlement import LONGEST_RETRY_MS, SHORTEST_RETRY_MS, Settler
from django_runstore.supervision.sweeper import Sweeper
from django_runstore.testing.clocks import FakeClock
from django_runstore.testing.execution_in_process import ExecutionInProcess
from django_runstore.testing.future import OWNER_HOSTS, next_event_ms, turnable_clock
from django_runstore.testing.reports import EndedAs, Execution, RunnerReport
from django_runstore.testing.runner_errors import (
    BlockIsOpenError,
    NeverIdleError,
    NotClaimableError,
    UnknownHandlerError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django_runstore.handlers.execution import Outcome
    from django_runstore.supervision.sweep_report import SweptRun

_numbers: Final = itertools.count(1)


@dataclass(slots=True)
class _Notes:
    """What the report will say."""

    executions: list[Execution] = field(default_factory=list)
    swept: list[SweptRun] = field(default_factory=list)
    settled_late: list[tuple[str, RunStatus | None]] = field(default_factory=list)
    advanced_ms: float = 0
    is_cut_off: bool = False

    def report(self) -> RunnerReport:
        return RunnerReport(
            tuple(self.executions),
            tuple(self.swept),
            tuple(self.settled_late),
            self.advanced_ms,
            self.is_cut_off,
        )


class Runner:
    """
    Executes runs in this process, one after the other, on the connection of the test.

    So it works inside the transaction of a ``TestCase``, and what handlers do can be
    patched and asserted. Claims, executions, settlements and takeovers are those of
    ``runstore_supervise``; worker processes and heartbeats are left out. Every runner is an
    owner on a host of its own, so that another one can take over what it leaves.

    Args:
        using: Database alias; where the routers send writes of runs by default.
        queues: Only these queues; None for all.
        most_executions: After so many in one call something is taken to go round for ever.

    Example::

        class ReportTests(TestCase):
            def test_a_report_is_published(self):
                handle = monthly.submit({"month": "2026-10"})
                Runner().run_until_idle(raise_errors=True)
                self.assertEqual(handle.result(), {"pages": 12})
    """

    def __init__(
        self,
        using: str | None = None,
        *,
        queues: Sequence[str] | None = None,
        most_executions: int = 100,
    ) -> None:
        self.using = router.db_for_write(Run) if using is None else using
        self._queues = queues
        self._most_executions = most_executions
        self._store = RunStore(self.using)
        # Nobody waits here for a pause to be over.
        self._intervals = FakeClock()
        self._begin_anew()

    def run_until_idle(
        self, *, advance_clock: bool = False, raise_errors: bool = False
    ) -> RunnerReport:
        """
        Execute what is due until nothing is, and take over what dead owners left.

        In a ``TestCase``, whose transaction never commits, the ``on_commit()`` callbacks of a
        handler run at its next step or its end. Those of the code under test are for
        ``captureOnCommitCallbacks(execute=True)``, as in any test.

        Args:
            advance_clock: Where nothing is due, turn the ``FakeClock`` on to what is due
                next, a delayed run or an owner that has gone silent, and go on.
            raise_errors: Once a failed run is settled, raise what its handler raised.

        Raises:
            UnknownHandlerError: a run is due whose handler was not declared here. Runs
                without a handler are left to whoever made them.
            NeverIdleError: there were more than ``most_executions``.
            BlockIsOpenError: called inside an atomic block.
            TypeError: ``advance_clock`` without a ``FakeClock``.
        """
        self._refuse_blocks()
        clock = turnable_clock(self._store.clock) if advance_clock else None
        notes = _Notes()
        try:
            while not self._turn(notes, stops_at_errors=raise_errors):
                target_ms = None if clock is None else next_event_ms(self.using, self._now_ms())
                if clock is None or target_ms is None:
                    break
                advance_ms = target_ms - self._store.clock.now_ms()
                clock.advance(advance_ms)
                notes.advanced_ms += advance_ms
        except (RunStoreError, DjangoError, OSError) as error:
            if classify(error) != "io":
                raise
            # A supervisor would try again until the database is back.
            notes.is_cut_off = True
        if raise_errors:
            for execution in notes.executions:
                self._raise_error_of(execution)
        return notes.report()

    def run_once(self, run_id: str, *, raise_errors: bool = False) -> Execution:
        """
        Execute this run now, whatever it waits for, and nothing else.

        Args:
            raise_errors: Once the run is settled, raise what its handler raised.

        Raises:
            RunNotFound: there is no such run.
            UnknownHandlerError: its handler was not declared here, or for older states only.
            NotClaimableError: it is settled, or somebody has it.
            BlockIsOpenError: called inside an atomic block.
            RunPersistenceFailed: the database failed before the handler was entered.
        """
        self._refuse_blocks()
        row = self._store.get(run_id)
        handler = registry.get(row.handler)
        if handler is None:
            raise _unknown(run_id, row.handler)
        if row.state_version > handler.state_version:
            raise UnknownHandlerError(
                f"run {run_id} has a state of version {row.state_version}, and the handler "
                f"{row.handler!r} reads none above {handler.state_version}"
            )
        self._store.wake(run_id)
        row = self._store.get(run_id)
        owned = self._store.claim_and_own(run_id, row, self.owner)
        if not isinstance(owned, Activated):
            raise NotClaimableError(f"run {run_id} is {row.status}: {owned.code}")
        claimed = ClaimedRun(self._store.get(run_id), owned.fence)
        execution = self._execute(claimed, _Notes())
        if raise_errors:
            self._raise_error_of(execution)
        return execution

    # --- turns --------------------------------------------------------------------

    def _turn(self, notes: _Notes, *, stops_at_errors: bool) -> bool:
        """Do all there is to do at this time; True when that is the end of the call."""
        self._settle_late(notes)
        notes.swept += self._look_for_the_dead()
        while claimed := self._claim(notes):
            execution = self._execute(claimed, notes)
            notes.executions.append(execution)
            if len(self._settler):
                notes.is_cut_off = True
                return True
            if stops_at_errors and execution.ended == "failed":
                return True
        return False

    def _claim(self, notes: _Notes) -> ClaimedRun | None:
        due = Run.objects.using(self.using).claimable(self._now_ms()).exclude(handler="")
        if self._queues is not None:
            due = due.filter(queue__in=self._queues)
        unknown = due.exclude(handler__in=registry.names()).values_list("pk", "handler").first()
        if unknown is not None:
            raise _unknown(*unknown)
        if len(notes.executions) >= self._most_executions and due.exists():
            raise NeverIdleError(
                f"there is more to do after {self._most_executions} executions; "
                f"a larger most_executions allows for more"
            )
        return next(iter(claim_due(self._store, self.owner, 1, self._queues)), None)

    def _look_for_the_dead(self) -> tuple[SweptRun, ...]:
        """Sweep as a sweeper does that has watched for long enough."""
        watched = FakeClock()
        sweeper = Sweeper(self.using, self.owner, store=self._store, read_ms=watched.now_ms)
        sweeper.sweep_once()
        watched.advance(sweeper.patience_ms)
        return sweeper.sweep_once().runs

    # --- one run ------------------------------------------------------------------

    def _execute(self, claimed: ClaimedRun, notes: _Notes) -> Execution:
        run = claimed.run
        execution = ExecutionInProcess(self._store, self.owner, run, claimed.fence)
        try:
            outcome = self._outcome_of(execution)
        finally:
            execution.bury()
        if execution.is_dead:
            # Whoever comes next is another process.
            self._begin_anew()
            return _told(execution, "died", None)
        execution.commit_hooks.run()
        is_unasked = isinstance(outcome, Interrupted) and not execution.was_told_to_stop
        ending = Ending(run.run_id, claimed.fence, outcome, is_unasked=is_unasked)
        status = None if ending.loses_ownership else self._settle(ending, notes)
        match outcome:
            case Completed():
                return _told(execution, "completed", status)
            case Failed():
                return _told(execution, "failed", status)
            case Interrupted(reason):
                return _told(execution, "interrupted", status, reason)

    def _outcome_of(self, execution: ExecutionInProcess) -> Outcome:
        reason = execution.stays_out()
        if reason is not None:
            return Interrupted(reason)
        handler = registry.get(execution.run.handler)
        assert handler is not None, "only runs of known handlers are claimed"
        return execute(execution.watched(handler), execution.context())

    def _settle(self, ending: Ending, notes: _Notes) -> RunStatus | None:
        self._settler.add(ending)
        return self._settle_late(notes, asked=ending)

    def _settle_late(self, notes: _Notes, asked: Ending | None = None) -> RunStatus | None:
        """Settle what can be; the status of the run that is asked about."""
        self._intervals.advance(LONGEST_RETRY_MS)
        status = None
        for settlement in self._settler.attempt():
            became = None if settlement.status is None else RunStatus(settlement.status)
            if settlement.ending is asked:
                status = became
            else:
                notes.settled_late.append((settlement.ending.run_id, became))
        return status

    def _raise_error_of(self, execution: Execution) -> None:
        if execution.ended != "failed":
            return
        if execution.error is not None:
            raise execution.error
        message = f"run {execution.run_id} failed: what its code returned cannot be stored"
        raise RunFailed("result", message, {"run_id": execution.run_id})

    # --- who and when -------------------------------------------------------------

    def _begin_anew(self) -> None:
        """Be another process on another host, which knows nothing of the one before."""
        host = f"{next(_numbers)}{OWNER_HOSTS}"
        self.owner = OwnerId(host, os.getpid(), secrets.token_hex(8))
        pauses = Backoff(SHORTEST_RETRY_MS, LONGEST_RETRY_MS, self._intervals.now_ms)
        self._settler = Settler(self._store, self.owner, pauses)

    def _refuse_blocks(self) -> None:
        if joins_a_block(self.using):
            raise BlockIsOpenError(
                "leave the atomic block first: no worker could see yet what is written in it"
            )

    def _now_ms(self) -> int:
        return math.floor(self._store.clock.now_ms())


def _told(
    execution: ExecutionInProcess,
    ended: EndedAs,
    status: RunStatus | None,
    reason: str | None = None,
) -> Execution:
    run = execution.run
    error = execution.error if ended == "failed" else None
    return Execution(run.run_id, run.handler, execution.fence, ended, status, reason, error)


def _unknown(run_id: str, handler: str) -> UnknownHandlerError:
    known = ", ".join(sorted(registry.names())) or "none"
    return UnknownHandlerError(
        f"run {run_id} waits for the handler {handler!r}, which nothing in this process declares; "
        f"import its module first (known: {known})"
    )
