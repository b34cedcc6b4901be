"""
Fixtures for pytest, on request only.

In ``conftest.py``::

    pytest_plugins = ["django_runstore.testing.pytest_plugin"]

or ``-p django_runstore.testing.pytest_plugin`` in the options of pytest. Needs pytest-django.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

# By way of the package, which imports the runner, and with it the models, on first use:
# a plugin is loaded before the settings are.
from django_runstore import testing

if TYPE_CHECKING:
    from collections.abc import Iterator

NEW_YEAR_MS: Final = 1_767_225_600_000
"""Where ``runstore_clock`` begins: 2026-01-01 00:00 UTC."""


@pytest.fixture
def runstore_clock() -> Iterator[testing.FakeClock]:
    """Give a ``FakeClock`` that every store reads while the test runs."""
    clock = testing.FakeClock(NEW_YEAR_MS)
    with testing.use_clock(clock):
        yield clock


@pytest.fixture
def runstore_runner(db: None) -> testing.Runner:  # noqa: ARG001 - the database is wanted, not its value
    """Give a ``Runner`` over the default database; works with ``transactional_db`` too."""
    return testing.Runner()
