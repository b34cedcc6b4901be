import os
import subprocess
import sys

import pytest

from django_runstore import OwnerId
from django_runstore.liveness import OwnerLock
from django_runstore.process_identity import host_scope
from django_runstore.supervision.doubts import doubt_about
from django_runstore.testing import FakeClock
from tests.supervision.sweeping import dead_owner, gone_pid, short_lease

STALE = 30_001


@pytest.fixture(autouse=True)
def runtime_dir(settings, tmp_path):
    settings.RUNSTORE = short_lease(RUNTIME_DIR=tmp_path / "runtime")
    return tmp_path / "runtime"


@pytest.fixture
def observer():
    return OwnerId.for_this_process()


@pytest.fixture
def ask(observer):
    def why(holder, clock=None):
        return str(doubt_about(holder, 0, observer, clock or FakeClock(STALE)))

    return why


def test_a_process_that_exists_may_be_stopped_or_hung(ask):
    assert "its process exists" in ask(OwnerId(host_scope(), os.getppid(), "nonce"))


def test_the_observer_itself_is_named(ask, observer):
    assert ask(observer) == "it is this very process"


def test_a_pid_that_is_none_cannot_be_looked_for(ask):
    assert ask(OwnerId(host_scope(), 0, "nonce")) == "pid 0 cannot be looked for"


def test_a_worker_that_holds_the_lock_of_a_dead_supervisor_is_named(ask):
    owner = OwnerId.for_this_process(announces_lock=True)
    nonce = "t1-" + owner.nonce.split("-", 1)[1]
    gone = OwnerId(owner.host_id, gone_pid(), nonce)
    with OwnerLock.acquire(gone):
        assert "one of its workers still holds its lock" in ask(gone)


def test_a_lock_file_that_is_missing_is_named(ask):
    owner = OwnerId.for_this_process(announces_lock=True)
    gone = OwnerId(owner.host_id, gone_pid(), "t1-" + owner.nonce.split("-", 1)[1])
    assert "its lock file is missing" in ask(gone)


def test_for_a_dead_process_without_a_lock_the_checks_are_named(ask):
    assert ask(dead_owner()) == (
        "a liveness check calls it alive or failed (django_runstore.liveness.same_host_process)"
    )


def test_for_another_host_the_checks_are_named(ask):
    assert "a liveness check" in ask(OwnerId("elsewhere", 1, "nonce"))


def test_a_clock_that_jumped_is_named(ask):
    clock = FakeClock(STALE)
    clock.takeovers_blocked = lambda: True
    assert ask(dead_owner(), clock) == "the clock of this process has just jumped"


def test_a_stamp_that_is_not_stale_any_more_is_named(ask):
    assert "not stale any more" in ask(dead_owner(), FakeClock(STALE - 1))


def test_a_zombie_is_not_called_a_process_that_exists(ask):
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as process:
        # The pipe closes when the child has ended; it is not reaped before the block ends.
        process.stdout.read()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert "its process exists" not in ask(OwnerId(host_scope(), process.pid, "nonce"))
