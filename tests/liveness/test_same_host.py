"""Looking for an owner's process on the shared host. Conformance 70 to 73."""

import dataclasses
import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from django_runstore.liveness import LivenessContext, same_host_process
from django_runstore.owners import OwnerId
from django_runstore.process_identity import parse_stat

CLAIMANT = OwnerId("h1", os.getpid(), "me")
ROOT = Path(__file__).parents[2]


def is_alive(pid: object, *, host_id: str = "h1", nonce: str = "n1") -> bool:
    owner = OwnerId(host_id, pid, nonce)  # type: ignore[arg-type]
    return same_host_process(owner, LivenessContext(CLAIMANT, 0, 100_000))


class Probe:
    """Stands in for os.kill and counts."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.calls: list[tuple[int, int]] = []
        self.error = error

    def __call__(self, pid: int, number: int) -> None:
        self.calls.append((pid, number))
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize(
    ("error", "alive"),
    [
        (None, True),
        (ProcessLookupError(errno.ESRCH, "no such process"), False),
        (PermissionError(errno.EPERM, "not permitted"), True),
        (PermissionError(errno.EACCES, "no access"), True),
        (OSError(errno.EINVAL, "invalid"), True),
        (OverflowError(), True),
        (RuntimeError("unknown"), True),
    ],
    ids=["returns", "ESRCH", "EPERM", "EACCES", "EINVAL", "overflow", "unknown"],
)
class TestProbe:
    @pytest.mark.conformance(70)
    def test_only_no_such_process_is_death(
        self, error: Exception | None, alive: bool, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(os, "kill", Probe(error))
        assert is_alive(os.getpid()) is alive

    @pytest.mark.conformance(70)
    def test_happens_exactly_once(
        self, error: Exception | None, alive: bool, monkeypatch: pytest.MonkeyPatch
    ):
        probe = Probe(error)
        monkeypatch.setattr(os, "kill", probe)
        is_alive(4102)
        assert probe.calls == [(4102, 0)]


@pytest.mark.conformance(71)
def test_owner_on_another_host_is_dead_without_probing_even_with_our_own_pid(
    monkeypatch: pytest.MonkeyPatch,
):
    probe = Probe()
    monkeypatch.setattr(os, "kill", probe)
    assert not is_alive(os.getpid(), host_id="h2")
    assert probe.calls == []


@pytest.mark.conformance(72)
@pytest.mark.parametrize("pid", [0, -1, 1.5, float("nan"), True, "7", None, 2**53])
def test_impossible_pid_is_alive_without_probing(pid: object, monkeypatch: pytest.MonkeyPatch):
    probe = Probe()
    monkeypatch.setattr(os, "kill", probe)
    assert is_alive(pid)
    assert probe.calls == []


@pytest.mark.conformance(73)
def test_own_pid_is_alive():
    assert is_alive(os.getpid(), nonce="me")


@pytest.mark.conformance(73)
def test_own_pid_with_another_nonce_is_alive():
    assert is_alive(os.getpid(), nonce="another")


def test_own_pid_with_a_uuid_for_a_nonce_is_alive():
    assert is_alive(os.getpid(), nonce="12345678-1234-4234-8234-123456789012")


@pytest.mark.conformance(73)
def test_reaped_child_is_dead(dead_pid: int):
    assert not is_alive(dead_pid)


def test_owner_of_this_process_is_alive(observer: OwnerId):
    assert same_host_process(observer, LivenessContext(observer, 0, 100_000))


def test_stopped_owner_is_alive(child: subprocess.Popen[bytes]):
    child.send_signal(signal.SIGSTOP)
    wait_for_state(child.pid, "T")
    assert is_alive(child.pid, nonce=nonce_of(child.pid))


def test_zombie_owner_is_dead(child: subprocess.Popen[bytes]):
    nonce = nonce_of(child.pid)
    child.kill()
    wait_for_state(child.pid, "Z")
    assert not is_alive(child.pid, nonce=nonce)


def test_owner_whose_pid_was_reused_is_dead(child: subprocess.Popen[bytes]):
    reused = f"t{ticks_of(child.pid) - 1}-0123456789abcdef"
    assert not is_alive(child.pid, nonce=reused)


def test_owner_that_recorded_no_start_time_lives_on_in_a_reused_pid(
    child: subprocess.Popen[bytes],
):
    assert is_alive(child.pid, nonce="u-0123456789abcdef")


def test_owner_in_another_pid_namespace_is_never_probed(monkeypatch: pytest.MonkeyPatch):
    # Field case 9: same host name, other pid namespace; "no such pid here" is no death.
    refused = subprocess.run(["unshare", "--pid", "--fork", "true"], check=False)
    if refused.returncode:
        pytest.skip("unshare --pid is not permitted here")
    script = (
        "import sys, time\n"
        "from django_runstore.owners import OwnerId\n"
        "owner = OwnerId.for_this_process()\n"
        "print(owner.host_id, owner.pid, owner.nonce, flush=True)\n"
        "time.sleep(600)\n"
    )
    command = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as container:
        try:
            assert container.stdout is not None
            host_id, pid, nonce = container.stdout.readline().split()
            owner = OwnerId(host_id, int(pid), nonce)
            probe = Probe(ProcessLookupError(errno.ESRCH, "no such process"))
            monkeypatch.setattr(os, "kill", probe)
            observer = OwnerId.for_this_process()
            verdict = same_host_process.examine(owner, LivenessContext(observer, 0, 100_000))
        finally:
            monkeypatch.undo()
            container.kill()
    assert probe.calls == []
    assert not verdict.process_is_gone


def test_successor_with_the_same_pid_does_not_hide_its_predecessor(observer: OwnerId):
    # Field cases 6 and 7: a fixed host name and a reused pid.
    predecessor = dataclasses.replace(observer, nonce="t1-0123456789abcdef")
    assert not same_host_process(predecessor, LivenessContext(observer, 0, 100_000))


def test_verdict_says_what_was_seen(dead_owner: OwnerId, observer: OwnerId):
    verdict = same_host_process.examine(dead_owner, LivenessContext(observer, 0, 100_000))
    assert verdict.observed == {
        "pid": dead_owner.pid,
        "process": "gone",
        "reason": "no-such-process",
        "lock": "not-announced",
    }


def nonce_of(pid: int) -> str:
    return f"t{ticks_of(pid)}-0123456789abcdef"


def ticks_of(pid: int) -> int:
    stat = parse_stat(Path(f"/proc/{pid}/stat").read_text())
    assert stat is not None
    return stat.start_ticks


def wait_for_state(pid: int, state: str) -> None:
    deadline = time.monotonic() + 20
    while f") {state} " not in Path(f"/proc/{pid}/stat").read_text():
        assert time.monotonic() < deadline, f"the process never reached state {state}"
        time.sleep(0.01)
