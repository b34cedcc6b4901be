"""A clock that carries the server's time, stepped by injected readers."""

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import time_machine
from django.db import OperationalError
from django.test import override_settings

from django_runstore import clocks
from django_runstore.clocks import (
    Clock,
    ClockUnavailable,
    DatabaseClock,
    SystemClock,
    TakeoverBlockingClock,
    boottime_ms,
    clock_for,
    takeovers_blocked,
)
from django_runstore.server_time import ServerReading
from django_runstore.testing import FakeClock

ROOT = Path(__file__).parents[2]
SERVER = 1_000_000.0
RESAMPLE = clocks.RESAMPLE_AFTER_MS
RETRY = clocks.RETRY_SAMPLE_AFTER_MS
SLOW = clocks.SLOW_ROUND_TRIP_MS
SKEW = 10_000
STALE = 30_000

shared_clock = FakeClock(77)


class Server:
    """A server whose time runs with the carrier until it is stepped."""

    def __init__(self) -> None:
        self.carrier = FakeClock(0)
        self.offset_ms = SERVER
        self.round_trip_ms = 0.0
        self.error: Exception | None = None
        self.asked = 0
        self.clock = DatabaseClock(
            "default", read_server=self.read, read_carrier_ms=self.carrier.now_ms
        )

    def read(self, using: str, read_carrier_ms: Callable[[], float]) -> ServerReading:
        self.asked += 1
        if self.error is not None:
            raise self.error
        before = read_carrier_ms()
        self.carrier.advance(self.round_trip_ms / 2)
        server_ms = self.offset_ms + read_carrier_ms()
        self.carrier.advance(self.round_trip_ms / 2)
        return ServerReading(before, server_ms, read_carrier_ms())


@pytest.fixture
def server() -> Server:
    return Server()


class TestSampling:
    def test_sample_is_carried_without_asking_again(self, server: Server):
        server.clock.now_ms()
        server.carrier.advance(RESAMPLE - 1)
        assert server.clock.now_ms() == SERVER + RESAMPLE - 1
        assert server.asked == 1

    def test_server_is_asked_again_when_the_sample_is_due(self, server: Server):
        server.clock.now_ms()
        server.carrier.advance(RESAMPLE)
        server.clock.now_ms()
        assert server.asked == 2

    def test_reading_belongs_to_the_middle_of_the_round_trip(self, server: Server):
        server.round_trip_ms = 800
        assert server.clock.now_ms() == SERVER + 800

    def test_resample_corrects_a_drift(self, server: Server):
        server.clock.now_ms()
        server.offset_ms += 40
        server.carrier.advance(RESAMPLE)
        assert server.clock.now_ms() == SERVER + RESAMPLE + 40

    def test_slow_resample_is_rejected(self, server: Server):
        server.clock.now_ms()
        server.carrier.advance(RESAMPLE)
        server.offset_ms += 40
        server.round_trip_ms = SLOW + 1
        assert server.clock.now_ms() == SERVER + RESAMPLE + SLOW + 1

    def test_round_trip_at_the_limit_is_accepted(self, server: Server):
        server.round_trip_ms = SLOW
        assert server.clock.now_ms() == SERVER + SLOW

    def test_rejected_resample_is_tried_again_after_a_pause(self, server: Server):
        server.clock.now_ms()
        server.carrier.advance(RESAMPLE)
        server.error = OperationalError("down")
        server.clock.now_ms()
        server.carrier.advance(RETRY - 1)
        server.clock.now_ms()
        assert server.asked == 2
        server.carrier.advance(1)
        server.clock.now_ms()
        assert server.asked == 3

    @pytest.mark.parametrize("error", [OperationalError("down"), RuntimeError("a guard")])
    def test_failed_resample_keeps_the_previous_sample(self, server: Server, error: Exception):
        server.clock.now_ms()
        server.carrier.advance(10 * RESAMPLE)
        server.error = error
        assert server.clock.now_ms() == SERVER + 10 * RESAMPLE

    def test_failed_resample_is_logged_without_the_drivers_words(
        self, server: Server, caplog: pytest.LogCaptureFixture
    ):
        server.clock.now_ms()
        server.carrier.advance(RESAMPLE)
        server.error = OperationalError("password=hunter2")
        server.clock.now_ms()
        (record,) = caplog.records
        assert record.levelno == logging.WARNING
        assert "hunter2" not in str(vars(record))

    def test_very_first_failure_is_raised(self, server: Server):
        server.error = OperationalError("down")
        with pytest.raises(OperationalError):
            server.clock.now_ms()

    def test_clock_recovers_after_a_first_failure(self, server: Server):
        server.error = OperationalError("down")
        with pytest.raises(OperationalError):
            server.clock.now_ms()
        server.error = None
        assert server.clock.now_ms() == SERVER

    def test_server_that_is_always_slow_is_no_clock(self, server: Server):
        server.round_trip_ms = SLOW + 1
        with pytest.raises(ClockUnavailable, match="3 times in a row"):
            server.clock.now_ms()

    def test_one_slow_answer_at_the_start_is_tried_again(self, server: Server):
        slow_once = iter([SLOW + 1, 0])
        clock = DatabaseClock(
            read_server=lambda _, carrier: ServerReading(
                carrier(), SERVER, carrier() + next(slow_once)
            ),
            read_carrier_ms=server.carrier.now_ms,
        )
        assert clock.now_ms() == SERVER


