"""Owners name one incarnation of one process, and read well in a log."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from django_runstore.conf import SETTING
from django_runstore.owners import NonceParts, OwnerId, same_host_incarnation
from django_runstore.process_identity import host_scope, own_start_ticks

ROOT = Path(__file__).parents[2]


def test_owner_checks_nothing_when_built():
    assert OwnerId("", -1, None).nonce is None  # type: ignore[arg-type]


def test_owner_of_this_process_carries_scope_pid_and_start_time():
    owner = OwnerId.for_this_process()
    parts = NonceParts.read(owner.nonce)
    assert parts is not None
    assert (owner.host_id, owner.pid, parts.start_ticks) == (
        host_scope(),
        os.getpid(),
        own_start_ticks(),
    )


def test_each_call_names_another_owner():
    assert OwnerId.for_this_process() != OwnerId.for_this_process()


def test_forked_child_has_an_identity_of_its_own():
    # In a fresh interpreter: forking the test process would copy its threads' locks.
    script = (
        "import os\n"
        "from django_runstore.owners import OwnerId, NonceParts\n"
        "from django_runstore.process_identity import own_start_ticks\n"
        "parent = OwnerId.for_this_process()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    child = OwnerId.for_this_process()\n"
        "    ticks = NonceParts.read(child.nonce).start_ticks\n"
        "    right = child.pid == os.getpid() != parent.pid and ticks == own_start_ticks()\n"
        "    os._exit(0 if right else 1)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


def test_owner_without_lock_announces_none():
    parts = NonceParts.read(OwnerId.for_this_process().nonce)
    assert parts is not None
    assert parts.lock_scope is None


def test_announcing_owner_tells_in_which_folder_its_lock_is(tmp_path: Path, settings):
    setattr(settings, SETTING, {"RUNTIME_DIR": tmp_path / "run"})
    owner = OwnerId.for_this_process(announces_lock=True)
    parts = NonceParts.read(owner.nonce)
    assert parts is not None
    assert owner.nonce.endswith("-L")
    assert parts.lock_scope == (tmp_path / "run/scope").read_text()


@pytest.mark.parametrize(
    "nonce",
    [
        "12345678-1234-4234-8234-123456789012",
        "123456-0123456789abcdef",
        "t123456",
        "t-0123456789abcdef",
        "t1-0123456789abcdef-L",
        "t1-0123456789ABCDEF",
        "t\u0661-0123456789abcdef",
        "t1-0123456789abcdef\n",
        "../t1-0123456789abcdef",
        "",
        "0f1e2d3c-4b5a-4678-9abc-def012345678",
        None,
        7,
    ],
    ids=ascii,
)
def test_nothing_is_read_into_a_nonce_made_elsewhere(nonce: object):
    assert NonceParts.read(nonce) is None


def test_nonce_without_start_time_says_so():
    parts = NonceParts.read("u-0123456789abcdef")
    assert parts == NonceParts(None, "0123456789abcdef", None)


@pytest.mark.conformance(68)
def test_same_host_incarnation_is_equality_of_host_ids():
    assert same_host_incarnation(OwnerId("a", 1, "x"), OwnerId("a", 2, "y"))
    assert not same_host_incarnation(OwnerId("a", 1, "x"), OwnerId("b", 1, "x"))


class TestDescribe:
    def test_is_short_and_names_host_and_pid(self):
        owner = OwnerId("web-1/boot/pid-1/time-2", 4102, "t8841-9f3a61c2d4e5f607")
        assert owner.describe() == "web-1 pid 4102 (9f3a61c2)"

    def test_shows_identities_of_other_hosts_as_they_are(self):
        assert OwnerId("h1", 100, "n1").describe() == "h1 pid 100 (n1)"

    @pytest.mark.parametrize("field", ["host_id", "pid", "nonce"])
    def test_stays_one_line_whatever_the_identity(self, field: str):
        hostile: dict[str, object] = {"host_id": "h", "pid": 1, "nonce": "n"}
        hostile[field] = "a\nERROR \x1b[31m" + "x" * 500
        shown = OwnerId(**hostile).describe()  # type: ignore[arg-type]
        assert shown.isprintable()
        assert len(shown) < 100
