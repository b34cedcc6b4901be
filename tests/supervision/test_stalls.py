"""Executions that beat and do not advance: told of once, and stopped if the handler says so."""

import logging

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from django_runstore.errors import SinkFailed
from django_runstore.handlers.registry import Handler, registry
from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.supervision import stalls as module
from django_runstore.supervision.execution import Execution, Stopping
from django_runstore.supervision.stalls import Stalls
from django_runstore.testing import FakeClock
from tests.supervision.processes import notes

pytestmark = pytest.mark.django_db

OWNER = OwnerId("host", 1, "u-0123456789abcdef")
BEGUN_MS = 1_000_000
LIMIT_MS = 5_000


class FakeExecutions:
    def __init__(self):
        self.all = []
        self.stopped = []

    def under_way(self):
        return [execution for execution in self.all if not execution.is_over]

    def stop(self, execution, reason, *, grace_ms, kill_after_ms):
        execution.stopping = Stopping(reason, 0, 0)
        self.stopped.append((execution.run_id, reason, grace_ms))


class Scene:
    def __init__(self):
        self.clock = FakeClock(BEGUN_MS)
        self.store = RunStore(clock=self.clock)
        self.executions = FakeExecutions()
        self.stalls = Stalls(self.store, OWNER, self.executions, 300, self.clock.now_ms)

    def begin(self, handler="flagged", run_id="run"):
        self.store.create(run_id, "{}", handler=handler)
        (claimed,) = self.store.claim_many(OWNER, 1)
        execution = Execution(
            run_id, claimed.fence, handler, None, None, self.clock.now_ms(), claimed_at_ms=BEGUN_MS
        )
        self.executions.all.append(execution)
        return execution

    def advance(self, execution):
        self.store.save_progress(execution.run_id, OWNER, fence=execution.fence, progress_json="1")


@pytest.fixture
def scene(monkeypatch):
    known = {
        "flagged": Handler("flagged", print, no_progress_after_ms=LIMIT_MS),
        "stopped": Handler("stopped", print, no_progress_after_ms=LIMIT_MS, on_no_progress="stop"),
        "free": Handler("free", print),
    }
    monkeypatch.setattr(registry, "_handlers", known)
    return Scene()


def payload(quiet_ms, then="flag"):
    return {"quiet_ms": quiet_ms, "no_progress_after_ms": LIMIT_MS, "then": then}


def test_a_handler_that_declares_nothing_is_never_looked_at(scene, django_assert_num_queries):
    scene.begin("free")
    scene.clock.advance(10**9)
    assert scene.stalls.next_look_in_ms() == float("inf")
    with django_assert_num_queries(0):
        scene.stalls.look()


def test_nothing_is_asked_before_the_limit(scene, django_assert_num_queries):
    scene.begin()
    assert scene.stalls.next_look_in_ms() == LIMIT_MS
    scene.clock.advance(LIMIT_MS - 1)
    with django_assert_num_queries(0):
        scene.stalls.look()
    assert scene.stalls.next_look_in_ms() == 1


def test_a_stall_is_told_of_once_and_the_run_goes_on(scene, caplog):
    caplog.set_level(logging.WARNING)
    scene.begin()
    for _ in range(3):
        scene.clock.advance(LIMIT_MS)
        scene.stalls.look()
    assert notes("run") == [("runstore.run.no_progress", payload(LIMIT_MS))]
    assert [record.message for record in caplog.records] == ["run run: no progress for 5.0 s"]
    assert scene.executions.stopped == []


def test_progress_puts_the_next_look_off_and_the_next_stall_is_another(scene):
    execution = scene.begin()
    scene.clock.advance(LIMIT_MS - 1_000)
    scene.advance(execution)
    scene.clock.advance(1_000)
    scene.stalls.look()
    assert notes("run") == []
    assert scene.stalls.next_look_in_ms() == LIMIT_MS - 1_000
    scene.clock.advance(LIMIT_MS - 1_000)
    scene.stalls.look()
    scene.advance(execution)
    scene.clock.advance(2 * LIMIT_MS)
    scene.stalls.look()
    told = [said["quiet_ms"] for _, said in notes("run")]
    assert told == [LIMIT_MS, 2 * LIMIT_MS]


