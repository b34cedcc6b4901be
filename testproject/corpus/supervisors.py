"""Start, watch and kill the supervisors of the demonstration: real processes."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.conf import settings

WORKERS = 2
STOP_TIMEOUT_S = 20


@dataclass(slots=True)
class SupervisorUnderShow:
    """One ``manage.py runstore_supervise`` and the file its log goes to."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path
    _stream: IO[bytes]

    @classmethod
    def start(cls, name: str, queue: str, folder: Path) -> "SupervisorUnderShow":
        """Start one with its own log."""
        log = folder / f"{name}.log"
        stream = log.open("ab")
        process = subprocess.Popen(  # noqa: S603 - this project's own command
            [
                sys.executable,
                str(settings.BASE_DIR / "manage.py"),
                "runstore_supervise",
                f"--concurrency={WORKERS}",
                f"--queues={queue}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            cwd=settings.BASE_DIR,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        return cls(name, process, log, stream)

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid

    @property
    def is_up(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def kill(self) -> None:
        """Kill it as the kernel would when memory runs out: nothing it could do about it."""
        self.process.kill()
        self.process.wait(STOP_TIMEOUT_S)
        self._stream.close()

    def stop(self) -> int:
        """Ask it to drain and give its exit status."""
        if self.is_up:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            self._stream.close()
