"""A registered handler and a run of it that is owned."""

import pytest

from django_runstore import OwnerId, RunStore
from django_runstore.handlers import RunContext
from django_runstore.handlers.registry import Handler
from tests.handlers.signals import ScriptedSignal

OWNER = OwnerId("host-a", 101, "owner-a")


@pytest.fixture
def echo():
    """A handler that nobody else registered."""
    return Handler("tests.echo", lambda run: run.state)


@pytest.fixture
def signal():
    return ScriptedSignal()


@pytest.fixture
def make_context(db, echo, signal):
    """Own a new run and give the context its handler would get."""

    def make(state=None, run_id=None):
        store = RunStore()
        handle = echo.submit(state, run_id=run_id)
        (claimed,) = store.claim_many(OWNER, 1, handlers=["tests.echo"])
        assert claimed.run.run_id == handle.run_id
        return RunContext(claimed.run, claimed.fence, OWNER, store, signal)

    return make
