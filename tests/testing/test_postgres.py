"""The plugin finds a PostgreSQL, or says that there is none, and hands on its URL."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from django_runstore.testing import postgres
from django_runstore.testing.postgres import (
    BINARIES_VARIABLE,
    UNAVAILABLE_STATUS,
    URL_VARIABLE,
    PostgresUnavailableError,
    find_binaries,
    postgres_database,
    throwaway_postgres,
)

PRINT_URL = "import os; print(os.environ['DATABASE_URL'])"


@pytest.fixture
def no_binaries(monkeypatch):
    monkeypatch.delenv(BINARIES_VARIABLE, raising=False)
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    monkeypatch.setattr(postgres, "_wheel_folders", list)
    monkeypatch.setattr(postgres, "_system_folders", list)


def run_in_front_of(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {URL_VARIABLE, BINARIES_VARIABLE, "DATABASE_URL"}
    }
    return subprocess.run(
        [sys.executable, "-m", "django_runstore.testing.postgres", *command],
        capture_output=True,
        text=True,
        check=False,
        env=environment | variables,
    )


def test_a_named_database_is_taken_before_anything_is_started(monkeypatch, no_binaries):
    monkeypatch.setenv(URL_VARIABLE, "postgres://u:secret@db/name")

    with postgres_database() as database:
        assert database.url == "postgres://u:secret@db/name"
        assert "secret" not in database.description


def test_the_binaries_of_the_wheel_come_before_those_of_the_system(monkeypatch):
    monkeypatch.setattr(postgres, "_wheel_folders", lambda: [Path("/wheel/bin")])
    monkeypatch.setattr(postgres, "_system_folders", lambda: [Path("/system/bin")])

    assert [found.folder for found in find_binaries({})] == [
        Path("/wheel/bin"),
        Path("/system/bin"),
    ]


def test_binaries_that_are_named_are_the_only_ones(monkeypatch):
    found = find_binaries({BINARIES_VARIABLE: "/chosen"})

    assert [one.folder for one in found] == [Path("/chosen")]


def test_one_folder_under_two_names_is_tried_once(monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "bin")
    monkeypatch.setattr(postgres, "_wheel_folders", list)
    monkeypatch.setattr(postgres, "_system_folders", lambda: [tmp_path / "bin", tmp_path / "link"])

    assert len(find_binaries({})) == 1


def test_the_newest_of_several_versions_comes_first(monkeypatch, tmp_path):
    for version in ("9", "15", "18"):
        (tmp_path / version / "bin").mkdir(parents=True)
        (tmp_path / version / "bin" / "initdb").touch()
    monkeypatch.setattr(postgres, "SYSTEM_FOLDERS", (f"{tmp_path}/*/bin",))
    monkeypatch.setenv("PATH", "/nowhere")

    found = postgres._system_folders()

    assert [folder.parent.name for folder in found] == ["18", "15", "9"]


def test_binaries_that_fail_give_way_to_the_next(monkeypatch, tmp_path):
    working = find_binaries(os.environ)[0]
    monkeypatch.delenv(BINARIES_VARIABLE, raising=False)
    monkeypatch.setattr(postgres, "_wheel_folders", lambda: [tmp_path])
    monkeypatch.setattr(postgres, "_system_folders", lambda: [working.folder])

    with throwaway_postgres() as database:
        assert str(working.folder) in database.description


def test_without_any_the_error_says_what_can_be_done(no_binaries):
    with (
        pytest.raises(PostgresUnavailableError, match=f"Install .* or name .* {URL_VARIABLE}"),
        postgres_database(),
    ):
        pytest.fail("there is none")


def test_a_command_runs_on_a_database_of_its_own():
    done = run_in_front_of(sys.executable, "-c", PRINT_URL)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("postgres://runstore@:5432/runstore?host=")
    assert done.stderr.startswith("database: PostgreSQL ")


def test_the_status_of_the_command_is_handed_on():
    done = run_in_front_of(sys.executable, "-c", "raise SystemExit(7)", **{URL_VARIABLE: "x://"})

    assert done.returncode == 7


def test_a_command_is_not_started_without_a_database(tmp_path):
    done = run_in_front_of(
        sys.executable, "-c", "print('started')", **{BINARIES_VARIABLE: str(tmp_path)}
    )

    assert done.returncode == UNAVAILABLE_STATUS
    assert "started" not in done.stdout
    assert str(tmp_path) in done.stderr


def run_pytest(folder: Path, test: str, *arguments: str, **variables: str) -> str:
    (folder / "test_it.py").write_text(test)
    (folder / "pytest.ini").write_text("[pytest]\n")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {URL_VARIABLE, "DATABASE_URL", "DJANGO_SETTINGS_MODULE"}
    }
    # The plugins that a test is not about take seconds to load.
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = ["-m", "pytest", "-p", "django_runstore.testing.postgres", *arguments, str(folder)]
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=environment | variables,
    )
    return done.stdout + done.stderr


def test_the_plugin_sets_the_url_before_settings_are_read(tmp_path):
    (tmp_path / "early_settings.py").write_text(
        "import os\nSEEN = os.environ['DATABASE_URL']\nSECRET_KEY = 'x'\n"
    )
    said = run_pytest(
        tmp_path,
        "def test_seen(settings):\n    assert settings.SEEN.startswith('postgres://')\n",
        "-p",
        "pytest_django.plugin",
        "--ds=early_settings",
        RUNSTORE_TEST_LEG="postgres",
        PYTHONPATH=str(tmp_path),
    )

    assert "1 passed" in said
    assert "database: PostgreSQL " in said


def test_the_workers_of_xdist_use_the_one_cluster(tmp_path):
    said = run_pytest(
        tmp_path,
        "import os, pytest\n"
        "@pytest.mark.parametrize('n', range(4))\n"
        "def test_url(n):\n"
        "    with open(os.environ['URLS'], 'a') as file:\n"
        "        file.write(os.environ['DATABASE_URL'] + '\\n')\n",
        "-p",
        "xdist.plugin",
        "-n",
        "2",
        RUNSTORE_TEST_LEG="postgres",
        URLS=str(tmp_path / "urls"),
    )

    assert "4 passed" in said
    assert len(set((tmp_path / "urls").read_text().split())) == 1


def test_without_the_leg_the_plugin_does_nothing(tmp_path):
    said = run_pytest(
        tmp_path,
        "import os\ndef test_unset():\n    assert 'DATABASE_URL' not in os.environ\n",
        RUNSTORE_TEST_LEG="sqlite",
    )

    assert "1 passed" in said


def test_a_leg_without_postgresql_ends_with_a_usage_error(tmp_path):
    said = run_pytest(
        tmp_path,
        "def test_never():\n    pass\n",
        RUNSTORE_TEST_LEG="postgres",
        **{BINARIES_VARIABLE: str(tmp_path)},
    )

    assert "PostgreSQL cannot be started" in said
    assert "passed" not in said
