"""The two kinds of test cases that Django has, and handlers that a test declares for itself."""

import pytest

from django_runstore.handlers.registry import handler, registry
from django_runstore.testing import FakeClock, use_clock
from django_runstore.testing.pytest_plugin import runstore_clock, runstore_runner  # noqa: F401
from tests.testing.start import START


@pytest.fixture(
    params=[
        pytest.param("TestCase", marks=pytest.mark.django_db),
        pytest.param("TransactionTestCase", marks=pytest.mark.django_db(transaction=True)),
    ]
)
def either_case(request, db):
    """Run the test inside the transaction of a ``TestCase``, and then without one."""
    return request.param


@pytest.fixture
def declare(monkeypatch):
    """Declare handlers that are gone after the test."""
    monkeypatch.setattr(registry, "_handlers", dict(registry._handlers))
    return lambda name, function, **options: handler(name, **options)(function)


@pytest.fixture
def clock(either_case):
    """What every store reads; it stands still at ``START``."""
    with use_clock(FakeClock(START)) as clock:
        yield clock


@pytest.fixture
def echo(declare):
    """A handler that returns the state."""
    return declare("shop.echo", lambda run: run.state)