class TestNeverGoesBack:
    def test_stands_still_until_a_server_that_was_set_back_has_caught_up(self, server: Server):
        server.carrier.advance(RESAMPLE)
        before = server.clock.now_ms()
        server.offset_ms -= 5_000
        server.carrier.advance(RESAMPLE)
        readings = [server.clock.now_ms()]
        for _ in range(8):
            server.carrier.advance(1_000)
            readings.append(server.clock.now_ms())
        assert readings == sorted(readings)
        assert readings[0] == before + RESAMPLE - 5_000
        assert readings[-1] == before + RESAMPLE - 5_000 + 8_000

    def test_step_back_beyond_the_last_reading_stands_still(self, server: Server):
        before = server.clock.now_ms()
        server.carrier.advance(RESAMPLE)
        server.offset_ms -= RESAMPLE + 2_000
        assert server.clock.now_ms() == before
        server.carrier.advance(2_500)
        assert server.clock.now_ms() == before + 500


class TestJumps:
    @pytest.mark.parametrize("moved_ms", [SKEW + 1, -SKEW - 1])
    def test_jump_blocks_takeovers_for_one_stale_after(self, server: Server, moved_ms: int):
        server.clock.now_ms()
        server.carrier.advance(RESAMPLE)
        server.offset_ms += moved_ms
        server.clock.now_ms()
        server.carrier.advance(STALE - 1)
        assert server.clock.takeovers_blocked()
        server.carrier.advance(1)
        assert not server.clock.takeovers_blocked()

    @pytest.mark.parametrize("moved_ms", [SKEW, -SKEW])
    def test_correction_within_the_allowance_blocks_nothing(self, server: Server, moved_ms: int):
        server.clock.now_ms()
        server.carrier.advance(RESAMPLE)
        server.offset_ms += moved_ms
        server.clock.now_ms()
        assert not server.clock.takeovers_blocked()

    def test_jump_is_logged(self, server: Server, caplog: pytest.LogCaptureFixture):
        server.clock.now_ms()
        server.carrier.advance(RESAMPLE)
        server.offset_ms += 3_600_000
        server.clock.now_ms()
        (record,) = caplog.records
        assert vars(record)["moved_ms"] == 3_600_000

    def test_jump_is_measured_by_the_configured_allowance(self, server: Server):
        lease = {"HEARTBEAT_INTERVAL_MS": 100, "STALE_AFTER_MS": 2_000, "SKEW_ALLOWANCE_MS": 500}
        with override_settings(RUNSTORE={"LEASE": lease}):
            server.clock.now_ms()
            server.carrier.advance(RESAMPLE)
            server.offset_ms += 501
            server.clock.now_ms()
            server.carrier.advance(1_999)
            assert server.clock.takeovers_blocked()
            server.carrier.advance(1)
            assert not server.clock.takeovers_blocked()

    def test_time_asleep_is_no_jump(self, server: Server):
        server.clock.now_ms()
        server.carrier.advance(8 * 3_600_000)  # a suspended laptop; CLOCK_BOOTTIME counts it
        server.clock.now_ms()
        assert not server.clock.takeovers_blocked()

    def test_clocks_that_cannot_tell_block_nothing(self):
        assert not takeovers_blocked(FakeClock(0))
        assert not takeovers_blocked(SystemClock())

    def test_blocking_is_asked_of_clocks_that_can_tell(self, server: Server):
        server.clock.now_ms()
        server.carrier.advance(RESAMPLE)
        server.offset_ms += 3_600_000
        server.clock.now_ms()
        assert takeovers_blocked(server.clock)


