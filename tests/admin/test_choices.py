import pytest
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from django_runstore.admin import choices
from django_runstore.admin.choices import names_offered
from django_runstore.handlers import handler
from django_runstore.handlers.registry import registry
from django_runstore.testing.factories import RunFactory

pytestmark = pytest.mark.django_db


def nothing(run):
    """A handler."""


@pytest.fixture(autouse=True)
def _no_handlers(monkeypatch):
    monkeypatch.setattr(registry, "_handlers", {})


@pytest.fixture
def request_(rf: RequestFactory):
    return rf.get("/")


def test_handlers_are_those_of_settled_runs_and_those_known_here(request_):
    handler("known.here", queue="its.queue")(nothing)
    RunFactory(handler="settled", completed=True)
    RunFactory(handler="waiting")
    assert names_offered(request_).handlers == ["known.here", "settled"]


def test_queues_are_those_of_settled_and_of_claimable_runs_and_of_handlers(request_):
    handler("known.here", queue="its.queue")(nothing)
    RunFactory(queue="settled", completed=True)
    RunFactory(queue="waiting")
    RunFactory(queue="running", running=True)
    assert names_offered(request_).queues == ["its.queue", "settled", "waiting"]


def test_what_is_waited_for_is_that_of_live_runs(request_):
    RunFactory.raw(status="suspended", waiting_reason="approval")
    RunFactory.raw(status="cancelled", waiting_reason="godot")
    assert names_offered(request_).waiting == ["approval"]


def test_no_more_are_offered_than_fit(request_, monkeypatch):
    monkeypatch.setattr(choices, "MOST_OFFERED", 2)
    for name in "dcba":
        RunFactory(handler=name, queue=name, completed=True)
    assert names_offered(request_).handlers == ["a", "b"]
    assert names_offered(request_).queues == ["a", "b"]


def test_a_request_asks_once(request_):
    with CaptureQueriesContext(connection) as queries:
        names_offered(request_)
        names_offered(request_)
    assert len(queries) == 1
