"""What an installation contains."""

import tarfile
from email.parser import Parser
from pathlib import Path

import pytest

import django_runstore

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def metadata(unpacked_wheel):
    (folder,) = unpacked_wheel.glob("*.dist-info")
    return Parser().parsestr((folder / "METADATA").read_text())


def test_the_wheel_holds_every_file_of_the_package(unpacked_wheel):
    package = {
        path.relative_to(ROOT)
        for path in (ROOT / "django_runstore").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    installed = {
        path.relative_to(unpacked_wheel)
        for path in (unpacked_wheel / "django_runstore").rglob("*")
        if path.is_file()
    }

    assert installed == package


@pytest.mark.parametrize("name", ["py.typed", "migrations/0001_initial.py"])
def test_the_wheel_holds_what_is_not_imported_by_name(unpacked_wheel, name):
    assert (unpacked_wheel / "django_runstore" / name).exists()


def test_the_wheel_holds_nothing_but_the_package(unpacked_wheel):
    assert {path.name.partition("-")[0] for path in unpacked_wheel.iterdir()} == {"django_runstore"}


def test_the_wheel_needs_three_distributions_at_run_time(metadata):
    needed = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]

    assert {line.partition(">")[0] for line in needed} == {
        "django",
        "django-environ",
        "psycopg[binary]",
    }


def test_the_version_is_the_one_that_the_package_states(metadata):
    assert metadata["Version"] == django_runstore.__version__


def test_the_wheel_carries_the_licence(unpacked_wheel):
    assert list(unpacked_wheel.glob("*.dist-info/licenses/LICENSE"))


def test_the_source_distribution_can_build_the_wheel_again(distributions):
    (archive,) = distributions.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        names = {name.partition("/")[2] for name in files.getnames()}

    assert {"pyproject.toml", "README.md", "LICENSE", "django_runstore/py.typed"} <= names
