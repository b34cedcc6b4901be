"""The runs that a supervisor owns: from the claim, by way of a worker, to the settlement."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django_runstore import conf
from django_runstore.clocks import boottime_ms
from django_runstore.display_text import printable
from django_runstore.handlers.execution import Interrupted
from django_runstore.supervision.endings import (
    DEADLINE_PASSED,
    Ending,
    outcome_of,
)
from django_runstore.supervision.execution import (
    FENCE_LOST,
    KILL_AFTER_MS,
    LEASE_LAPSED,
    Execution,
    Stopping,
    cannot_read,
    deadline_of,
    explanation_of,
    reason_to_stay_out,
)
from django_runstore.supervision.protocol import (
    Finished,
    Lapsed,
    Settled,
    Start,
    Started,
    Stop,
)
from django_runstore.supervision.recycling import RecycleRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from django_runstore.snapshots import ClaimedRun
    from django_runstore.supervision.crew import Crew, Ended, Place, Said
    from django_runstore.supervision.lease_keeper import LeaseKeeper
    from django_runstore.supervision.settlement import Settlement, Settler

logger = logging.getLogger("django_runstore.supervision")


@dataclass(slots=True)
class Executions:
    """
    Everything that happens to owned runs, except asking the database.

    Args:
        crew: The workers.
        keeper: Beats for what is owned.
        settler: Keeps what has ended until it is settled.
        read_ms: A clock for intervals; replaced in tests.
        recycle: When a worker is replaced.
        stop_grace_ms: How long a run past its deadline may take to come to a safe point.
    """

    crew: Crew
    keeper: LeaseKeeper
    settler: Settler
    read_ms: Callable[[], float] = boottime_ms
    recycle: RecycleRule = field(default_factory=RecycleRule)
    stop_grace_ms: int = field(default_factory=lambda: conf.current().stop_grace_ms)
    counts: dict[str, int] = field(default_factory=dict)
    """How many runs ended how, for the last line of the log."""

    _running: dict[tuple[str, int], Execution] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._running)

    def __contains__(self, key: object) -> bool:
        return key in self._running

    def under_way(self) -> list[Execution]:
        """List what a worker is busy with."""
        return [execution for execution in self._running.values() if not execution.is_over]

    def idle_places(self) -> list[Place]:
        """List the places whose worker has nothing to do."""
        taken = {execution.place.number for execution in self._running.values()}
        return [place for place in self.crew.places if place.can_work and place.number not in taken]

    def places_with_outcomes(self) -> list[Place]:
        """List the places whose worker waits for its outcome to be settled."""
        return [execution.place for execution in self._running.values() if execution.is_over]

    def next_deadline_in_ms(self) -> float:
        """Tell when the patience with a stopping run ends; infinite when there is none."""
        waits = [
            stopping.kill_at_ms if stopping.is_forced else stopping.terminate_at_ms
            for execution in self.under_way()
            if (stopping := execution.stopping) is not None and not stopping.is_killed
        ]
        waits += [each.deadline_at_ms for each in self.under_way() if each.stopping is None]
        return max(0.0, min(waits) - self.read_ms()) if waits else float("inf")

    # --- from claim to end ------------------------------------------------------

    def begin(self, claimed: ClaimedRun, place: Place, confirmed_at_ms: float) -> None:
        """
        Have a worker execute a claimed run.

        Args:
            confirmed_at_ms: ``boottime_ms()`` as read before the claim.
        """
        run = claimed.run
        execution = Execution(
            run.run_id,
            claimed.fence,
            run.handler,
            place,
            place.process,
            self.read_ms(),
            deadline_of(run, confirmed_at_ms),
            run.heartbeat_at_ms or 0,
        )
        self._running[execution.key] = execution
        self.keeper.hold(run.run_id, claimed.fence, place.number, confirmed_at_ms=confirmed_at_ms)
        is_past_deadline = execution.deadline_at_ms <= self.read_ms()
        reason = reason_to_stay_out(run, is_past_deadline=is_past_deadline)
        if reason is not None:
            self._end(execution, Ending(*execution.key, Interrupted(reason)))
            return
        logger.info(
            "run %s: %s executes %s under fence %d",
            printable(run.run_id),
            place.name,
            printable(run.handler),
            claimed.fence,
            extra=execution.facts,
        )
        # Refused by a worker that just died: its end is news that comes by itself.
        self.crew.send(place, Start(run.run_id, claimed.fence, place.number))

    def hear(self, said: Said) -> None:
        """Take what a worker reports; what it says of other runs than its own means nothing."""
        report = said.report
        if not isinstance(report, Started | Lapsed | Finished):
            return
        execution = self._running.get((report.run_id, report.fence))
        if execution is None or execution.is_over or execution.process is not said.process:
            logger.warning("%s reports about a run that is not its own", said.place.name)
            return
        match report:
            case Started():
                execution.is_started = said.place.was_useful = True
            case Lapsed():
                execution.is_lapsed = True
            case Finished():
                said.place.was_useful = True
                outcome = outcome_of(report)
                is_unasked = execution.left_unasked(outcome)
                settled_by = execution.outcome_for(outcome)
                ending = Ending(*execution.key, settled_by, is_unasked=is_unasked)
                self._end(execution, ending)

    def worker_ended(self, ended: Ended) -> None:
        """Take the end of a worker, which is the end of what it executed."""
        for execution in self.under_way():
            # Its process is gone from the place, and another one may be there.
            if execution.place is ended.place:
                outcome = execution.outcome_for(execution.outcome_of_death())
                ending = Ending(*execution.key, outcome, ended.exit)
                level = logging.INFO if execution.is_stopped_by_us else logging.WARNING
                logger.log(
                    level,
                    "run %s: %s is gone (%s)",
                    printable(execution.run_id),
                    ended.place.name,
                    ended.exit,
                    extra=execution.facts,
                )
                self._end(execution, ending)

    def _end(self, execution: Execution, ending: Ending) -> None:
        execution.is_over = True
        if execution.is_lost or ending.loses_ownership:
            self._close(execution, "lost")
        else:
            self.settler.add(ending)

    # --- being told to stop -----------------------------------------------------

    def stop(
        self, execution: Execution, reason: str, *, grace_ms: float, kill_after_ms: float
    ) -> None:
        """
        Tell a handler to stop, and prepare to be ignored.

        Args:
            reason: Reaches the handler as the reason of its ``RunInterrupted``.
            grace_ms: How long it may take to come to a safe point, before it is interrupted
                wherever it is and its process group gets SIGTERM.
            kill_after_ms: How long from then until SIGKILL.
        """
        now_ms = self.read_ms()
        before = execution.stopping
        terminate_at_ms = now_ms + grace_ms
        kill_at_ms = terminate_at_ms + kill_after_ms
        if before is None:
            execution.stopping = Stopping(reason, terminate_at_ms, kill_at_ms)
        else:
            # Once somebody else has the run no other reason matters.
            reason = before.reason if before.reason == FENCE_LOST else reason
            before.reason = reason
            before.terminate_at_ms = min(before.terminate_at_ms, terminate_at_ms)
            before.kill_at_ms = min(before.kill_at_ms, kill_at_ms)
        logger.info(
            "run %s: told to stop (%s)",
            printable(execution.run_id),
            reason,
            extra=execution.facts,
        )
        self.crew.send(execution.place, Stop(*execution.key, reason))
        self.enforce_stops()

    def enforce_stops(self) -> None:
        """Do what is due to runs that were told to stop and go on."""
        now_ms = self.read_ms()
        for execution in self.under_way():
            if execution.stopping is None and now_ms >= execution.deadline_at_ms:
                self._stop_for_deadline(execution)
            stopping, process = execution.stopping, execution.process
            if stopping is None or process is None:
                continue
            if not stopping.is_forced and now_ms >= stopping.terminate_at_ms:
                stopping.is_forced = True
                self.crew.send(execution.place, Stop(*execution.key, stopping.reason, urgent=True))
                process.terminate()
            if not stopping.is_killed and now_ms >= stopping.kill_at_ms:
                stopping.is_forced = stopping.is_killed = True
                logger.warning(
                    "run %s: its handler did not stop (%s); %s is killed",
                    printable(execution.run_id),
                    stopping.reason,
                    execution.place.name,
                    extra=execution.facts,
                )
                process.kill()

    def _stop_for_deadline(self, execution: Execution) -> None:
        self.stop(
            execution,
            DEADLINE_PASSED,
            grace_ms=self.stop_grace_ms,
            kill_after_ms=KILL_AFTER_MS,
        )

    def ownership_lost(self, run_id: str, fence: int, *, kill_after_ms: float) -> None:
        """Take the news that somebody else has the run: stop at once and settle nothing."""
        execution = self._running.get((run_id, fence))
        if execution is None:
            return
        execution.is_lost = True
        logger.warning(
            "run %s: ownership under fence %d is lost",
            printable(run_id),
            fence,
            extra=execution.facts,
        )
        if execution.is_over:
            self.settler.discard(run_id, fence)
            self._close(execution, "lost")
        else:
            self.stop(execution, FENCE_LOST, grace_ms=0, kill_after_ms=kill_after_ms)

    def ownership_lapsed(self, run_id: str, fence: int) -> None:
        """Take the news that the run could not be confirmed in time: stop it, at once."""
        execution = self._running.get((run_id, fence))
        if execution is None:
            return
        execution.is_lapsed = True
        if not execution.is_over:
            # No patience: a peer whose clock is ahead may take the run over any moment.
            self.stop(execution, LEASE_LAPSED, grace_ms=0, kill_after_ms=0)

    # --- settling ---------------------------------------------------------------

    def may_settle(self, ending: Ending) -> bool:
        """Tell whether an ending may be settled now, or has to wait for a confirmation."""
        execution = self._running.get((ending.run_id, ending.fence))
        # What has lapsed is confirmed no more; the fence alone decides about it.
        return (
            execution is None
            or execution.is_lapsed
            or self.keeper.confirmed(ending.run_id, ending.fence)
        )

    def settled(self, settlements: Iterable[Settlement]) -> None:
        """Take note of what was settled, and tell the workers."""
        for settlement in settlements:
            ending = settlement.ending
            execution = self._running.get((ending.run_id, ending.fence))
            if execution is None:
                logger.info("run %s: put back; nobody here executed it", printable(ending.run_id))
                continue
            if settlement.status is None:
                how = "settled already or somebody else's" if settlement.maybe_ours else "lost"
                logger.warning(
                    "run %s: could not be settled (%s)",
                    printable(ending.run_id),
                    how,
                    extra=execution.facts,
                )
            self._close(execution, settlement.status or "lost", ending)

    def _close(self, execution: Execution, result: str, ending: Ending | None = None) -> None:
        del self._running[execution.key]
        self.keeper.drop(*execution.key)
        self.counts[result] = self.counts.get(result, 0) + 1
        if result != "lost":
            logger.info(
                "run %s: %s after %.1f s%s",
                printable(execution.run_id),
                "put back" if result == "suspended" else result,
                (self.read_ms() - execution.begun_at_ms) / 1000,
                explanation_of(ending),
                extra=execution.facts,
            )
        place = execution.place
        if place.process is not execution.process:
            return
        place.runs += 1
        self.crew.send(place, Settled(*execution.key))
        is_interrupted = execution.stopping is not None and execution.stopping.is_forced
        if is_interrupted or cannot_read(ending):
            # Interrupted wherever it was: whatever that left behind goes with the process.
            # And one that cannot reach the database, as its supervisor can, would go on to
            # take runs and execute none of them.
            self.crew.dismiss(place)
        elif reason := self._reason_to_replace(place):
            logger.info("%s is replaced: %s", place.name, reason)
            self.crew.dismiss(place)

    def _reason_to_replace(self, place: Place) -> str | None:
        process = place.process
        return None if process is None else self.recycle.reason(place.runs, process.resident_bytes)
