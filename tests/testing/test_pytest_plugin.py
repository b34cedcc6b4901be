"""The fixtures in a project of their own, and the project that does not ask for them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from django_runstore.clocks import clock_for
from django_runstore.testing.pytest_plugin import NEW_YEAR_MS

ROOT = Path(__file__).resolve().parents[2]

TESTS = """\
from django_runstore import handler

@handler("shop.answer")
def answer(run):
    return run.step("only", lambda: 42)

def test_inside_a_transaction(runstore_runner, runstore_clock):
    handle = answer.submit(available_at_ms=runstore_clock.now_ms() + 60_000)
    runstore_runner.run_until_idle(advance_clock=True)
    assert handle.result() == 42

def test_outside_of_one(transactional_db, runstore_runner):
    handle = answer.submit()
    runstore_runner.run_until_idle()
    assert handle.result() == 42
"""


def run_pytest(folder, *options):
    (folder / "pytest.ini").write_text(
        "[pytest]\nDJANGO_SETTINGS_MODULE = testproject.settings\nfilterwarnings = error\n"
    )
    environment = os.environ | {"DATABASE_URL": "sqlite://:memory:", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("way", ["conftest", "option"])
def test_a_project_gets_the_fixtures_that_it_asks_for(tmp_path, way):
    (tmp_path / "test_shop.py").write_text(TESTS)
    options = []
    if way == "conftest":
        asks = 'pytest_plugins = ["django_runstore.testing.pytest_plugin"]\n'
        (tmp_path / "conftest.py").write_text(asks)
    else:
        options = ["-p", "django_runstore.testing.pytest_plugin"]

    run = run_pytest(tmp_path, *options)

    assert run.returncode == 0, run.stdout + run.stderr
    assert "2 passed" in run.stdout


def test_a_project_that_does_not_ask_gets_none(tmp_path):
    (tmp_path / "test_shop.py").write_text(TESTS)

    run = run_pytest(tmp_path)

    assert "fixture 'runstore_runner' not found" in run.stdout


def test_the_plugin_can_be_loaded_before_there_are_settings():
    code = (
        "import django_runstore.testing.pytest_plugin, sys\n"
        "from django.conf import settings\n"
        "print(settings.configured, 'django_runstore.models' in sys.modules)\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )

    assert child.stdout == "False False\n", child.stderr


def test_the_clock_is_every_stores_and_begins_at_a_day_that_looks_like_one(runstore_clock):
    assert clock_for("default") is runstore_clock
    assert runstore_clock.now_ms() == NEW_YEAR_MS


def test_the_runner_works_on_the_default_database(runstore_runner):
    assert runstore_runner.using == "default"
