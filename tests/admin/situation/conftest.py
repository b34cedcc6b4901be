"""A clock to turn by hand, one handler, and runs that tell what they are doing."""

import pytest

from django_runstore.admin.situation import look, situation_of, telling
from django_runstore.handlers.registry import Handler, registry
from django_runstore.models import Run
from django_runstore.testing import FakeClock
from django_runstore.testing.factories import RunFactory
from tests.admin.situation.sample import START


@pytest.fixture
def clock(monkeypatch):
    clock = FakeClock(START)
    for module in (telling, look):
        monkeypatch.setattr(module, "clock_for", lambda _: clock)
    return clock


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Know one handler, whatever the tests' apps have."""
    monkeypatch.setattr(registry, "_handlers", {"known": Handler("known", print)})


@pytest.fixture
def tell(clock):
    """The kind, the words and whether somebody is needed."""

    def of(run):
        found = situation_of(Run.objects.get(pk=run.pk), "default")
        return found.kind, str(found), found.needs_attention

    return of


@pytest.fixture
def make(clock):
    return lambda **options: RunFactory(clock=clock, **options)
