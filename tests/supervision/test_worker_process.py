"""A worker's handle, tried on small scripts in place of workers."""

import os
import select
import sys
import tempfile
import textwrap
import time

import pytest

from django_runstore.supervision.protocol import Hello, ProtocolError, Ready, Settled, Start
from django_runstore.supervision.worker_process import WorkerProcess
from tests.supervision.processes import is_alive, until

PRELUDE = """
import os, sys, signal, time
from django_runstore.supervision.protocol import *
command_fd, report_fd = int(sys.argv[-2]), int(sys.argv[-1])
reader = MessageReader(command_fd, COMMANDS, LONGEST_COMMAND_BYTES)
hello = reader.read()
def say(message):
    write_all(report_fd, encode(message))
"""


@pytest.fixture
def start():
    started = []
    with tempfile.TemporaryFile() as deadline, tempfile.TemporaryFile() as lock:

        def begin(script, **changes):
            hello = Hello(
                **{
                    "supervisor_pid": os.getpid(),
                    "using": "default",
                    "settings": {},
                    "owner": {},
                    "sys_path": sys.path,
                    "python_path": None,
                    "deadline_fd": deadline.fileno(),
                    "lock_fd": lock.fileno(),
                    **changes,
                }
            )
            command = [sys.executable, "-c", PRELUDE + textwrap.dedent(script)]
            process = WorkerProcess.start(hello, command)
            started.append(process)
            return process

        yield begin
        for process in started:
            process.kill()
            process.reap()
            process.close()


def test_a_worker_is_greeted_and_its_reports_arrive(start):
    process = start("say(Ready(hello.supervisor_pid))")
    assert until(process.receive) == [Ready(os.getpid())]


def test_a_worker_gets_the_commands_that_are_sent(start):
    process = start("start = reader.read(); say(Started(start.run_id, start.fence)); reader.read()")
    assert process.send(Start("run", 3, 0))
    (report,) = until(process.receive)
    assert (report.run_id, report.fence) == ("run", 3)


def test_a_worker_leads_a_session_of_its_own(start):
    process = start("say(Ready(os.getsid(0))); reader.read()")
    assert until(process.receive) == [Ready(process.pid)]


def test_a_worker_holds_no_descriptor_that_it_was_not_given(start):
    with tempfile.TemporaryFile() as secret:
        os.set_inheritable(secret.fileno(), True)
        process = start(
            f"""
            try:
                os.fstat({secret.fileno()})
            except OSError:
                say(Ready(0))
            """
        )
        assert until(process.receive) == [Ready(0)]


def test_the_end_of_a_worker_is_announced_with_its_status(start):
    process = start("sys.exit(7)")
    assert process.exit_fd is not None
    assert select.select([process.exit_fd], [], [], 20)[0]
    assert process.has_exited()
    assert process.reap().code == 7


def test_the_signal_that_ended_a_worker_is_told(start):
    process = start("os.kill(os.getpid(), signal.SIGKILL)")
    assert str(process.reap()) == "killed by signal 9 (SIGKILL)"


def test_reaping_ends_what_the_worker_left_behind(start, tmp_path):
    process = start(
        """
        import subprocess
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        say(Ready(child.pid))
        os._exit(1)
        """
    )
    (report,) = until(process.receive)
    process.reap()

    until(lambda: not is_alive(report.pid))


def test_terminating_reaches_a_worker_that_can_clean_up(start):
    process = start(
        """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
        say(Ready(1))
        time.sleep(600)
        """
    )
    until(process.receive)
    process.terminate()
    assert process.reap().code == 3


def test_dismissing_closes_the_pipe(start):
    process = start("say(Ready(1)); sys.exit(4 if reader.read() is None else 5)")
    until(process.receive)
    process.dismiss()
    process.dismiss()
    assert process.reap().code == 4


def test_a_worker_that_is_gone_takes_no_command_and_breaks_nothing(start):
    process = start("sys.exit(0)")
    process.reap()
    assert not process.send(Settled("run", 1))


def test_a_worker_that_reads_nothing_holds_nobody_up(start):
    process = start("time.sleep(600)")
    began = time.monotonic()
    answers = {process.send(Start("r" * 1_000, number, 0)) for number in range(200)}
    assert False in answers
    assert time.monotonic() - began < 10


def test_nonsense_on_the_pipe_is_told_from_messages(start):
    process = start("os.write(report_fd, b'hello, world'); reader.read()")
    with pytest.raises(ProtocolError):
        until(process.receive)


def test_reports_that_came_before_the_end_are_not_lost(start):
    process = start("say(Ready(1)); os._exit(1)")
    process.reap()
    assert process.receive() == [Ready(1)]
    assert process.is_silent


def test_the_path_of_the_supervisor_finds_the_workers_module(start, monkeypatch, tmp_path):
    (tmp_path / "only_here.py").write_text("")
    process = start("import only_here; say(Ready(1))", sys_path=[*sys.path, str(tmp_path)])
    assert until(process.receive) == [Ready(1)]
