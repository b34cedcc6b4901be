"""A private runtime folder, and processes that are alive, dead, or in between."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from django_runstore.owners import OwnerId
from django_runstore.process_identity import host_scope

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def runtime_dir(tmp_path: Path, settings) -> Path:
    """The configured runtime folder; not there yet."""
    folder = tmp_path / "run"
    settings.RUNSTORE = {"RUNTIME_DIR": folder}
    return folder


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that sleeps until the test is over."""
    process = subprocess.Popen(SLEEPER)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def dead_pid() -> int:
    """The pid of a child that has been reaped."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def observer() -> OwnerId:
    """An owner on this host: the test process."""
    return OwnerId.for_this_process()


@pytest.fixture
def dead_owner(dead_pid: int) -> OwnerId:
    """An owner on this host whose process is gone."""
    return OwnerId(host_scope(), dead_pid, "t1-0123456789abcdef")
