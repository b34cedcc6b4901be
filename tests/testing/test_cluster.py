"""A throw-away cluster is there while it is wanted, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from django_runstore.testing import cluster
from django_runstore.testing.cluster import Binaries, ClusterFailedError, throwaway_cluster
from django_runstore.testing.postgres import find_binaries

SECONDS = 30

HOLD_A_CLUSTER = """
import sys
from django_runstore.testing.postgres import throwaway_postgres
with throwaway_postgres() as database:
    print(database.url, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def binaries() -> Binaries:
    return find_binaries(os.environ)[0]


@pytest.fixture(scope="module")
def running(binaries: Binaries) -> Iterator[Path]:
    """The folder of a cluster for tests that only look."""
    with throwaway_cluster(binaries) as url:
        yield folder_of(url)


@pytest.fixture
def temporary_root(monkeypatch):
    """A place of one's own for the folders, short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="c", dir="/tmp") as folder:
        # Whoever runs the server has to get through.
        Path(folder).chmod(0o755)
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield Path(folder)
    tempfile.tempdir = None


def folder_of(url: str) -> Path:
    return Path(url.partition("?host=")[2]).parent


def connect(folder: Path) -> psycopg.Connection:
    return psycopg.connect(host=folder / "server", user="runstore", dbname="runstore")


def postmaster(folder: Path) -> int:
    return int((folder / "server" / "data" / "postmaster.pid").read_text().split("\n")[0])


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] not in "ZX"


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.02)


def test_it_answers_inside_the_block_and_is_gone_after_it(binaries, temporary_root):
    with throwaway_cluster(binaries) as url:
        folder = folder_of(url)
        pid = postmaster(folder)
        with connect(folder) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)

    assert not is_running(pid)
    assert list(temporary_root.iterdir()) == []


def test_it_listens_on_its_socket_only(running):
    with connect(running) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)


def test_the_server_does_not_run_as_root(running):
    process = Path(f"/proc/{postmaster(running)}")
    in_this_namespace = (process / "ns/user").readlink() == Path("/proc/self/ns/user").readlink()

    assert process.stat().st_uid != 0 or not in_this_namespace


def test_nobody_else_can_enter_the_folder_of_its_socket(running):
    assert (running / "server").stat().st_mode & 0o077 == 0


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux ends the server")
def test_it_ends_with_a_process_that_is_killed_and_the_next_start_sweeps(binaries, temporary_root):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_A_CLUSTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        folder = folder_of(holder.stdout.readline().strip())
        pid = postmaster(folder)
        holder.kill()
    wait_until(lambda: not is_running(pid))
    assert folder.exists()

    cluster.sweep()

    assert not folder.exists()


def test_the_sweep_ends_a_server_that_outlived_its_process(binaries, temporary_root, monkeypatch):
    monkeypatch.setattr(cluster, "_die_with_parent", lambda: None)
    with throwaway_cluster(binaries) as url:
        folder = folder_of(url)
        pid = postmaster(folder)
        # Free the lock, as the end of the process would.
        (folder / cluster.LOCK_NAME).rename(folder / "old")
        (folder / cluster.LOCK_NAME).touch()

        cluster.sweep()

        wait_until(lambda: not is_running(pid))
        assert not folder.exists()


def test_the_sweep_leaves_a_living_process_its_cluster(binaries, temporary_root):
    with throwaway_cluster(binaries) as url:
        cluster.sweep()

        assert is_running(postmaster(folder_of(url)))


def test_the_sweep_leaves_a_folder_alone_that_is_only_being_made(temporary_root):
    folder = temporary_root / f"{cluster.FOLDER_PREFIX}young"
    folder.mkdir()

    cluster.sweep()

    assert folder.exists()


def test_the_sweep_does_not_signal_a_process_that_got_the_number_since(temporary_root):
    folder = temporary_root / f"{cluster.FOLDER_PREFIX}old"
    (folder / "server" / "data").mkdir(parents=True)
    (folder / cluster.LOCK_NAME).touch()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        (folder / "server" / "data" / "postmaster.pid").write_text(f"{stranger.pid}\n")

        cluster.sweep()

        assert stranger.poll() is None
        stranger.send_signal(signal.SIGTERM)
    assert not folder.exists()


def test_the_settings_of_clients_do_not_reach_the_server(binaries, temporary_root, monkeypatch):
    monkeypatch.setenv("PGDATA", "/nowhere")
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("LC_ALL", "xx_YY")

    with throwaway_cluster(binaries) as url:
        assert (folder_of(url) / "server" / ".s.PGSQL.5432").exists()


def test_binaries_that_do_not_run_are_named_with_what_they_answered(tmp_path, temporary_root):
    for name in ("initdb", "postgres"):
        (tmp_path / name).write_text("#!/bin/sh\necho 'wrong architecture' >&2\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    tmp_path.chmod(0o755)

    with (
        pytest.raises(ClusterFailedError, match=r"the attic: as .*: initdb: "),
        throwaway_cluster(Binaries(tmp_path, "the attic")),
    ):
        pytest.fail("it started")
    assert list(temporary_root.iterdir()) == []


def test_text_without_a_collation_is_not_in_byte_order_where_the_build_can_help(temporary_root):
    """An order that nobody asked for has to show, so that tests find the missing COLLATE."""
    able = [
        found
        for found in find_binaries(os.environ)
        if b"with-icu"
        in subprocess.run(
            [found.folder / "pg_config", "--configure"], capture_output=True, check=False
        ).stdout
    ]
    if not able:
        pytest.skip("no PostgreSQL with ICU here")
    with throwaway_cluster(able[0]) as url, connect(folder_of(url)) as connection:
        assert connection.execute("SELECT 'a' < 'B'").fetchone() == (True,)
