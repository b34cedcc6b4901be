"""The package, installed from its wheel, in a project that `startproject` has just made."""

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

from tests.conftest import url_of

pytestmark = pytest.mark.timeout(240)

RUNS = """\
from django_runstore import handler


@handler("shop.sum")
def add_up(run):
    state = run.state
    while state["next"] <= state["last"]:
        state["total"] += state["next"]
        state["next"] += 1
        run.save(state)
    return {"total": state["total"]}
"""

SUBMIT = """\
from shop.runs import add_up
handle = add_up.submit({"next": 1, "last": 10, "total": 0}, run_id="sum-to-ten")
print("submitted", handle.status)
"""

REPORT = """\
import django_runstore
from django_runstore.handlers import RunHandle
handle = RunHandle("sum-to-ten")
print("ended", handle.status, handle.result()["total"])
print("from", django_runstore.__file__)
"""


class Project:
    """A folder with a ``manage.py``."""

    def __init__(self, folder: Path, package: Path) -> None:
        self.folder = folder
        # Before the checkout, which the environment of the tests has installed.
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if name not in {"DATABASE_URL", "DJANGO_SETTINGS_MODULE"}
        } | {"PYTHONPATH": str(package), "PYTHONWARNINGS": "error"}

    def run(self, *command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def manage(self, *command: str) -> str:
        return self.run("manage.py", *command)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[dict[str, Any] | None]:
    """A database without tables; None for the one that the new project has by itself."""
    if connection.vendor != "postgresql":
        yield None
        return
    settings = dict(connection.settings_dict)
    settings["NAME"] = f"fresh_{secrets.token_hex(4)}"
    with psycopg.connect(
        **connection.get_connection_params() | {"dbname": "postgres"}, autocommit=True
    ) as server:
        server.execute(f'CREATE DATABASE "{settings["NAME"]}"')
        yield settings
        server.execute(f'DROP DATABASE "{settings["NAME"]}" WITH (FORCE)')


@pytest.fixture
def project(tmp_path: Path, unpacked_wheel: Path, database: dict[str, Any] | None) -> Project:
    project = Project(tmp_path, unpacked_wheel)
    project.run("-m", "django", "startproject", "bookshop", ".")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / "runs.py").write_text(RUNS)
    with (tmp_path / "bookshop" / "settings.py").open("a") as settings:
        settings.write('\nINSTALLED_APPS += ["django_runstore", "shop"]\n')
        if database is not None:
            url = url_of(database)
            settings.write(
                f'import environ\nDATABASES["default"] = environ.Env.db_url_config("{url}")\n'
            )
    return project


def test_a_fresh_project_migrates_checks_submits_and_supervises(project: Project) -> None:
    assert "runstore.0001_initial... OK" in project.manage("migrate", "--no-color")
    project.manage("check", "--database", "default")
    assert "No changes detected" in project.manage("makemigrations", "--check", "--dry-run")
    assert "submitted pending" in project.manage("shell", "--no-imports", "-c", SUBMIT)
    project.manage("runstore_supervise", "--drain", "--concurrency", "1")

    said = project.manage("shell", "--no-imports", "-c", REPORT)

    assert "ended completed 55" in said
    assert f"from {project.environment['PYTHONPATH']}" in said
