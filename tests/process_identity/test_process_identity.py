"""Which process a pid means, asked about real processes."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from django_runstore import process_identity
from django_runstore.process_identity import (
    Presence,
    ProcessStat,
    host_scope,
    look_for_process,
    own_start_ticks,
    parse_stat,
)

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="reads /proc, which only Linux has"
)

ROOT = Path(__file__).parents[2]
SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.01)


def state_of(pid: int) -> str:
    stat = parse_stat(Path(f"/proc/{pid}/stat").read_text())
    assert stat is not None
    return stat.state


def ticks_of(pid: int) -> int:
    stat = parse_stat(Path(f"/proc/{pid}/stat").read_text())
    assert stat is not None
    return stat.start_ticks


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_own_process_exists():
    assert look_for_process(os.getpid(), own_start_ticks()).presence is Presence.EXISTS


def test_running_child_exists():
    with running(SLEEPER) as child:
        assert look_for_process(child.pid, ticks_of(child.pid)).presence is Presence.EXISTS


def test_stopped_process_exists():
    with running(SLEEPER) as child:
        child.send_signal(signal.SIGSTOP)
        wait_for(lambda: state_of(child.pid) == "T")
        assert look_for_process(child.pid, ticks_of(child.pid)).presence is Presence.EXISTS


def test_reaped_child_is_gone():
    with running(SLEEPER) as child:
        child.kill()
        child.wait()
        sighting = look_for_process(child.pid)
    assert (sighting.presence, sighting.reason) == (Presence.GONE, "no-such-process")


def test_zombie_is_gone_although_its_pid_is_taken():
    with running(SLEEPER) as child:
        child.kill()
        wait_for(lambda: state_of(child.pid) == "Z")
        os.kill(child.pid, 0)  # what a naive probe would call alive
        sighting = look_for_process(child.pid, ticks_of(child.pid))
    assert (sighting.presence, sighting.reason) == (Presence.GONE, "zombie")


def test_process_whose_main_thread_has_ended_exists_while_another_thread_works():
    script = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "print('ready', flush=True)\n"
        "ctypes.CDLL(None).syscall(60, 0)\n"  # exit(2): ends the calling thread alone
    )
    if os.uname().machine != "x86_64":
        pytest.skip("the number of the exit system call is written down for x86_64 only")
    with running([sys.executable, "-c", script]) as child:
        wait_for(lambda: state_of(child.pid) == "Z")
        assert look_for_process(child.pid, ticks_of(child.pid)).presence is Presence.EXISTS


def test_reused_pid_is_told_by_its_start_time():
    with running(SLEEPER) as child:
        sighting = look_for_process(child.pid, ticks_of(child.pid) - 1)
    assert (sighting.presence, sighting.reason) == (Presence.GONE, "another-start-time")


def test_reused_pid_counts_as_existing_when_nobody_recorded_a_start_time():
    with running(SLEEPER) as child:
        assert look_for_process(child.pid, None).presence is Presence.EXISTS


@pytest.mark.parametrize("pid", [0, -1])
def test_process_groups_are_never_probed(pid: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "kill", forbidden)
    assert look_for_process(pid).presence is Presence.UNKNOWN


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EINVAL, "invalid"),
        OSError(errno.EACCES, "no access"),
        OverflowError("too large"),
        RuntimeError("who knows"),
    ],
    ids=lambda error: type(error).__name__ + str(getattr(error, "errno", "")),
)
def test_any_probe_error_but_no_such_process_is_no_death(
    error: Exception, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(os, "kill", raising(error))
    assert look_for_process(os.getpid()).presence is not Presence.GONE


def test_process_of_another_user_exists(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "kill", raising(PermissionError(errno.EPERM, "not yours")))
    assert look_for_process(os.getpid(), own_start_ticks()).presence is Presence.EXISTS


def test_process_hidden_from_proc_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "self").symlink_to(str(os.getpid()))  # hidepid: everybody else is missing
    monkeypatch.setattr(process_identity, "PROC", tmp_path)
    with running(SLEEPER) as child:
        assert look_for_process(child.pid, 1).presence is Presence.EXISTS


def test_proc_of_another_namespace_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "self").symlink_to("4102")
    with running(SLEEPER) as child:
        (tmp_path / str(child.pid)).symlink_to(f"/proc/{os.getpid()}")
        monkeypatch.setattr(process_identity, "PROC", tmp_path)
        sighting = look_for_process(child.pid, 1)
    assert sighting.presence is Presence.EXISTS


def test_huge_pid_is_no_death():
    assert look_for_process(2**53 - 1).presence is Presence.UNKNOWN


class TestParseStat:
    TAIL = "S 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 8841 1000 10"

    @pytest.mark.parametrize(
        "name", ["python", "a b", ") Z 1 2", "((", "", "tmux: server)"], ids=ascii
    )
    def test_command_name_cannot_shift_the_fields(self, name: str):
        stat = parse_stat(f"4102 ({name}) {self.TAIL}")
        assert stat == ProcessStat(state="S", thread_count=3, start_ticks=8841)

    @pytest.mark.parametrize(
        "text", ["", "4102", "4102 (python) S", "4102 (python) S " + "x " * 40]
    )
    def test_text_of_another_shape_is_none(self, text: str):
        assert parse_stat(text) is None

    def test_kernel_text_of_a_thread_with_a_hostile_name_is_read(self):
        script = (
            "import ctypes, time\n"
            "ctypes.CDLL(None).prctl(15, b') Z 0 (')\n"  # PR_SET_NAME
            "print('ready', flush=True)\n"
            "time.sleep(600)\n"
        )
        with running([sys.executable, "-c", script]) as child:
            assert child.stdout is not None
            child.stdout.readline()
            assert ") Z 0 (" in Path(f"/proc/{child.pid}/stat").read_text()
            sighting = look_for_process(child.pid, ticks_of(child.pid))
        assert sighting.presence is Presence.EXISTS


class TestHostScope:
    def test_is_the_same_in_a_child(self):
        assert scope_in_child([]) == host_scope()

    def test_is_the_same_in_another_thread(self):
        seen: list[str] = []
        thread = threading.Thread(target=lambda: seen.append(host_scope()))
        thread.start()
        thread.join()
        assert seen == [host_scope()]

    @pytest.mark.parametrize(
        "flags",
        [["--pid", "--fork"], ["--uts", "sh", "-c", 'hostname other; exec "$@"', "sh"], ["--time"]],
        ids=["pid-namespace", "host-name", "time-namespace"],
    )
    def test_differs_in_another(self, flags: list[str]):
        allow_unshare(flags[0])
        assert scope_in_child(["unshare", *flags]) != host_scope()

    def test_differs_after_a_reboot(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        before = host_scope()
        boot_id = tmp_path / "sys/kernel/random/boot_id"
        boot_id.parent.mkdir(parents=True)
        boot_id.write_text("another\n")
        (tmp_path / "self").symlink_to("/proc/self")
        monkeypatch.setattr(process_identity, "PROC", tmp_path)
        assert host_scope() != before
        assert "another" in host_scope()

    def test_is_shared_with_nobody_where_linux_hides_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(process_identity, "PROC", tmp_path)
        assert host_scope() != host_scope()

    def test_host_name_of_any_bytes_becomes_durable_text(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr("socket.gethostname", lambda: "we\udcffb/1\n" + "x" * 300)
        name = host_scope().split("/")[0]
        assert name == ("we_b_1_" + "x" * 300)[:64]

    def test_has_no_start_ticks_off_linux(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(process_identity, "PROC", tmp_path)
        assert own_start_ticks() is None

    def test_names_the_machine_off_linux(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(sys, "platform", "darwin")
        assert host_scope() == host_scope()
        assert "/node-" in host_scope()


def test_own_start_ticks_are_right_with_the_proc_of_the_outer_namespace():
    allow_unshare("--pid")
    script = (
        "import os\n"
        "from django_runstore.process_identity import own_start_ticks, _proc_shows_own_namespace\n"
        "stat = open('/proc/self/stat').read()\n"
        "print(own_start_ticks() == int(stat.rpartition(')')[2].split()[19]),"
        " _proc_shows_own_namespace())\n"
    )
    # No --mount-proc: /proc shows the outer namespace, where this pid is somebody else.
    command = ["unshare", "--pid", "--fork", sys.executable, "-c", script]
    assert output_of(command).split() == ["True", "False"]


def allow_unshare(flag: str) -> None:
    command = ["unshare", flag, *(["--fork"] if flag == "--pid" else []), "true"]
    try:
        refused = subprocess.run(command, capture_output=True, check=False).returncode != 0
    except FileNotFoundError:
        refused = True
    if refused:
        pytest.skip(f"unshare {flag} is not permitted here")


def scope_in_child(prefix: list[str]) -> str:
    script = "from django_runstore.process_identity import host_scope; print(host_scope())"
    return output_of([*prefix, sys.executable, "-c", script]).strip()


def output_of(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def forbidden(*_: object) -> None:
    pytest.fail("must not be called")


def raising(error: Exception) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail
