"""Real supervisors for tests: started, watched, stopped, and always ended with the test."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from django_runstore.models import JournalEntry
from django_runstore.services import RunStore

REPOSITORY = Path(__file__).resolve().parents[2]


def until(question, seconds=30, what="the expected"):
    """Ask until the answer is true, and give it."""
    deadline = time.monotonic() + seconds
    while not (answer := question()):
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.02)
    return answer


class SupervisorProcess:
    """``manage.py runstore_supervise`` with the settings of the tests."""

    def __init__(self, environment, log, *options):
        self.log_path = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "runstore_supervise", *options],
                cwd=REPOSITORY,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Its own group, so that a test can stop or end all of it.
                start_new_session=True,
            )

    @property
    def pid(self):
        return self.process.pid

    @property
    def log(self):
        return self.log_path.read_text()

    def says(self, pattern, seconds=30):
        """Wait for a line of the log."""
        return until(lambda: re.search(pattern, self.log), seconds, f"{pattern!r} in the log")

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self, seconds=30):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the supervisor did not end:\n{self.log}") from None

    def worker_pids(self):
        """The workers that are ready, by their own account."""
        return [int(pid) for pid in re.findall(r"is ready \(pid (\d+)\)", self.log)]

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pid in self.worker_pids():
            with contextlib.suppress(ProcessLookupError):
                if is_alive(pid) and "runstore" in command_line(pid):
                    os.killpg(pid, signal.SIGKILL)


class Marks:
    """The file in which handlers leave what they did outside the database."""

    def __init__(self, path):
        self.path = path

    @property
    def lines(self):
        return self.path.read_text().splitlines() if self.path.exists() else []

    def entered(self, times=1):
        """Wait until the handler was entered so often; the pid of its last worker."""
        entries = until(
            lambda: (
                found
                if len(found := [line for line in self.lines if "entered" in line]) >= times
                else None
            ),
            what=f"entry {times}",
        )
        return int(entries[-1].split()[-1])

    def allow(self, what="done"):
        """Let the handler go on."""
        Path(f"{self.path}.{what}").touch()

    def state(self):
        return json.dumps({"file": str(self.path)})


def is_alive(pid):
    """Whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def has_status(run_id, *statuses):
    return lambda: RunStore().get(run_id).status in statuses


def notes(run_id):
    """The run's own stream: event type and payload."""
    entries = JournalEntry.objects.filter(run_id=run_id, companion="").order_by("seq")
    return [(entry.event_type, json.loads(entry.payload_json)) for entry in entries]


def facts(run_id):
    """The ownership facts: event type and payload."""
    entries = JournalEntry.objects.filter(run_id=run_id, companion="run-store").order_by("seq")
    return [
        (entry.event_type.removeprefix("runstore.ownership."), json.loads(entry.payload_json))
        for entry in entries
    ]
