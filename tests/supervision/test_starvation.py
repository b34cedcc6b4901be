"""Handlers and neighbours that leave the supervisor nothing: its beats keep coming all the same."""

import itertools
import os
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from django_runstore.services import RunStore
from tests.supervision.processes import facts, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]

# As in tests/settings.py.
STALE_AFTER_MS = 2_000
STALE_AFTER_S = STALE_AFTER_MS / 1_000


class Beats:
    """The heartbeats that another connection found committed, in the order of their stamps."""

    def __init__(self, run_id):
        self._run_id = run_id
        self.stamps = []

    def look(self):
        """Take note of the row as it is, and give it."""
        row = RunStore().get(self._run_id)
        stamp = row.heartbeat_at_ms
        if stamp is not None and stamp not in self.stamps[-1:]:
            self.stamps.append(stamp)
        return row

    @property
    def longest_gap_ms(self):
        return max(later - earlier for earlier, later in itertools.pairwise(self.stamps))

    def assert_kept(self, span_ms):
        """The lease was renewed for so long, and nobody could have taken it for stale."""
        assert self.stamps[-1] - self.stamps[0] >= span_ms
        assert self.longest_gap_ms < STALE_AFTER_MS


@contextmanager
def every_core_busy():
    """Two processes that never rest for each core."""
    count = 2 * (os.cpu_count() or 1)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
        for process in busy:
            process.wait()


def assert_one_execution(marks, *supervisors):
    assert [line.split()[:2] for line in marks.lines if "entered" in line] == [["entered", "1"]]
    row = RunStore().get("run")
    assert (row.fence, row.recovery_count, row.failure_count) == (1, 0, 0)
    assert [kind for kind, _ in facts("run")] == ["claimed", "activated", "released"]
    for supervisor in supervisors:
        assert "lapsed" not in supervisor.log


def test_case_11_a_handler_that_holds_the_interpreter_in_c_for_10_s(supervise, submit, marks):
    submit("test.holds_the_interpreter")
    supervisors = [supervise("--concurrency", "1") for _ in range(2)]
    marks.entered()
    beats = Beats("run")
    until(lambda: beats.look().status == "completed", 60, "the end of the run")

    # A beat of the last interval may not have been seen.
    beats.assert_kept(10_000 - STALE_AFTER_MS)
    assert_one_execution(marks, *supervisors)


def test_every_core_is_busy(supervise, submit, marks):
    submit("test.polling")
    supervisors = [supervise("--concurrency", "1") for _ in range(2)]
    marks.entered()
    beats = Beats("run")
    with every_core_busy():
        enough_at = time.monotonic() + 4 * STALE_AFTER_S
        until(lambda: beats.look() and time.monotonic() > enough_at, 60, "the end of the load")

    beats.assert_kept(3 * STALE_AFTER_MS)
    marks.allow()
    until(lambda: RunStore().get("run").status == "completed")
    assert_one_execution(marks, *supervisors)
