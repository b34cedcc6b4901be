"""The lock file that workers inherit: dead means gone and the lock can be taken."""

import dataclasses
import fcntl
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from django_runstore import conf, runtime_directory
from django_runstore.liveness import (
    LivenessContext,
    LockState,
    OwnerLock,
    look_at_lock,
    same_host_process,
)
from django_runstore.owners import OwnerId

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def owner(runtime_dir: Path) -> OwnerId:
    return OwnerId.for_this_process(announces_lock=True)


class TestAcquire:
    def test_file_is_named_after_the_nonce(self, owner: OwnerId, runtime_dir: Path):
        with OwnerLock.acquire(owner) as lock:
            assert lock.path == runtime_dir / f"{owner.nonce}.lock"

    def test_folder_and_file_are_private(self, owner: OwnerId, runtime_dir: Path):
        with OwnerLock.acquire(owner) as lock:
            assert runtime_dir.stat().st_mode & 0o777 == 0o700
            assert lock.path.stat().st_mode & 0o777 == 0o600

    def test_descriptor_is_closed_on_exec_unless_it_is_passed(self, owner: OwnerId):
        with OwnerLock.acquire(owner) as lock:
            assert not os.get_inheritable(lock.fileno())

    def test_folder_may_be_given(self, owner: OwnerId, tmp_path: Path, runtime_dir: Path):
        with OwnerLock.acquire(owner, runtime_dir) as lock:
            assert look_at_lock(owner, runtime_dir) is LockState.HELD
            assert lock.path.exists()

    def test_second_lock_of_one_owner_is_refused(self, owner: OwnerId):
        with OwnerLock.acquire(owner), pytest.raises(FileExistsError):
            OwnerLock.acquire(owner)

    def test_owner_that_announces_none_is_refused(self, runtime_dir: Path):
        with pytest.raises(ValueError, match="does not announce a lock"):
            OwnerLock.acquire(OwnerId.for_this_process())

    def test_owner_that_announced_another_folder_is_refused(self, owner: OwnerId, tmp_path: Path):
        with pytest.raises(ValueError, match="does not announce a lock"):
            OwnerLock.acquire(owner, tmp_path / "other")

    def test_planted_link_is_not_followed(self, owner: OwnerId, runtime_dir: Path, tmp_path: Path):
        target = tmp_path / "target"
        (runtime_dir / f"{owner.nonce}.lock").symlink_to(target)
        with pytest.raises(OSError, match="exists"):
            OwnerLock.acquire(owner)
        assert not target.exists()


