"""dev.py picks the newest interpreter that really runs."""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def dev() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(version, program="/python", *, final=True, has_pip=True):
    return {"version": version, "program": program, "final": final, "has_pip": has_pip}


def program(folder: Path, name: str, script: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_the_newest_is_chosen_and_not_the_greatest_text(dev):
    answers = [answer([3, 11, 9], "a"), answer([3, 13, 0], "b"), answer([3, 12, 10], "c")]

    assert dev.newest(answers, "") == "b"


def test_what_is_too_old_is_not_chosen(dev):
    assert dev.newest([answer([3, 10, 13])], "") is None


def test_a_prerelease_is_not_chosen(dev):
    assert dev.newest([answer([3, 15, 0], "a", final=False), answer([3, 12, 1], "b")], "") == "b"


def test_an_interpreter_that_cannot_be_given_packages_is_not_chosen(dev, monkeypatch):
    monkeypatch.setattr(dev, "runs", lambda _command: False)

    assert dev.newest([answer([3, 13, 0], has_pip=False)], "") is None


def test_uv_can_give_packages_to_an_interpreter_without_pip(dev, monkeypatch):
    monkeypatch.setattr(dev, "runs", lambda command: command == ["uv", "--version"])

    assert dev.newest([answer([3, 13, 0], "a", has_pip=False)], "") == "a"


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [("3.11", "a"), ("3.13.0", "b"), ("3.1", None), ("3", "b"), ("3.14", None)],
)
def test_a_version_that_is_asked_for_is_kept_to(dev, wanted, chosen):
    answers = [answer([3, 11, 7], "a"), answer([3, 13, 0], "b")]

    assert dev.newest(answers, wanted) == chosen


def test_shims_that_fail_and_programs_that_talk_are_no_interpreters(dev, tmp_path):
    programs = [
        program(tmp_path, "fails", "echo 'python3.13: command not found' >&2; exit 127"),
        program(tmp_path, "talks", "echo hello"),
        str(tmp_path / "missing"),
        sys.executable,
    ]

    assert [found["version"] for found in dev.probe(programs)] == [list(sys.version_info[:3])]


def test_the_interpreter_of_a_virtual_environment_stands_for_the_one_it_came_from(dev):
    (found,) = dev.probe([sys.executable])

    assert os.path.realpath(found["program"]) == os.path.realpath(sys.executable)
    assert not found["program"].startswith(sys.prefix + os.sep) or sys.prefix == sys.base_prefix


@pytest.mark.parametrize(
    "arguments",
    [["test", "--python", "3.11"], ["--python=3.11", "test"], ["test", "--python=3.11"]],
)
def test_the_option_is_found_wherever_it_stands(dev, arguments):
    assert dev.requested_version(arguments) == "3.11"


def test_a_missing_interpreter_is_named_with_what_to_do(tmp_path):
    command = [sys.executable, ROOT / "dev.py", "test", "--python", "3.99"]
    child = subprocess.run(command, capture_output=True, text=True, check=False)

    assert child.returncode == 2
    assert "Python 3.99 was asked for" in child.stderr
    assert "--python /path/to/python" in child.stderr


def old_interpreters() -> list[str]:
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    return sorted(map(str, pyenv.glob("versions/[23].[0-9].*/bin/python")))


def test_dev_py_parses_for_the_oldest_python_that_the_parser_knows():
    source = (ROOT / "dev.py").read_text()

    ast.parse(source, feature_version=(3, 7))


def test_old_interpreters_on_this_machine_hand_over_to_a_newer_one():
    # Where there is none, the claim rests on the parser above.
    for old in old_interpreters():
        child = subprocess.run(
            [old, ROOT / "dev.py", "--help"], capture_output=True, text=True, check=False
        )

        assert child.returncode == 0, f"{old}: {child.stderr}"
        assert "usage: dev.py" in child.stdout
