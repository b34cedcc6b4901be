"""Ctrl-C reaches a command by way of the terminal; who started it waits for its end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Takes its time to end, as tests with servers do, and says when it has.
SLOW_TO_END = """
import sys, time
try:
    print("ready", flush=True)
    sys.stdin.read()
except KeyboardInterrupt:
    time.sleep(1)
    print("ended well", flush=True)
"""

STARTERS = {
    "dev.py": f"""
import sys
from devtools.children import run
run([sys.executable, "-c", {SLOW_TO_END!r}])
""",
    "the PostgreSQL launcher": f"""
import sys
from django_runstore.testing.postgres import main
main([sys.executable, "-c", {SLOW_TO_END!r}])
""",
}


@pytest.mark.parametrize("starter", sorted(STARTERS))
def test_an_interrupted_command_is_not_cut_short(starter):
    with subprocess.Popen(
        [sys.executable, "-c", STARTERS[starter]],
        cwd=ROOT,
        env=os.environ | {"RUNSTORE_TEST_DATABASE_URL": "postgres://unused"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGINT)

        assert process.stdout.read() == "ended well\n"
    assert process.returncode != 0


def test_a_terminated_launcher_takes_its_command_with_it():
    with subprocess.Popen(
        [sys.executable, "-c", STARTERS["the PostgreSQL launcher"]],
        cwd=ROOT,
        env=os.environ | {"RUNSTORE_TEST_DATABASE_URL": "postgres://unused"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()

        # The command holds the pipe, so this returns when it has ended as well.
        assert process.stdout.read() == ""
    assert process.returncode == 128 + signal.SIGTERM