class TestLook:
    def test_held_lock_is_held(self, owner: OwnerId):
        with OwnerLock.acquire(owner):
            assert look_at_lock(owner) is LockState.HELD

    def test_closed_lock_is_free(self, owner: OwnerId):
        OwnerLock.acquire(owner).close()
        assert look_at_lock(owner) is LockState.FREE

    def test_looking_does_not_keep_the_lock(self, owner: OwnerId):
        OwnerLock.acquire(owner).close()
        assert [look_at_lock(owner), look_at_lock(owner)] == [LockState.FREE] * 2
        assert open_descriptors_on(f"{owner.nonce}.lock") == 0

    def test_child_forked_in_the_middle_of_a_look_does_not_keep_the_lock(
        self, owner: OwnerId, monkeypatch: pytest.MonkeyPatch
    ):
        OwnerLock.acquire(owner).close()
        copies: list[int] = []
        fstat = os.fstat

        def copying(descriptor: int) -> os.stat_result:
            copies.append(os.dup(descriptor))  # what a fork in another thread does
            return fstat(descriptor)

        monkeypatch.setattr(os, "fstat", copying)
        look_at_lock(owner)
        monkeypatch.undo()
        lock = os.open(conf.current().runtime_dir / f"{owner.nonce}.lock", os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if a copy still holds it
        finally:
            for descriptor in (lock, *copies):
                os.close(descriptor)

    def test_two_observers_at_once_do_not_take_each_other_for_the_owner(self, owner: OwnerId):
        lock = OwnerLock.acquire(owner)
        lock.close()
        script = (
            "import fcntl, sys\n"
            "file = open(sys.argv[1])\n"
            "fcntl.flock(file, fcntl.LOCK_SH)\n"
            "print('looking', flush=True)\n"
            "sys.stdin.read()\n"
        )
        command = [sys.executable, "-c", script, str(lock.path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            other.stdout.readline()
            assert look_at_lock(owner) is LockState.FREE
            other.communicate()

    def test_announced_lock_that_is_not_there_is_missing(self, owner: OwnerId):
        assert look_at_lock(owner) is LockState.MISSING

    def test_discarded_lock_is_missing(self, owner: OwnerId):
        lock = OwnerLock.acquire(owner)
        lock.discard()
        assert look_at_lock(owner) is LockState.MISSING
        assert not lock.path.exists()

    def test_lock_of_another_folder_is_elsewhere(self, owner: OwnerId, tmp_path: Path):
        runtime_directory.scope_of(runtime_directory.prepare(tmp_path / "private-tmp"))
        assert look_at_lock(owner, tmp_path / "private-tmp") is LockState.ELSEWHERE

    def test_lock_is_elsewhere_where_there_is_no_folder_at_all(
        self, owner: OwnerId, tmp_path: Path
    ):
        assert look_at_lock(owner, tmp_path / "nothing") is LockState.ELSEWHERE

    def test_owner_without_lock_announced_none(self):
        assert look_at_lock(OwnerId.for_this_process()) is LockState.NOT_ANNOUNCED

    @pytest.mark.parametrize("nonce", ["n1", "", "../../etc/passwd", "a/b"])
    def test_nonce_made_elsewhere_announces_none(self, nonce: str):
        assert look_at_lock(OwnerId("h1", 1, nonce)) is LockState.NOT_ANNOUNCED

    @pytest.mark.parametrize("nonce", ["n1-L", "../../tmp/x-L", "v2-of-this-L"])
    def test_announcement_that_cannot_be_read_is_unknown(self, nonce: str):
        assert look_at_lock(OwnerId("h1", 1, nonce)) is LockState.UNKNOWN

    def test_folder_that_others_may_write_to_proves_nothing(
        self, owner: OwnerId, runtime_dir: Path
    ):
        OwnerLock.acquire(owner).close()
        runtime_dir.chmod(0o777)
        assert look_at_lock(owner) is LockState.UNKNOWN

    def test_folder_behind_a_link_proves_nothing(
        self, owner: OwnerId, runtime_dir: Path, tmp_path: Path
    ):
        OwnerLock.acquire(owner).close()
        (tmp_path / "link").symlink_to(runtime_dir)
        assert look_at_lock(owner, tmp_path / "link") is LockState.UNKNOWN

    @pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
    def test_anything_but_a_file_proves_nothing(self, owner: OwnerId, runtime_dir: Path, kind: str):
        path = runtime_dir / f"{owner.nonce}.lock"
        match kind:
            case "pipe":
                os.mkfifo(path)
            case "folder":
                path.mkdir()
            case "link":
                path.symlink_to("/dev/null")
        assert look_at_lock(owner) is LockState.UNKNOWN

    def test_link_to_a_free_lock_proves_nothing(
        self, owner: OwnerId, runtime_dir: Path, tmp_path: Path
    ):
        (tmp_path / "free").touch()
        (runtime_dir / f"{owner.nonce}.lock").symlink_to(tmp_path / "free")
        assert look_at_lock(owner) is LockState.UNKNOWN


class TestTouch:
    def test_keeps_cleaners_of_temporary_folders_away(self, owner: OwnerId, runtime_dir: Path):
        with OwnerLock.acquire(owner) as lock:
            for path in (lock.path, runtime_dir / "scope"):
                os.utime(path, (1, 1))
            lock.touch()
            for path in (lock.path, runtime_dir / "scope"):
                assert path.stat().st_mtime > 1


def test_closing_leaves_the_lock_to_those_who_inherited_it(owner: OwnerId):
    lock = OwnerLock.acquire(owner)
    inherited = os.dup(lock.fileno())
    lock.close()
    assert look_at_lock(owner) is LockState.HELD
    os.close(inherited)
    assert look_at_lock(owner) is LockState.FREE


def test_closing_twice_closes_no_other_descriptor(owner: OwnerId):
    lock = OwnerLock.acquire(owner)
    lock.close()
    reader, writer = os.pipe()
    lock.close()
    os.close(reader)
    os.close(writer)


class TestVerdict:
    """The lock as part of the verdict on an owner whose process is gone."""

    @staticmethod
    def is_alive(owner: OwnerId, dead_pid: int) -> bool:
        dead = dataclasses.replace(owner, pid=dead_pid)
        return same_host_process(dead, LivenessContext(OwnerId.for_this_process(), 0, 100_000))

    def test_gone_with_a_free_lock_is_dead(self, owner: OwnerId, dead_pid: int):
        OwnerLock.acquire(owner).close()
        assert not self.is_alive(owner, dead_pid)

    def test_gone_with_a_held_lock_is_alive(self, owner: OwnerId, dead_pid: int):
        with OwnerLock.acquire(owner):
            assert self.is_alive(owner, dead_pid)

    def test_gone_with_a_missing_lock_is_alive(self, owner: OwnerId, dead_pid: int):
        assert self.is_alive(owner, dead_pid)

    def test_gone_with_an_unreadable_lock_is_alive(
        self, owner: OwnerId, dead_pid: int, runtime_dir: Path
    ):
        OwnerLock.acquire(owner).close()
        runtime_dir.chmod(0o777)
        assert self.is_alive(owner, dead_pid)

    def test_gone_in_a_restarted_container_is_dead(
        self, owner: OwnerId, dead_pid: int, tmp_path: Path, settings
    ):
        # Field case 7: same host name, same pid, a recycled namespace and a fresh /tmp. The
        # lock file went with the old file system and will never be seen again.
        settings.RUNSTORE = {"RUNTIME_DIR": tmp_path / "fresh"}
        OwnerId.for_this_process(announces_lock=True)
        assert not self.is_alive(owner, dead_pid)

    def test_running_with_a_free_lock_is_alive(self, owner: OwnerId):
        OwnerLock.acquire(owner).close()
        context = LivenessContext(OwnerId.for_this_process(), 0, 100_000)
        assert same_host_process(owner, context)


SUPERVISOR = """
import subprocess, sys
from pathlib import Path
from django.conf import settings
settings.configure(RUNSTORE={"RUNTIME_DIR": sys.argv[1]})
from django_runstore.liveness import OwnerLock
from django_runstore.owners import OwnerId
owner = OwnerId.for_this_process(announces_lock=True)
lock = OwnerLock.acquire(owner)
command = [sys.executable, "-c", "import time; time.sleep(600)"]
worker = subprocess.Popen(command, pass_fds=[lock.fileno()], stdout=subprocess.DEVNULL)
stranger = subprocess.Popen(command, stdout=subprocess.DEVNULL)
print(owner.host_id, owner.pid, owner.nonce, worker.pid, stranger.pid, flush=True)
worker.wait()
"""


def test_worker_that_outlives_its_supervisor_keeps_the_owner_alive(runtime_dir: Path):
    command = [sys.executable, "-c", SUPERVISOR, str(runtime_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as supervisor:
        assert supervisor.stdout is not None
        host_id, pid, nonce, worker, stranger = supervisor.stdout.readline().split()
        try:
            owner = OwnerId(host_id, int(pid), nonce)
            context = LivenessContext(OwnerId.for_this_process(), 0, 100_000)
            assert same_host_process(owner, context)

            supervisor.kill()
            supervisor.wait()
            assert look_at_lock(owner) is LockState.HELD
            assert same_host_process(owner, context)

            os.kill(int(worker), signal.SIGKILL)
            deadline = time.monotonic() + 20
            while same_host_process(owner, context):
                assert time.monotonic() < deadline, "the lock was never freed"
                time.sleep(0.01)
        finally:
            for process in (worker, stranger):
                with suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)


def open_descriptors_on(name: str) -> int:
    links = Path("/proc/self/fd").iterdir()
    return sum(name in str(link.readlink()) for link in links if link.is_symlink())