def test_what_an_earlier_execution_did_is_no_progress_of_this_one(scene):
    execution = scene.begin()
    scene.advance(execution)
    execution.claimed_at_ms = BEGUN_MS + 3_000
    scene.clock.advance(LIMIT_MS)
    scene.stalls.look()
    assert notes("run") == []
    assert scene.stalls.next_look_in_ms() == 3_000


def test_a_run_is_stopped_where_its_handler_says_so(scene):
    scene.begin("stopped")
    scene.clock.advance(LIMIT_MS)
    scene.stalls.look()
    assert scene.executions.stopped == [("run", "no_progress", 300)]
    assert notes("run") == [("runstore.run.no_progress", payload(LIMIT_MS, "stop"))]
    assert scene.stalls.next_look_in_ms() == float("inf")


def test_what_is_over_or_stopping_is_watched_no_more(scene):
    over, stopping = scene.begin(run_id="over"), scene.begin(run_id="stopping")
    assert scene.stalls.next_look_in_ms() == LIMIT_MS
    over.is_over, stopping.stopping = True, Stopping("draining", 0, 0)
    assert scene.stalls.next_look_in_ms() == float("inf")


def test_all_that_is_due_is_one_look(scene):
    for number in range(4):
        scene.advance(scene.begin(run_id=f"run-{number}"))
    scene.clock.advance(LIMIT_MS - 1)
    scene.stalls.look()
    for execution in scene.executions.all:
        execution.claimed_at_ms = BEGUN_MS + 1
    scene.clock.advance(1)
    with CaptureQueriesContext(connection) as queries:
        scene.stalls.look()
    assert len([query for query in queries if "runstore_run" in query["sql"]]) == 1


def test_a_failure_of_the_database_gets_out_to_nobody_and_is_tried_again(
    scene, monkeypatch, caplog
):
    scene.begin()
    scene.clock.advance(LIMIT_MS)

    def fail(*_):
        raise OperationalError("secret words of the driver")

    monkeypatch.setattr(module, "progressed_at_ms", fail)
    scene.stalls.look()
    assert "OperationalError" in caplog.text
    assert "secret" not in caplog.text
    assert scene.stalls.next_look_in_ms() == module.RETRY_MS


def test_a_stall_that_could_not_be_written_down_is_written_down_later(scene, monkeypatch):
    scene.begin()
    scene.clock.advance(LIMIT_MS)
    with monkeypatch.context() as patched:
        patched.setattr(module.Journal, "emit_durable", refuse)
        scene.stalls.look()
    assert notes("run") == []
    scene.clock.advance(module.RETRY_MS)
    scene.stalls.look()
    assert notes("run") == [("runstore.run.no_progress", payload(LIMIT_MS + module.RETRY_MS))]


def test_a_run_is_stopped_although_that_cannot_be_written_down(scene, monkeypatch):
    scene.begin("stopped")
    scene.clock.advance(LIMIT_MS)
    monkeypatch.setattr(module.Journal, "emit_durable", refuse)
    scene.stalls.look()
    assert scene.executions.stopped == [("run", "no_progress", 300)]


def refuse(*_, **__):
    raise SinkFailed("emit_durable", "database operation failed", {"cause": "busy"})


def test_nothing_is_written_into_the_journal_of_a_run_that_is_somebody_elses(scene):
    scene.executions.all.append(
        Execution("run", 1, "stopped", None, None, BEGUN_MS, claimed_at_ms=BEGUN_MS)
    )
    scene.store.create("run", "{}", handler="stopped")
    scene.clock.advance(LIMIT_MS)
    scene.stalls.look()
    assert notes("run") == []
