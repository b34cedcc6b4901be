"""Workers that start badly, hang, babble and die, as small scripts."""

import os
import signal
import sys
import tempfile
import textwrap
import time

import pytest

from django_runstore.supervision import crew as crew_module
from django_runstore.supervision.crew import Crew, Ended, Said
from django_runstore.supervision.pauses import Backoff
from django_runstore.supervision.protocol import Hello, Started
from django_runstore.supervision.signals import StopSignals
from django_runstore.supervision.worker_process import WorkerProcess

PRELUDE = """
import os, sys, time
from django_runstore.supervision.protocol import *
command_fd, report_fd = int(sys.argv[-2]), int(sys.argv[-1])
reader = MessageReader(command_fd, COMMANDS, LONGEST_COMMAND_BYTES)
reader.read()
def say(message):
    write_all(report_fd, encode(message))
"""


@pytest.fixture
def make_crew():
    made = []
    with (
        tempfile.TemporaryFile() as deadline,
        tempfile.TemporaryFile() as lock,
        StopSignals() as signals,
    ):
        hello = Hello(
            supervisor_pid=os.getpid(),
            using="default",
            settings={},
            owner={},
            sys_path=sys.path,
            python_path=None,
            deadline_fd=deadline.fileno(),
            lock_fd=lock.fileno(),
        )

        def make(script, size=1, stopped_timeout_ms=60_000):
            command = [sys.executable, "-c", PRELUDE + textwrap.dedent(script)]

            def start():
                return WorkerProcess.start(hello, command)

            made.append(Crew(size, start, signals, stopped_timeout_ms))
            made[-1].refill()
            return made[-1]

        yield make
        for crew in made:
            crew.kill_all()
            crew.close()


def listen(crew, until, seconds=20):
    """Gather events until the question is answered with yes."""
    events = []
    deadline = time.monotonic() + seconds
    while not until(events):
        assert time.monotonic() < deadline, events
        events += crew.listen(100)
    return events


def ended(events):
    return any(isinstance(event, Ended) for event in events)


def test_a_worker_can_work_once_it_says_that_it_is_ready(make_crew):
    crew = make_crew("say(Ready(1)); reader.read()")
    (place,) = crew.places
    assert not place.can_work
    listen(crew, lambda _: place.can_work)


def test_what_a_worker_said_before_its_end_comes_before_its_end(make_crew):
    crew = make_crew("say(Ready(1)); say(Started('run', 1)); os._exit(3)")
    said, end = listen(crew, ended)
    assert isinstance(said, Said)
    assert said.report == Started("run", 1)
    assert end.exit.code == 3


def test_a_place_is_filled_again_after_a_pause_when_its_worker_could_not_start(make_crew, caplog):
    crew = make_crew("sys.exit(78)")
    listen(crew, ended)
    (place,) = crew.places
    crew.refill()
    assert place.process is None
    assert 0 < crew.next_start_in_ms() <= crew_module.SHORTEST_RESTART_MS
    assert crew.failed_starts == 1
    assert "worker 1 ended before it could start: exit status 78" in caplog.text


def test_a_worker_that_died_at_work_is_replaced_at_once(make_crew):
    crew = make_crew("say(Ready(1)); reader.read(); os._exit(1)")
    (place,) = crew.places
    listen(crew, lambda _: place.can_work)
    place.was_useful = True
    first = place.process
    first.kill()
    listen(crew, ended)
    crew.refill()
    assert place.process not in {None, first}


def test_a_worker_that_dies_right_after_it_entered_a_run_has_started(make_crew, caplog):
    crew = make_crew("say(Ready(1)); reader.read(); say(Started('run', 1)); os._exit(1)")
    (place,) = crew.places
    listen(crew, lambda _: place.can_work)
    place.process.dismiss()
    # So that its last words and its end are read in one go.
    os.waitid(os.P_PID, place.process.pid, os.WEXITED | os.WNOWAIT)
    _, end = listen(crew, ended)
    assert end.exit.code == 1
    assert crew.failed_starts == 0
    assert "while idle" not in caplog.text


def test_a_place_that_keeps_failing_does_not_hide_one_that_works(make_crew):
    crew = make_crew("say(Ready(1)); reader.read()", size=2)
    crew.places[0].restart.failed()
    assert crew.failed_starts == 0


def test_a_worker_that_babbles_is_ended(make_crew, caplog):
    crew = make_crew("os.write(report_fd, b'hello, world'); time.sleep(600)")
    (end,) = listen(crew, ended)
    assert end.exit.code == -9
    assert "a frame announces" in caplog.text


