"""
The loop of a worker: one run at a time, executed in the main thread, its outcome handed over.

Commands are read by another thread, so that a handler runs where Python delivers signals
and a stop reaches it while it works.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

from django.db import close_old_connections, reset_queries

from django_runstore import conf
from django_runstore.clocks import boottime_ms
from django_runstore.display_text import printable
from django_runstore.errors import RunNotFound, RunStoreError
from django_runstore.handlers import registry
from django_runstore.handlers.context import RunContext
from django_runstore.handlers.execution import Completed, Failed, Interrupted, execute
from django_runstore.handlers.interruption import RunInterrupted
from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.supervision.endings import (
    UNKNOWN_HANDLER,
    UNREADABLE,
    Ending,
    error_json,
    report_of,
)
from django_runstore.supervision.handler_output import captured
from django_runstore.supervision.parent_death import (
    ParentIsGoneError,
    die_with_parent,
    outlive_parent,
)
from django_runstore.supervision.protocol import (
    FrameTooLongError,
    Hello,
    Lapsed,
    MessageReader,
    ProtocolError,
    Ready,
    Settled,
    Start,
    Started,
    Stop,
    encode,
    write_all,
)
from django_runstore.supervision.settlement import Settler, failure_name
from django_runstore.supervision.shared_deadline import PublishedDeadlines
from django_runstore.supervision.worker_ownership import Ownership, Watchdog, kill_own_group

if TYPE_CHECKING:
    from types import FrameType

    from django_runstore.snapshots import RunRow
    from django_runstore.supervision.protocol import Finished, Report

logger = logging.getLogger(__name__)

READ_ATTEMPTS: Final = 5
READ_PAUSE_SECONDS: Final = 0.2


class Executor:
    """
    Executes what the supervisor starts, until it closes the pipe.

    Args:
        hello: The supervisor's first message.
        reader: Where the commands come from.
        report_fd: Where the reports go.
    """

    def __init__(self, hello: Hello, reader: MessageReader, report_fd: int) -> None:
        self._pid = os.getpid()
        self._supervisor_pid = hello.supervisor_pid
        self._owner = OwnerId(**hello.owner)
        self._store = RunStore(using=hello.using)
        self._reader = reader
        self._report_fd = report_fd
        self._reporting = threading.Lock()
        self._deadlines = PublishedDeadlines(hello.deadline_fd)
        self._inbox: queue.SimpleQueue[Ownership | Settled | None] = queue.SimpleQueue()
        self._ownership: Ownership | None = None
        self._watchdog = Watchdog(conf.current().lease, self._say_goodbye)

    def run(self) -> int:
        """Work until the pipe is closed, and return the exit status."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        os.register_at_fork(after_in_child=self._be_a_handlers_child)
        self._watchdog.start()
        threading.Thread(target=self._read_commands, name="runstore-commands", daemon=True).start()
        self._report(Ready(os.getpid()))
        while (command := self._inbox.get()) is not None:
            if isinstance(command, Ownership) and not self._work_on(command):
                break
        return 0

    # --- one run ----------------------------------------------------------------

    def _work_on(self, ownership: Ownership) -> bool:
        """Execute a run and hand its outcome over; False when the supervisor is gone."""
        reset_queries()
        close_old_connections()
        outcome = self._outcome_of(ownership)
        if os.getpid() != self._pid:
            self._leave_the_run_to_the_parent(ownership, outcome)
        close_old_connections()
        # From here on nothing happens outside the database any more, and what there is to
        # settle is worth settling without the supervisor.
        outlive_parent()
        if self._hand_over(ownership, outcome) and self._await_settled(ownership):
            try:
                die_with_parent(self._supervisor_pid)
            except ParentIsGoneError:
                return False
            return True
        self._settle_alone(ownership, outcome)
        return False

    def _outcome_of(self, ownership: Ownership) -> Completed | Failed | Interrupted:
        self._watchdog.guard(ownership)
        try:
            return self._enter(ownership)
        except RunInterrupted as interruption:
            # By the signal handler, in the moment before or after the handler itself.
            return Interrupted(interruption.reason)
        except BaseException as error:
            logger.exception("run %s: its execution broke", printable(ownership.run_id))
            return Failed(error_json(type(error).__name__, "the execution of the run broke"))
        finally:
            self._ownership = None
            self._watchdog.guard(None)

    def _enter(self, ownership: Ownership) -> Completed | Failed | Interrupted:
        row = self._read_run(ownership)
        if row is None:
            return Interrupted(UNREADABLE)
        if row.owner != self._owner or row.owner_fence != ownership.fence:
            return Interrupted("fence_lost")
        handler = registry.get(row.handler)
        if handler is None or row.state_version > handler.state_version:
            logger.warning(
                "run %s: this worker does not know its handler %s, or not in its version",
                printable(ownership.run_id),
                printable(row.handler),
            )
            return Interrupted(UNKNOWN_HANDLER)
        self._report(Started(ownership.run_id, ownership.fence))
        context = RunContext(row, ownership.fence, self._owner, self._store, ownership)
        if not conf.current().capture_output:
            return execute(handler, context)
        facts = {"run_id": row.run_id, "fence": ownership.fence, "handler": row.handler}
        with captured(facts):
            return execute(handler, context)

    def _read_run(self, ownership: Ownership) -> RunRow | None:
        """Read the run, patient with a database that is away for a moment."""
        for attempt in range(READ_ATTEMPTS):
            if ownership.expired() or ownership.stop_reason() is not None:
                raise RunInterrupted(ownership.stop_reason() or "lease_lapsed")
            try:
                return self._store.get(ownership.run_id)
            except RunNotFound:
                raise RunInterrupted("fence_lost") from None
            except RunStoreError as error:
                logger.warning(
                    "run %s: could not be read (%s)",
                    printable(ownership.run_id),
                    failure_name(error),
                )
            close_old_connections()
            time.sleep(READ_PAUSE_SECONDS * 2**attempt)
        return None

    # --- handing over -----------------------------------------------------------

    def _hand_over(self, ownership: Ownership, outcome: Completed | Failed | Interrupted) -> bool:
        report = report_of(ownership.run_id, ownership.fence, outcome)
        try:
            return self._report(report)
        except FrameTooLongError as error:
            text = error_json("ResultTooLong", f"the outcome cannot be handed over: {error}")
            too_long = Failed(text, is_final=True)
            return self._report(report_of(ownership.run_id, ownership.fence, too_long))

    def _await_settled(self, ownership: Ownership) -> bool:
        """Wait for the answer; False when the supervisor went away without one."""
        while (command := self._inbox.get()) is not None:
            if command == Settled(ownership.run_id, ownership.fence):
                return True
        return False

    def _settle_alone(
        self, ownership: Ownership, outcome: Completed | Failed | Interrupted
    ) -> None:
        """Settle an outcome that nobody answered for, as long as the run can still be ours."""
        ending = Ending(ownership.run_id, ownership.fence, outcome)
        if ending.loses_ownership:
            return
        settler = Settler(self._store, self._owner)
        settler.add(ending)
        give_up_at_ms = boottime_ms() + conf.current().lease.stale_after_ms
        while len(settler) and boottime_ms() < give_up_at_ms:
            for settlement in settler.attempt():
                logger.warning(
                    "run %s: its supervisor is gone; settled by the worker as %s",
                    printable(ownership.run_id),
                    settlement.status or "somebody else's",
                    extra={"run_id": ownership.run_id, "fence": ownership.fence},
                )
            time.sleep(settler.backoff.remaining_ms() / 1000)

    def _report(self, report: Report | Finished) -> bool:
        """Send a report; False when nobody reads any more."""
        frame = encode(report)
        with self._reporting:
            try:
                write_all(self._report_fd, frame)
            except OSError:
                return False
        return True

    def _say_goodbye(self, ownership: Ownership) -> None:
        """Tell why this process ends, from the watchdog, which must not wait for anybody."""
        if not self._reporting.acquire(blocking=False):
            return
        try:
            os.set_blocking(self._report_fd, False)
            with suppress(OSError):
                os.write(self._report_fd, encode(Lapsed(ownership.run_id, ownership.fence)))
        finally:
            self._reporting.release()

    # --- forked by a handler ----------------------------------------------------

    def _be_a_handlers_child(self) -> None:
        """Die of signals as any process does: ``Process.terminate()`` sends one."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def _leave_the_run_to_the_parent(
        self, ownership: Ownership, outcome: Completed | Failed | Interrupted
    ) -> NoReturn:
        """End a process that a handler forked and that came back out of the handler."""
        logger.error(
            "run %s: a process that its handler forked left the handler instead of ending; "
            "it is ended, and what it returned or raised is dropped",
            printable(ownership.run_id),
        )
        # Without clean-up: connections, pipes and buffers are the parent's.
        os._exit(0 if isinstance(outcome, Completed) else 1)

    # --- being told to stop -----------------------------------------------------

    def _read_commands(self) -> None:
        """Hand commands to the main thread; what the second thread does."""
        while True:
            try:
                command = self._reader.read()
            except (ProtocolError, OSError):
                logger.exception("the supervisor's pipe is broken")
                command = None
            if isinstance(command, Stop):
                self._stop(command)
            elif isinstance(command, Start):
                # Here already: a stop may follow before the main thread takes it out.
                self._ownership = Ownership(command, self._deadlines)
                self._inbox.put(self._ownership)
            elif command is None or isinstance(command, Settled):
                self._inbox.put(command)
            if command is None:
                # Nobody pulses for the run any more, nor would take its outcome.
                if self._ownership is not None:
                    kill_own_group()
                return

    def _stop(self, stop: Stop) -> None:
        ownership = self._ownership
        if ownership is None or (ownership.run_id, ownership.fence) != (stop.run_id, stop.fence):
            return
        ownership.request_stop(stop.reason, urgent=stop.urgent)
        if stop.urgent:
            # To the main thread, where it also ends a wait in a system call.
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        ownership = self._ownership
        if ownership is None:
            return
        if ownership.is_urgent:
            # Once: a second one would interrupt what the handler does to clean up.
            ownership.is_urgent = False
            raise RunInterrupted(ownership.stop_reason() or "stopping")
        # A service manager signals every process of a service. The supervisor, which it
        # signalled too, says what is to be done; until then a safe point will do.
        if ownership.stop_reason() is None:
            ownership.request_stop("stopping")
