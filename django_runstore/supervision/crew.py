"""The workers of a supervisor: a fixed number of places, each with one worker in it."""

from __future__ import annotations

import logging
import selectors
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from django_runstore.clocks import boottime_ms
from django_runstore.supervision.announcements import counted
from django_runstore.supervision.pauses import Backoff
from django_runstore.supervision.protocol import ProtocolError, Ready

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from django_runstore.supervision.endings import WorkerExit
    from django_runstore.supervision.protocol import Command, Report
    from django_runstore.supervision.signals import StopSignals
    from django_runstore.supervision.worker_process import WorkerProcess

logger = logging.getLogger("django_runstore.supervision")

START_TIMEOUT_MS: Final = 60_000
SHORTEST_RESTART_MS: Final = 500
LONGEST_RESTART_MS: Final = 30_000
LEAVING_TIMEOUT_MS: Final = 10_000
"""How long a dismissed worker may take: threads of a handler can keep its process alive."""

EXIT_POLL_MS: Final = 100
"""How often workers are looked after where the system does not announce their end."""


@dataclass(slots=True, eq=False)
class Place:
    """
    A place for a worker, and who is in it.

    Attributes:
        number: Counted from 0; also the slot of the shared deadline.
        is_ready: The worker has loaded the project.
        was_useful: It has entered a run, so that its death says nothing about its start.
        is_leaving: It was dismissed and gets nothing to do any more.
        since_ms: When the worker was started or dismissed.
        runs: How many runs it has executed.
        stopped_since_ms: Since when it is known to be stopped; None while it is not.
    """

    number: int
    process: WorkerProcess | None = None
    is_ready: bool = False
    was_useful: bool = False
    is_leaving: bool = False
    since_ms: float = 0
    runs: int = 0
    stopped_since_ms: float | None = None
    restart: Backoff = field(
        default_factory=lambda: Backoff(SHORTEST_RESTART_MS, LONGEST_RESTART_MS)
    )

    @property
    def name(self) -> str:
        """What the worker is called in logs."""
        return f"worker {self.number + 1}"

    @property
    def can_work(self) -> bool:
        """Whether the worker can be given a run."""
        return self.process is not None and self.is_ready and not self.is_leaving


@dataclass(frozen=True, slots=True)
class Said:
    """A worker reported something; it may have left its place since."""

    place: Place
    process: WorkerProcess
    report: Report


@dataclass(frozen=True, slots=True)
class Ended:
    """A worker was reaped; everything it had said came before."""

    place: Place
    exit: WorkerExit


Event: TypeAlias = Said | Ended