class TestThreads:
    def test_nobody_waits_for_a_resample_that_hangs(self, server: Server):
        server.clock.now_ms()
        server.carrier.advance(RESAMPLE)
        entered, release = threading.Event(), threading.Event()
        healthy = server.read

        def hanging(using: str, read_carrier_ms: Callable[[], float]) -> ServerReading:
            entered.set()
            assert release.wait(30)
            return healthy(using, read_carrier_ms)

        server.clock._read_server = hanging
        stuck = threading.Thread(target=server.clock.now_ms)
        stuck.start()
        try:
            assert entered.wait(30)
            server.carrier.advance(RETRY)  # so that another attempt is due already
            readings: list[float] = []
            second = threading.Thread(target=lambda: readings.append(server.clock.now_ms()))
            second.start()
            second.join(10)
            assert readings == [SERVER + RESAMPLE + RETRY]
        finally:
            release.set()
            stuck.join()

    def test_first_sample_is_taken_once_for_all_who_wait(self, server: Server):
        barrier = threading.Barrier(8)
        readings: list[float] = []

        def read() -> None:
            barrier.wait()
            readings.append(server.clock.now_ms())

        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert readings == [SERVER] * 8
        assert server.asked == 1

    def test_child_forked_during_a_sample_is_not_stuck(self):
        # In a fresh interpreter; the locks of the test process are none of its business.
        script = (
            "import os, signal, threading\n"
            "from django.conf import settings\n"
            "settings.configure()\n"
            "from django_runstore.clocks import DatabaseClock\n"
            "from django_runstore.server_time import ServerReading\n"
            "entered, release = threading.Event(), threading.Event()\n"
            "def read(using, carrier):\n"
            "    if threading.current_thread() is not threading.main_thread():\n"
            "        entered.set(); release.wait(30)\n"
            "    return ServerReading(carrier(), 5.0, carrier())\n"
            "clock = DatabaseClock(read_server=read)\n"
            "threading.Thread(target=clock.now_ms).start()\n"
            "entered.wait(30)\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    signal.alarm(20)\n"
            "    os._exit(0 if clock.now_ms() >= 5 else 1)\n"
            "status = os.waitpid(pid, 0)[1]\n"
            "release.set()\n"
            "raise SystemExit(os.waitstatus_to_exitcode(status))\n"
        )
        command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script]
        subprocess.run(command, check=True, cwd=ROOT, timeout=60)


class TestBoottime:
    def test_runs_forward(self):
        first = boottime_ms()
        assert boottime_ms() >= first

    def test_is_the_clock_that_counts_sleep(self):
        if not hasattr(time, "CLOCK_BOOTTIME"):
            pytest.skip("only Linux has CLOCK_BOOTTIME")
        before = time.clock_gettime(time.CLOCK_BOOTTIME) * 1000
        assert before <= boottime_ms() <= time.clock_gettime(time.CLOCK_BOOTTIME) * 1000

    def test_falls_back_to_the_monotonic_clock(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
        before = time.clock_gettime(time.CLOCK_MONOTONIC)
        assert before <= clocks._boottime_reader()() <= time.clock_gettime(time.CLOCK_MONOTONIC)

    def test_falls_back_further_where_there_are_no_clock_ids(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
        monkeypatch.delattr(time, "CLOCK_MONOTONIC", raising=False)
        assert clocks._boottime_reader() is time.monotonic


class TestSystemClock:
    def test_tells_the_time_of_the_machine(self):
        with time_machine.travel(1_700_000_000, tick=False):
            assert SystemClock().now_ms() == 1_700_000_000_000


class TestClockFor:
    def test_is_the_same_for_every_caller(self):
        with override_settings(RUNSTORE={}):
            assert clock_for("default") is clock_for("default")

    @pytest.mark.sqlite("the other one keeps time itself")
    def test_default_is_the_system_on_sqlite(self):
        with override_settings(RUNSTORE={}):
            assert isinstance(clock_for("default"), SystemClock)

    @pytest.mark.postgres("SQLite has no time of its own")
    def test_default_is_the_database_on_a_server(self):
        with override_settings(RUNSTORE={}):
            assert isinstance(clock_for("default"), DatabaseClock)

    def test_named_class_is_made_for_the_alias(self):
        path = "django_runstore.clocks.DatabaseClock"
        with override_settings(RUNSTORE={"CLOCK": path}):
            assert repr(clock_for("default")) == "DatabaseClock('default')"

    @pytest.mark.parametrize("path", ["SystemClock", "DatabaseClock"])
    def test_shipped_clocks_can_be_named(self, path: str):
        with override_settings(RUNSTORE={"CLOCK": f"django_runstore.clocks.{path}"}):
            assert isinstance(clock_for("default"), Clock)

    def test_named_clock_is_used_as_it_is(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(clocks, "shared_clock", shared_clock, raising=False)
        with override_settings(RUNSTORE={"CLOCK": "django_runstore.clocks.shared_clock"}):
            assert clock_for("default") is shared_clock

    def test_changed_setting_is_followed(self):
        with override_settings(RUNSTORE={"CLOCK": "django_runstore.clocks.DatabaseClock"}):
            first = clock_for("default")
        with override_settings(RUNSTORE={"CLOCK": "django_runstore.clocks.SystemClock"}):
            assert clock_for("default") is not first


def test_only_a_clock_that_can_be_wrong_can_block_takeovers():
    assert isinstance(DatabaseClock(), TakeoverBlockingClock)
    for clock in (SystemClock(), FakeClock(0)):
        assert isinstance(clock, Clock)
        assert not isinstance(clock, TakeoverBlockingClock)
