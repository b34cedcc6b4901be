"""dev.py's environment is made once and remade when its recipe changes."""

import json
import subprocess
import sys

import pytest

from devtools import environment as module
from devtools.environment import Environment, chosen_environment, constraints_for

CONSTRAINTS = """\
django==5.2.19 ; python_full_version < '3.12'
django==6.1.3 ; python_full_version >= '3.12'
django-environ==0.14.0
psycopg==3.3.9
"""


class Commands:
    """Stands in for the programs that make an environment and install into it."""

    def __init__(self, monkeypatch):
        self.ran = []
        self.fails = False
        monkeypatch.setattr(module.subprocess, "run", self)
        monkeypatch.setattr(module, "find_uv", lambda: None)

    def __call__(self, command, **_options):
        self.ran.append(command)
        if "venv" in command:
            folder = module.Path(command[-1])
            (folder / "bin").mkdir(parents=True)
            (folder / "bin" / "python").touch()
        elif self.fails:
            raise subprocess.CalledProcessError(1, command)

    @property
    def installed(self):
        return [command[-1] for command in self.ran if "install" in command]

    @property
    def made(self):
        return [command[-1] for command in self.ran if "venv" in command]


@pytest.fixture
def commands(monkeypatch):
    return Commands(monkeypatch)


def test_a_second_call_runs_nothing(commands, tmp_path):
    environment = Environment(tmp_path / "venv")
    environment.ensure("test")
    commands.ran.clear()

    environment.ensure("test")

    assert commands.ran == []


def test_further_extras_are_added_to_what_is_there(commands, tmp_path):
    environment = Environment(tmp_path / "venv")
    environment.ensure("test")

    environment.ensure("test", "docs")

    assert len(commands.made) == 1
    assert commands.installed == [".[test]", ".[docs]"]


def test_a_changed_recipe_makes_the_environment_anew(commands, tmp_path):
    Environment(tmp_path / "venv").ensure("test")

    Environment(tmp_path / "venv", django="5.2").ensure("test")

    assert len(commands.made) == 2


def test_the_recipe_changes_with_the_constraints(monkeypatch, tmp_path):
    before = Environment(tmp_path).recipe()
    changed = tmp_path / "constraints.txt"
    changed.write_text(CONSTRAINTS)
    monkeypatch.setattr(module, "CONSTRAINTS", changed)

    assert Environment(tmp_path).recipe() != before


def test_an_installation_that_failed_is_not_taken_for_done(commands, tmp_path):
    environment = Environment(tmp_path / "venv")
    commands.fails = True
    with pytest.raises(subprocess.CalledProcessError):
        environment.ensure("test")
    commands.fails = False

    environment.ensure("test")

    assert len(commands.made) == 2
    assert json.loads((tmp_path / "venv" / module.STAMP_NAME).read_text())["extras"] == ["test"]


def test_a_broken_stamp_is_no_stamp(commands, tmp_path):
    environment = Environment(tmp_path / "venv")
    environment.ensure("test")
    (tmp_path / "venv" / module.STAMP_NAME).write_text("{")

    environment.ensure("test")

    assert len(commands.made) == 2


def test_another_django_replaces_the_pinned_one_and_nothing_else():
    assert constraints_for(CONSTRAINTS, "5.2").splitlines() == [
        "django-environ==0.14.0",
        "psycopg==3.3.9",
        "django==5.2.*",
    ]


def test_without_another_django_the_constraints_stay_as_they_are():
    assert constraints_for(CONSTRAINTS, "") == CONSTRAINTS


@pytest.mark.parametrize(
    ("python", "django", "name"),
    [
        ("", "", ".venv"),
        ("", "5.2", ".venv-django5.2"),
        ("3.x", "", f".venv-py{sys.version_info.major}.{sys.version_info.minor}"),
    ],
)
def test_other_versions_have_an_environment_of_their_own(monkeypatch, python, django, name):
    monkeypatch.delenv("RUNSTORE_VENV", raising=False)

    assert chosen_environment(python, django).folder.name == name


def test_the_folder_can_be_named(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNSTORE_VENV", str(tmp_path))

    assert chosen_environment("3.11", "5.2").folder == tmp_path


def test_the_constraints_name_no_address():
    assert "://" not in module.CONSTRAINTS.read_text()