def test_a_worker_that_closed_its_pipe_does_not_make_waiting_spin(make_crew):
    crew = make_crew("os.close(report_fd); time.sleep(600)")
    (place,) = crew.places
    listen(crew, lambda _: place.process.is_silent)
    began = time.monotonic()
    crew.listen(200)
    assert time.monotonic() - began >= 0.19


def test_a_worker_that_is_never_ready_is_ended(make_crew, monkeypatch):
    monkeypatch.setattr(crew_module, "START_TIMEOUT_MS", 200)
    crew = make_crew("time.sleep(600)")
    (end,) = listen(crew, ended)
    assert end.exit.code == -9


def test_a_dismissed_worker_that_stays_is_ended(make_crew, monkeypatch):
    monkeypatch.setattr(crew_module, "LEAVING_TIMEOUT_MS", 200)
    crew = make_crew("say(Ready(1)); time.sleep(600)")
    (place,) = crew.places
    listen(crew, lambda _: place.can_work)
    crew.dismiss(place)
    assert not place.can_work
    (end,) = listen(crew, ended)
    assert end.exit.code == -9
    assert crew.failed_starts == 0


def test_leaving_waits_for_workers_that_go_by_themselves(make_crew, tmp_path):
    mark = tmp_path / "cleaned-up"
    crew = make_crew(f"say(Ready(1)); reader.read(); open({str(mark)!r}, 'w')", size=2)
    listen(crew, lambda _: all(place.can_work for place in crew.places))
    crew.leave(20_000)
    assert mark.exists()
    assert all(place.process is None for place in crew.places)


def test_leaving_kills_those_that_stay_and_spares_those_with_something_to_settle(make_crew):
    crew = make_crew("say(Ready(1)); time.sleep(600)", size=2)
    listen(crew, lambda _: all(place.can_work for place in crew.places))
    killed, spared = (place.process for place in crew.places)
    crew.leave(100, spared=[crew.places[1]])
    assert killed.reap().code == -9
    assert not spared.has_exited()
    spared.kill()
    spared.reap()


def test_a_worker_that_cannot_be_made_is_tried_again_later(make_crew, caplog):
    def refuse():
        raise OSError(11, "Resource temporarily unavailable")

    with StopSignals() as signals:
        crew = Crew(1, refuse, signals, 60_000)
        crew.refill()
        assert crew.failed_starts == 1
        assert crew.next_start_in_ms() > 0
        assert "Resource temporarily unavailable" in caplog.text
        crew.close()


def test_restarts_are_paced(make_crew):
    crew = make_crew("sys.exit(1)")
    (place,) = crew.places
    assert isinstance(place.restart, Backoff)
    pauses = []
    for _ in range(3):
        listen(crew, ended)
        pauses.append(crew.next_start_in_ms())
        listen(crew, lambda _: crew.next_start_in_ms() == 0)
        crew.refill()
    assert pauses[0] < pauses[2]


class TestStoppedWorkers:
    IDLE = """
    say(Ready(os.getpid()))
    time.sleep(600)
    """

    def test_a_worker_that_is_stopped_for_too_long_is_killed(self, make_crew, caplog):
        crew = make_crew(self.IDLE, stopped_timeout_ms=300)
        (place,) = crew.places
        listen(crew, lambda _: place.is_ready)
        os.kill(place.process.pid, signal.SIGSTOP)
        ended = listen(crew, lambda events: any(isinstance(one, Ended) for one in events))
        assert [one.exit.code for one in ended if isinstance(one, Ended)] == [-9]
        assert "worker 1 has been stopped for too long" in caplog.text

    def test_a_worker_that_goes_on_in_time_is_left_alone(self, make_crew):
        crew = make_crew(self.IDLE)
        (place,) = crew.places
        listen(crew, lambda _: place.is_ready)
        os.kill(place.process.pid, signal.SIGSTOP)
        listen(crew, lambda _: place.stopped_since_ms is not None)
        os.kill(place.process.pid, signal.SIGCONT)
        listen(crew, lambda _: place.stopped_since_ms is None)
        assert place.can_work

    def test_a_worker_tells_how_much_memory_it_holds(self, make_crew):
        crew = make_crew(self.IDLE)
        (place,) = crew.places
        listen(crew, lambda _: place.is_ready)
        held = place.process.resident_bytes()
        assert held is None or held > 1024 * 1024