class Crew:
    """
    Starts workers, listens to them, reaps and replaces them. Knows nothing about runs.

    Args:
        size: How many workers there shall be.
        start_worker: Starts one.
        signals: Waited for together with the workers.
        stopped_timeout_ms: How long a worker may be stopped (SIGSTOP) before it is ended.
        read_ms: A clock for intervals; replaced in tests.
    """

    def __init__(
        self,
        size: int,
        start_worker: Callable[[], WorkerProcess],
        signals: StopSignals,
        stopped_timeout_ms: int,
        read_ms: Callable[[], float] = boottime_ms,
    ) -> None:
        self.places = [Place(number) for number in range(size)]
        self._start_worker = start_worker
        self._signals = signals
        self._stopped_timeout_ms = stopped_timeout_ms
        self._read_ms = read_ms
        self._selector = selectors.DefaultSelector()
        self._selector.register(signals, selectors.EVENT_READ)

    @property
    def failed_starts(self) -> int:
        """How many times in a row every place has failed to get a working worker."""
        return min(place.restart.failures for place in self.places)

    def refill(self) -> None:
        """Start a worker in every place that has none, unless it has to wait."""
        for place in self.places:
            if place.process is None and place.restart.remaining_ms() <= 0:
                self._start(place)

    def next_start_in_ms(self) -> float:
        """Tell when a place is to be filled that had to wait; infinite when there is none."""
        empty = (place for place in self.places if place.process is None)
        return min((place.restart.remaining_ms() for place in empty), default=float("inf"))

    def listen(self, timeout_ms: float) -> list[Event]:
        """Wait for something to happen, at most so long, and tell what has."""
        workers = self._workers()
        if any(place.process and place.process.exit_fd is None for place in workers):
            timeout_ms = min(timeout_ms, EXIT_POLL_MS)
        ready = {key.data for key, _ in self._selector.select(max(0.0, timeout_ms) / 1000)}
        self._signals.clear()
        events: list[Event] = []
        for place in workers:
            if place in ready or place.process is None or place.process.exit_fd is None:
                events += self._hear(place)
        self._end_hanging()
        return events

    def send(self, place: Place, command: Command) -> bool:
        """Send a command; a worker that does not take it is ended, and False returned."""
        if place.process is None:
            return False
        if place.process.send(command):
            return True
        place.process.kill()
        return False

    def dismiss(self, place: Place) -> None:
        """Let the worker go; it ends by itself, and a new one may follow."""
        place.is_leaving, place.since_ms = True, self._read_ms()
        if place.process is not None:
            place.process.dismiss()

    def leave(self, patience_ms: float, *, spared: Container[Place] = ()) -> None:
        """
        Dismiss all workers, wait for them, and kill those that stay.

        Args:
            spared: Workers that still have an outcome to settle; they are left to it.
        """
        for place in self.places:
            self.dismiss(place)
        end_ms = self._read_ms() + patience_ms
        while self._workers() and (rest_ms := end_ms - self._read_ms()) > 0:
            self.listen(rest_ms)
        for place in self._workers():
            if place in spared and place.process is not None:
                place.process.close()
                place.process = None
        self.kill_all()

    def kill_all(self) -> None:
        """Kill and reap every worker that is left."""
        for place in self._workers():
            if place.process is not None:
                place.process.kill()
                place.process.reap()
                place.process.close()
                place.process = None

    def close(self) -> None:
        """Release what waiting took."""
        self._selector.close()

    def _workers(self) -> list[Place]:
        return [place for place in self.places if place.process is not None]

    def _start(self, place: Place) -> None:
        place.is_ready = place.was_useful = place.is_leaving = False
        place.since_ms = self._read_ms()
        place.runs, place.stopped_since_ms = 0, None
        try:
            place.process = self._start_worker()
        except OSError as error:
            place.restart.failed()
            logger.error(  # noqa: TRY400 - the traceback tells nothing more
                "%s could not be made: %s; next attempt in %.1f s",
                place.name,
                error.strerror,
                place.restart.remaining_ms() / 1000,
            )
            return
        self._selector.register(place.process.report_fd, selectors.EVENT_READ, place)
        if place.process.exit_fd is not None:
            self._selector.register(place.process.exit_fd, selectors.EVENT_READ, place)

    def _hear(self, place: Place) -> list[Event]:
        process = place.process
        if process is None:
            return []
        # Asked before reading: of one that has ended, nothing can come after.
        has_exited = process.has_exited()
        events: list[Event] = []
        try:
            events += [Said(place, process, report) for report in self._reports(place, process)]
        except ProtocolError as error:
            logger.error("%s is ended: %s", place.name, error)  # noqa: TRY400 - says it all
            process.kill()
        if has_exited:
            events.append(Ended(place, self._reap(place, process)))
        elif process.is_silent:
            # The pipe is closed and would be readable for ever; its end is on the way.
            self._forget_descriptor(process.report_fd)
        return events

    def _reports(self, place: Place, process: WorkerProcess) -> list[Report]:
        reports = process.receive()
        if any(isinstance(report, Ready) for report in reports):
            place.is_ready = True
            logger.info("%s is ready (pid %d)", place.name, process.pid)
        others: list[Report] = [report for report in reports if not isinstance(report, Ready)]
        if others:
            # Here, and not only where the report is understood: its end may come with it.
            place.was_useful = True
        return others

    def _reap(self, place: Place, process: WorkerProcess) -> WorkerExit:
        self._forget_descriptor(process.report_fd)
        if process.exit_fd is not None:
            self._forget_descriptor(process.exit_fd)
        ended = process.reap()
        process.close()
        place.process = None
        if place.was_useful or place.is_leaving:
            place.restart.succeeded()
        else:
            place.restart.failed()
            logger.error(
                "%s ended %s: %s; what it said is above; next attempt in %.1f s (%s in a row)",
                place.name,
                "while idle" if place.is_ready else "before it could start",
                ended,
                place.restart.remaining_ms() / 1000,
                counted(place.restart.failures, "time"),
            )
        return ended

    def _end_hanging(self) -> None:
        """End workers that take too long to start or to leave, or have been stopped."""
        now_ms = self._read_ms()
        for place in self._workers():
            self._end_stopped(place, now_ms)
        for place in self.places:
            process, waited_ms = place.process, now_ms - place.since_ms
            if process is None:
                continue
            if place.is_leaving and waited_ms > LEAVING_TIMEOUT_MS:
                process.kill()
            elif not (place.is_leaving or place.is_ready) and waited_ms > START_TIMEOUT_MS:
                logger.error("%s was not ready after %d s", place.name, START_TIMEOUT_MS // 1000)
                process.kill()

    def _end_stopped(self, place: Place, now_ms: float) -> None:
        """End a worker that somebody stopped: its supervisor beats on, its run does not move."""
        process = place.process
        if process is None or not process.is_stopped():
            place.stopped_since_ms = None
            return
        if place.stopped_since_ms is None:
            place.stopped_since_ms = now_ms
            logger.warning("%s is stopped (pid %d)", place.name, process.pid)
        if now_ms - place.stopped_since_ms >= self._stopped_timeout_ms:
            logger.error("%s has been stopped for too long; it is killed", place.name)
            process.kill()

    def _forget_descriptor(self, descriptor: int) -> None:
        if descriptor in self._selector.get_map():
            self._selector.unregister(descriptor)
