"""
A PostgreSQL cluster of one's own, made in a temporary folder and thrown away.

It listens on a unix socket only, trusts whoever reaches that socket, never waits
for the disk, and ends with the process that started it: by the context manager,
by the kernel where the process is killed (Linux), or else by the next start,
which sweeps away what a dead process left behind.
"""

import contextlib
import ctypes
import fcntl
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

FOLDER_PREFIX: Final = "runstore-postgres-"
LOCK_NAME: Final = "owner.lock"
START_SECONDS: Final = 60
STOP_SECONDS: Final = 10

# The longest path a unix socket may have is 103 bytes on macOS and 107 on Linux.
LONGEST_FOLDER: Final = 70

# "prctl(PR_SET_PDEATHSIG, ...)": the kernel signals the server when we die.
PR_SET_PDEATHSIG: Final = 1

SERVER_OPTIONS: Final = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    # In the data folder, not in /dev/shm: containers give that one 64 MB, and
    # what a killed server leaves there nobody sweeps.
    "dynamic_shared_memory_type": "mmap",
    "log_min_messages": "warning",
}

# A linguistic order where the build has one, so that a text which needs byte
# order and does not ask for it gives itself away; else the order of bytes.
LOCALES: Final = (
    ("--locale-provider=icu", "--icu-locale=en-US", "--locale=C"),
    ("--locale=C",),
)


class ClusterFailedError(Exception):
    """The binaries at hand do not start; the message says what each attempt answered."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with ``initdb`` and ``postgres`` and, for people, where it was found."""

    folder: Path
    source: str

    def version(self) -> str:
        """Return the version that the server program states, or say that it does not run."""
        try:
            answer = subprocess.run(
                [self.folder / "postgres", "--version"], capture_output=True, text=True, check=False
            )
        except OSError as error:
            raise ClusterFailedError(f"{self.source}: {error.strerror}") from error
        found = re.search(r"\d+(\.\d+)?", answer.stdout)
        if found is None:
            raise ClusterFailedError(f"{self.source}: {answer.stderr.strip()}")
        return found.group()


@dataclass(frozen=True, slots=True)
class Account:
    """Who runs the server: a system user, or a command that drops privileges on its way."""

    name: str
    uid: int | None = None
    gid: int | None = None
    prefix: tuple[str, ...] = ()


@contextmanager
def throwaway_cluster(binaries: Binaries) -> Iterator[str]:
    """
    Start a cluster with an empty database and end it on leaving the block.

    Enter it in a thread that lives as long as the cluster is needed: the kernel
    takes the end of that thread for the end of the process.

    Yields:
        The database URL, as ``DATABASE_URL`` takes it.

    Raises:
        ClusterFailedError: No permitted way of running these binaries worked.
    """
    sweep()
    with ExitStack() as cleanup:
        folder = cleanup.enter_context(_owned_folder())
        refusals = []
        for account in _accounts():
            try:
                data, socket_folder = _initialise(binaries, account, folder)
                server = _launch(binaries, account, data, socket_folder)
            except (OSError, ClusterFailedError) as error:
                refusals.append(f"as {account.name}: {error}")
                continue
            cleanup.callback(_stop, server)
            yield _create_database(socket_folder)
            return
        raise ClusterFailedError(f"{binaries.source}: " + "; ".join(refusals))


def sweep() -> None:
    """End the servers and remove the folders of processes that no longer exist."""
    for folder in Path(_temporary_root()).glob(f"{FOLDER_PREFIX}*"):
        # Only what is our own: anybody may put a folder of this name there.
        if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
            continue
        with contextlib.suppress(FileNotFoundError, BlockingIOError, PermissionError):
            with (folder / LOCK_NAME).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _end_stray_server(folder)
            shutil.rmtree(folder, ignore_errors=True)


def _temporary_root() -> str:
    usual = tempfile.gettempdir()
    return usual if len(usual) + len(FOLDER_PREFIX) < LONGEST_FOLDER else "/tmp"  # noqa: S108 - a socket needs a short path


