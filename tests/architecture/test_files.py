"""A file is named after one responsibility and small enough to be read as one."""

from pathlib import Path

import pytest

from tests.architecture.imports import ROOT

LINES = 350

# A test file goes through the cases of one source file and may take longer.
TEST_LINES = 520

# A longer file needs its reason here.
LONGER: dict[str, str] = {}

FOLDERS = ("devtools", "django_runstore", "docs", "testproject", "tests")
FILES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).glob("**/*.py")
    # Django writes migrations, at the length they take.
    if "migrations" not in path.relative_to(ROOT).parts[:-1] or folder == "tests"
)
VAGUE_NAMES = {"common", "helpers", "misc", "util", "utils"}


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def limit(path: Path) -> int:
    return TEST_LINES if path.name.startswith("test_") else LINES


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_a_file_is_short_enough_to_be_read_as_one(path: Path) -> None:
    lines = len(path.read_text().splitlines())

    assert lines <= limit(path) or relative(path) in LONGER


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_a_file_is_named_after_what_it_does(path: Path) -> None:
    assert not VAGUE_NAMES & {path.stem, *path.relative_to(ROOT).parts}


def test_an_exception_to_the_length_is_still_needed() -> None:
    unneeded = [
        name for name in LONGER if len((ROOT / name).read_text().splitlines()) <= limit(ROOT / name)
    ]

    assert unneeded == []
