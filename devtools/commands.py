"""What ``dev.py`` can do, each as a function from its options to an exit status."""

import argparse
import os
import secrets
import shlex
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence

from devtools.children import run
from devtools.environment import ROOT, Environment, say
from devtools.legs import LEGS, run_leg
from devtools.summary import closing_line, describe, succeeded

# How pytest runs when it is told nothing: everything, by two processes. That halves
# the time on two cores, and more would be in the way of tests that watch the clock.
WHOLE_SUITE = ("-n", "2", "--dist", "worksteal", "--durations", "15")

FIRST_PORT = 8000
PORTS_TO_TRY = 20

# Nothing that `check` runs needs data.
NO_DATABASE = {"DATABASE_URL": "sqlite:///:memory:"}


def run_tests(options: argparse.Namespace, environment: Environment, rest: Sequence[str]) -> int:
    """Run the suite on every database, report coverage, and sum up."""
    environment.ensure("test")
    coverage = [str(environment.python), "-m", "coverage"]
    if options.coverage:
        subprocess.run([*coverage, "erase"], cwd=ROOT, check=True)
    results = []
    for leg in LEGS.values() if options.leg == "all" else [LEGS[options.leg]]:
        say(f"testing on {leg.name}")
        results.append(run_leg(leg, environment, rest or WHOLE_SUITE, coverage=options.coverage))
    if options.coverage:
        subprocess.run([*coverage, "combine", "--quiet"], cwd=ROOT, check=False)
        subprocess.run([*coverage, "report"], cwd=ROOT, check=False)
    print(describe(results, _platform(environment)))
    print(closing_line(results), flush=True)
    return 0 if succeeded(results, strict=os.environ.get("CI") == "true") else 1


def run_checks(options: argparse.Namespace, environment: Environment, rest: Sequence[str]) -> int:
    """Run every check to its end, and then say which of them failed."""
    del options, rest
    environment.ensure("test", "docs", "dev")
    python = str(environment.python)
    checks: dict[str, list[str]] = {
        "lint": ["-m", "ruff", "check", "."],
        "format": ["-m", "ruff", "format", "--check", "."],
        "types": ["-m", "mypy"],
        "system checks": ["manage.py", "check", "--fail-level", "WARNING"],
        "migrations": ["manage.py", "makemigrations", "--check", "--dry-run"],
        "docs": ["-m", "sphinx", "-W", "--keep-going", "-q", "docs", "docs/_build/html"],
    }
    failed = []
    for name, command in checks.items():
        say(f"{name}: {shlex.join(command)}")
        if run([python, *command], NO_DATABASE) != 0:
            failed.append(name)
    say(f"failed: {', '.join(failed)}" if failed else f"all {len(checks)} checks passed")
    return 1 if failed else 0


def run_demo(options: argparse.Namespace, environment: Environment, rest: Sequence[str]) -> int:
    """Run the demonstration; further arguments go to ``manage.py corpus_demo``."""
    environment.ensure("test")
    python = str(environment.python)
    command = [python, "manage.py", "corpus_demo", *rest]
    if options.database == "postgres":
        # Thrown away afterwards, and so never the one that a person names for tests.
        os.environ.pop("RUNSTORE_TEST_DATABASE_URL", None)
        command = [python, "-m", "django_runstore.testing.postgres", *command]
    return run(command, {"RUNSTORE_LEASES": "short"})


def run_chaos(options: argparse.Namespace, environment: Environment, rest: Sequence[str]) -> int:
    """Make a database and let a storm go over it; further arguments go to the storm."""
    environment.ensure("test")
    python = str(environment.python)
    seconds = str(options.minutes * 60)
    storm = [python, "-m", "tests.chaos.storm", "--seconds", seconds, *rest]
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "DATABASE_URL": f"sqlite:///{folder}/storm.sqlite3",
            "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
        }
        launcher = []
        if options.database == "postgres":
            os.environ.pop("RUNSTORE_TEST_DATABASE_URL", None)
            launcher = [python, "-m", "django_runstore.testing.postgres"]
        migrate = f"{shlex.quote(python)} manage.py migrate --verbosity 0"
        return run([*launcher, "sh", "-c", f"{migrate} && {shlex.join(storm)}"], settings)


def take_pictures(
    options: argparse.Namespace, environment: Environment, rest: Sequence[str]
) -> int:
    """Take the pictures in ``docs/images`` anew."""
    del options, rest
    environment.ensure("test")
    return run([str(environment.python), "-m", "devtools.screenshots"])


def run_server(options: argparse.Namespace, environment: Environment, rest: Sequence[str]) -> int:
    """Serve the admin on the demonstration's database until it is interrupted."""
    environment.ensure("test")
    manage = [str(environment.python), "manage.py"]
    password = secrets.token_urlsafe(9)
    prepared = run([*manage, "migrate", "--verbosity", "0"]) or run(
        [*manage, "throwaway_admin", "visitor"], {"THROWAWAY_PASSWORD": password}
    )
    if prepared != 0:
        return prepared
    port = options.port or free_port(FIRST_PORT)
    server = [*manage, "runserver", "--noreload", f"127.0.0.1:{port}", *rest]
    try:
        with subprocess.Popen(server, cwd=ROOT) as process:
            # What a person reads last is what they need, and it is true by then.
            while process.poll() is None and not is_listening(port):
                time.sleep(0.1)
            if process.poll() is None:
                print(f"\n  http://127.0.0.1:{port}/admin/")
                print(f"  login: visitor   password: {password}\n")
                print("  The password is new each time. Ctrl-C ends the server.\n", flush=True)
            return process.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        run([*manage, "throwaway_admin", "visitor", "--remove"])


def free_port(first: int) -> int:
    """Return the first port from ``first`` on that nobody listens on."""
    ports = range(first, first + PORTS_TO_TRY)
    return next((port for port in ports if not is_listening(port)), first)


def is_listening(port: int) -> bool:
    """Tell whether somebody answers on a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _platform(environment: Environment) -> str:
    code = (
        "import django, sys; print(f'Python {sys.version.split()[0]}, Django', django.__version__)"
    )
    command = [str(environment.python), "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