@contextmanager
def _owned_folder() -> Iterator[Path]:
    """Make a folder whose lock tells every other process that this one lives."""
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=_temporary_root()))
    # The account that runs the server passes through; it cannot look around.
    folder.chmod(0o711)
    unlocked = folder / "lock"
    with unlocked.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Under its name only once it is held, so that no sweep finds it free.
        unlocked.rename(folder / LOCK_NAME)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _accounts() -> Iterator[Account]:
    """Name the accounts to try in turn; PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        yield Account("the current user")
        return
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            yield Account(name, entry.pw_uid, entry.pw_gid)
    # Neither can reach binaries in a folder closed to all but root. In a user
    # namespace the server is root towards the files and is not root to itself.
    if unshare := shutil.which("unshare"):
        yield Account(
            "an unprivileged user namespace",
            prefix=(unshare, "--user", "--map-user=1000", "--map-group=1000"),
        )


def _initialise(binaries: Binaries, account: Account, folder: Path) -> tuple[Path, Path]:
    home = folder / "server"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(mode=0o700)
    if account.uid is not None and account.gid is not None:
        os.chown(home, account.uid, account.gid)
    data = home / "data"
    answer = ""
    for locale in LOCALES:
        done = subprocess.run(
            [
                *account.prefix,
                binaries.folder / "initdb",
                f"--pgdata={data}",
                "--username=runstore",
                "--auth=trust",
                "--encoding=UTF8",
                "--no-sync",
                "--no-instructions",
                *locale,
            ],
            user=account.uid,
            group=account.gid,
            extra_groups=None if account.uid is None else [],
            cwd="/",
            env=_server_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            return data, home
        answer = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no answer"
    raise ClusterFailedError(f"initdb: {answer}")


def _server_environment() -> dict[str, str]:
    """Keep the settings meant for clients (PGHOST, PGDATA, ...) away from the server."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PG", "LC_")) and name != "LANG"
    }


def _launch(
    binaries: Binaries, account: Account, data: Path, socket_folder: Path
) -> subprocess.Popen[bytes]:
    options = SERVER_OPTIONS | {"unix_socket_directories": str(socket_folder)}
    with (socket_folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [
                *account.prefix,
                binaries.folder / "postgres",
                f"-D{data}",
                *(f"--{name}={value}" for name, value in options.items()),
            ],
            user=account.uid,
            group=account.gid,
            extra_groups=None if account.uid is None else [],
            cwd="/",
            env=_server_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # A terminal's Ctrl-C is for the tests; the server ends after them.
            start_new_session=True,
            preexec_fn=_die_with_parent(),  # noqa: PLW1509 - one system call, prepared before the fork
        )
    try:
        _await_answer(server, socket_folder)
    except BaseException:
        _stop(server)
        raise
    return server


def _die_with_parent() -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    # Loaded here: between fork and exec nothing may be imported or allocated.
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def ask_the_kernel() -> None:
        prctl(PR_SET_PDEATHSIG, int(signal.SIGQUIT), 0, 0, 0)

    return ask_the_kernel


def _await_answer(server: subprocess.Popen[bytes], socket_folder: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            psycopg.connect(_conninfo(socket_folder, "postgres")).close()
        except psycopg.OperationalError as error:
            if server.poll() is not None:
                log = (socket_folder / "server.log").read_text(errors="replace").strip()
                answer = log.splitlines()[-1] if log else f"exit status {server.returncode}"
                raise ClusterFailedError(f"postgres: {answer}") from error
            if time.monotonic() > deadline:
                message = f"postgres: no answer within {START_SECONDS} s"
                raise ClusterFailedError(message) from error
            time.sleep(0.02)
        else:
            return


def _conninfo(socket_folder: Path, database: str) -> str:
    return psycopg.conninfo.make_conninfo(
        host=str(socket_folder), port=5432, user="runstore", dbname=database
    )


def _create_database(socket_folder: Path) -> str:
    with psycopg.connect(_conninfo(socket_folder, "postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE runstore")
    return f"postgres://runstore@:5432/runstore?host={socket_folder}"


def _stop(server: subprocess.Popen[bytes]) -> None:
    # Fast shutdown, then immediate shutdown, then no more asking.
    for request in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        server.send_signal(request)
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        return


def _end_stray_server(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError):
        pid = int((folder / "server" / "data" / "postmaster.pid").read_text().split("\n")[0])
        # The number may be another process's by now.
        if str(folder) in _command_line(pid):
            os.kill(pid, signal.SIGQUIT)
            deadline = time.monotonic() + STOP_SECONDS
            while time.monotonic() < deadline and str(folder) in _command_line(pid):
                time.sleep(0.02)


def _command_line(pid: int) -> str:
    if Path("/proc/self").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return ""
    listing = ["ps", "-o", "command=", "-p", str(pid)]
    return subprocess.run(listing, capture_output=True, text=True, check=False).stdout
