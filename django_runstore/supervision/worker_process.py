"""A worker as its supervisor sees it: started, talked to, watched, ended, reaped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from django_runstore.supervision.endings import WorkerExit
from django_runstore.supervision.protocol import (
    LONGEST_REPORT_BYTES,
    REPORTS,
    MessageReader,
    encode,
    write_all,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django_runstore.supervision.protocol import Command, Hello, Report

WORKER_MODULE: Final = "django_runstore.supervision.worker"

_STANDARD_ERROR: Final = 2


@dataclass(frozen=True, slots=True)
class Descriptors:
    """The ends of the two pipes that the supervisor keeps."""

    commands: int
    reports: int


class WorkerProcess:
    """
    One worker process, from its start until it is reaped.

    Two descriptors become readable: ``report_fd`` when the worker says something,
    ``exit_fd`` when it has ended. Where the system has no such thing as the latter, it is
    None and ``has_exited()`` has to be asked now and then.
    """

    def __init__(self, process: subprocess.Popen[bytes], descriptors: Descriptors) -> None:
        """Use ``start()``; this only keeps what it started."""
        self._process = process
        self._commands = descriptors.commands
        self._reader = MessageReader(descriptors.reports, REPORTS, LONGEST_REPORT_BYTES)
        self.pid = process.pid
        self.report_fd = descriptors.reports
        self.exit_fd = _watch_exit(process.pid)
        self._exit: WorkerExit | None = None

    @classmethod
    def start(cls, hello: Hello, command: Sequence[str] | None = None) -> Self:
        """
        Start a worker and greet it. Call it in the main thread: its end is the worker's too.

        Args:
            hello: What the worker has to know; its descriptors are inherited.
            command: What to execute instead of a worker, in tests. The numbers of the two
                descriptors are appended.

        Raises:
            OSError: the process cannot be made.
            FrameTooLongError: the settings are too large to be sent.
        """
        greeting = encode(hello)
        their_commands, our_commands = os.pipe()
        our_reports, their_reports = os.pipe()
        try:
            # Spawned, never forked: a forked child would share the sockets of every
            # database connection that is open here.
            process = subprocess.Popen(  # noqa: S603 - our own module
                [*(command or _worker_command()), str(their_commands), str(their_reports)],
                stdin=subprocess.DEVNULL,
                # Whatever handlers print: standard output belongs to the command.
                stdout=_STANDARD_ERROR,
                pass_fds=[their_commands, their_reports, hello.deadline_fd, hello.lock_fd],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(hello.sys_path)},
                start_new_session=True,
            )
        except BaseException:
            os.close(our_commands)
            os.close(our_reports)
            raise
        finally:
            os.close(their_commands)
            os.close(their_reports)
        # Fits into the empty pipe as a whole. From then on a worker that reads nothing must
        # not hold anybody up.
        with suppress(BrokenPipeError):
            write_all(our_commands, greeting)
        for descriptor in (our_commands, our_reports):
            os.set_blocking(descriptor, False)
        return cls(process, Descriptors(our_commands, our_reports))

    def send(self, command: Command) -> bool:
        """Send a command; False when the worker does not take it, because it ended or hangs."""
        frame = encode(command)
        try:
            # Commands are shorter than what a pipe takes in one piece, or not at all.
            return os.write(self._commands, frame) == len(frame)
        except (BrokenPipeError, BlockingIOError):
            return False

    def receive(self) -> list[Report]:
        """
        Give the reports that have arrived.

        Raises:
            ProtocolError: the worker sent something else; it cannot be trusted any more.
        """
        return self._reader.read_available()

    @property
    def is_silent(self) -> bool:
        """Whether the worker has closed its end of the pipe."""
        return self._reader.at_end

    def dismiss(self) -> None:
        """Close the pipe: an idle worker ends, one with an unanswered outcome settles it first."""
        if self._commands >= 0:
            os.close(self._commands)
            self._commands = -1

    def terminate(self) -> None:
        """Ask the worker and everything its handler started to end."""
        self._signal_group(signal.SIGTERM)

    def kill(self) -> None:
        """End the worker and everything its handler started, at once."""
        self._signal_group(signal.SIGKILL)

    def resident_bytes(self) -> int | None:
        """Tell how much memory the worker holds; None where the system does not say."""
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        except (OSError, IndexError):
            return None
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def is_stopped(self) -> bool:
        """Tell whether somebody has stopped the worker (SIGSTOP) and not let it go on."""
        if self._exit is not None:
            return False
        try:
            found = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        return found is not None and found.si_code == os.CLD_STOPPED

    def has_exited(self) -> bool:
        """Tell whether the worker has ended; it keeps its pid until it is reaped."""
        return self._exit is not None or _has_ended(self.pid, block=False)

    def reap(self) -> WorkerExit:
        """Wait for the worker's end, end what it left behind, and let its pid go."""
        if self._exit is None:
            _has_ended(self.pid, block=True)
            # While the pid is still its own: what the handler had started does not go on
            # without it.
            self._signal_group(signal.SIGKILL)
            self._exit = WorkerExit(self._process.wait())
        return self._exit

    def close(self) -> None:
        """Close the descriptors."""
        self.dismiss()
        for descriptor in (self.report_fd, self.exit_fd):
            if descriptor is not None and descriptor >= 0:
                os.close(descriptor)
        self.report_fd, self.exit_fd = -1, None

    def _signal_group(self, number: signal.Signals) -> None:
        # Not once it is reaped: its number may belong to somebody else by then.
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


def _worker_command() -> list[str]:
    warnings = [f"-W{option}" for option in sys.warnoptions]
    return [sys.executable, *warnings, "-m", WORKER_MODULE]


def _has_ended(pid: int, *, block: bool) -> bool:
    """Ask for the end of a child without reaping it."""
    options = os.WEXITED | os.WNOWAIT | (0 if block else os.WNOHANG)
    try:
        return os.waitid(os.P_PID, pid, options) is not None
    except ChildProcessError:
        return True


def _watch_exit(pid: int) -> int | None:
    """Open a descriptor that becomes readable when the process ends; None where there is none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
