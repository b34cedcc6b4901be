"""Every liveness check of this package through the public suite."""

import errno
import os
import subprocess
import sys
from unittest import mock

import pytest

from django_runstore.liveness import (
    LivenessContext,
    OwnerLock,
    lease_liveness,
    same_host_process,
    unexpired_lease,
)
from django_runstore.owners import OwnerId
from django_runstore.process_identity import host_scope
from django_runstore.testing.conformance import LivenessCase, LivenessConformance

A = OwnerId("h1", 1, "a")
B = OwnerId("h2", 2, "b")


class JudgesByTheLease(LivenessConformance):
    """The row is all there is to look at, and it can always be read."""

    def living(self):
        for stamp_ms in (70_000, 100_001):
            yield LivenessCase(A, LivenessContext(B, stamp_ms, 100_000))

    def dead(self):
        for stamp_ms in (69_999, None):
            yield LivenessCase(A, LivenessContext(B, stamp_ms, 100_000))

    def unknown(self):
        return ()


class TestLeaseLiveness(JudgesByTheLease):
    def make_check(self):
        return lease_liveness()


class TestUnexpiredLease(JudgesByTheLease):
    def make_check(self):
        return unexpired_lease


class TestSameHostProcess(LivenessConformance):
    @pytest.fixture(autouse=True)
    def _folder(self, runtime_dir):
        """Keep the locks of this test in a folder of its own."""

    def make_check(self):
        return same_host_process

    def living(self):
        me = OwnerId.for_this_process()
        yield LivenessCase.stale(me, me)
        # The supervisor is gone, but a worker still holds its lock.
        announcing = OwnerId.for_this_process(announces_lock=True)
        with OwnerLock.acquire(announcing):
            yield LivenessCase.stale(OwnerId(me.host_id, reaped_pid(), announcing.nonce), me)

    def dead(self):
        me = OwnerId.for_this_process()
        yield LivenessCase.stale(OwnerId(host_scope(), reaped_pid(), "n"), me)
        yield LivenessCase.stale(OwnerId("another-host", os.getpid(), "n"), me)

    def unknown(self):
        me = OwnerId.for_this_process()
        yield LivenessCase.stale(OwnerId(me.host_id, 0, "n"), me)
        gone = OwnerId(me.host_id, reaped_pid(), "n")
        for error in (
            PermissionError(errno.EPERM, "not permitted"),
            OSError(errno.EINVAL, "invalid"),
            OverflowError(),
            RuntimeError("unknown"),
        ):
            with mock.patch("os.kill", side_effect=error):
                yield LivenessCase.stale(gone, me)


def reaped_pid() -> int:
    """The pid of a process that was there a moment ago."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid
