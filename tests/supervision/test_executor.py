"""A real worker, with the test in the place of its supervisor."""

import json
import os
import sys
import time
from dataclasses import asdict

import pytest
from django.db import connections

from django_runstore.clocks import boottime_ms
from django_runstore.liveness import OwnerLock
from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.supervision.protocol import (
    Finished,
    Hello,
    Lapsed,
    Ready,
    Settled,
    Start,
    Started,
    Stop,
)
from django_runstore.supervision.shared_deadline import SharedDeadlines
from django_runstore.supervision.shared_settings import describe_settings
from django_runstore.supervision.worker_process import WorkerProcess
from tests.supervision.processes import has_status, is_alive, until

pytestmark = pytest.mark.django_db(transaction=True)

INTERVAL_MS = 200
FOR_EVER_MS = 600_000


class Host:
    """What a supervisor does for one worker, step by step."""

    def __init__(self, owner, lock, deadlines):
        self.owner = owner
        self.store = RunStore()
        self.deadlines = deadlines
        hello = Hello(
            supervisor_pid=os.getpid(),
            using="default",
            settings=describe_settings(),
            owner=asdict(owner),
            sys_path=sys.path,
            python_path=None,
            deadline_fd=deadlines.fileno(),
            lock_fd=lock.fileno(),
        )
        self.worker = WorkerProcess.start(hello)
        self.heard = []

    def claim(self):
        (claimed,) = self.store.claim_many(self.owner, 1)
        return claimed

    def start(self, claimed, confirmed_for_ms=FOR_EVER_MS):
        self.confirm(claimed, confirmed_for_ms)
        assert self.worker.send(Start(claimed.run.run_id, claimed.fence, 0))

    def confirm(self, claimed, confirmed_for_ms):
        until_ms = boottime_ms() + confirmed_for_ms
        self.deadlines.publish(0, claimed.run.run_id, claimed.fence, until_ms)

    def hear(self, kind, seconds=30):
        """Wait for a report of this kind and give it."""

        def found():
            self.heard += self.worker.receive()
            return next((report for report in self.heard if isinstance(report, kind)), None)

        report = until(found, seconds, f"a {kind.type!r} report")
        self.heard.remove(report)
        return report

    def put_back(self, claimed):
        self.store.transition_owned(
            claimed.run.run_id, self.owner, "suspended", fence=claimed.fence
        )


@pytest.fixture
def host(transactional_db, settings, monkeypatch, tmp_path):
    settings.RUNSTORE = {
        "RUNTIME_DIR": str(tmp_path / "runtime"),
        "LEASE": {
            "HEARTBEAT_INTERVAL_MS": INTERVAL_MS,
            "STALE_AFTER_MS": 2_000,
            "SKEW_ALLOWANCE_MS": 600,
        },
    }
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.settings")
    owner = OwnerId.for_this_process(announces_lock=True)
    with OwnerLock.acquire(owner) as lock, SharedDeadlines(1) as deadlines:
        made = Host(owner, lock, deadlines)
        made.hear(Ready)
        yield made
        made.worker.kill()
        made.worker.reap()
        made.worker.close()


def test_a_run_is_entered_and_its_outcome_handed_over(host, submit):
    submit("test.answer")
    claimed = host.claim()
    host.start(claimed)
    assert host.hear(Started) == Started("run", claimed.fence)
    finished = host.hear(Finished)
    assert (finished.kind, json.loads(finished.text)["answer"]) == ("completed", 42)


def test_a_worker_executes_one_run_after_the_other(host, submit):
    for number in range(3):
        submit("test.answer", f"run-{number}")
        claimed = host.claim()
        host.start(claimed)
        assert host.hear(Finished).run_id == claimed.run.run_id
        host.put_back(claimed)
        host.store.request_cancel(claimed.run.run_id)
        host.worker.send(Settled(claimed.run.run_id, claimed.fence))
        (again,) = host.store.claim_many(host.owner, 1)
        host.store.transition_owned(again.run.run_id, host.owner, "cancelled", fence=again.fence)


def test_a_run_under_another_fence_is_not_entered(host, submit, marks):
    submit("test.polling")
    old = host.claim()
    host.put_back(old)
    host.claim()
    host.start(old)
    assert host.hear(Finished) == Finished("run", old.fence, "interrupted", "fence_lost")
    assert marks.lines == []


def test_a_run_whose_confirmation_has_run_out_is_not_entered(host, submit, marks):
    submit("test.polling")
    host.start(host.claim(), confirmed_for_ms=0)
    assert host.hear(Finished).text == "lease_lapsed"
    assert marks.lines == []


def test_a_handler_that_the_worker_does_not_know_is_reported(host, submit):
    submit("nobody.knows")
    host.start(host.claim())
    assert host.hear(Finished).text == "unknown_handler"


def test_an_old_execution_cannot_write_after_put_back_and_reclaim(host, submit, marks):
    submit("test.save_late")
    old = host.claim()
    host.start(old)
    marks.entered()
    # By the same owner: the triple alone could not tell the two executions apart.
    host.put_back(old)
    new = host.claim()
    marks.allow("go")
    assert host.hear(Finished) == Finished("run", old.fence, "interrupted", "fence_lost")
    row = host.store.get("run")
    assert (row.owner, row.owner_fence) == (host.owner, new.fence)
    assert row.state_json == marks.state()
    assert "saved 1" not in marks.lines


def test_a_stop_reaches_the_handler_at_its_next_look(host, submit, marks):
    submit("test.polling")
    claimed = host.claim()
    host.start(claimed)
    marks.entered()
    host.worker.send(Stop("run", claimed.fence, "draining"))
    assert host.hear(Finished).text == "draining"


def test_a_stop_right_behind_the_start_is_not_lost(host, submit):
    submit("test.polling")
    claimed = host.claim()
    host.start(claimed)
    host.worker.send(Stop("run", claimed.fence, "draining"))
    assert host.hear(Finished).text == "draining"


def test_a_stop_for_another_grant_changes_nothing(host, submit, marks):
    submit("test.polling")
    claimed = host.claim()
    host.start(claimed)
    marks.entered()
    host.worker.send(Stop("run", claimed.fence + 1, "draining", urgent=True))
    marks.allow()
    assert host.hear(Finished).kind == "completed"


def test_an_urgent_stop_interrupts_the_handler_where_it_is(host, submit, marks):
    submit("test.sleeping")
    claimed = host.claim()
    host.start(claimed)
    marks.entered()
    host.worker.send(Stop("run", claimed.fence, "cancelled", urgent=True))
    assert host.hear(Finished).text == "cancelled"
    assert f"cleaned up {claimed.fence}" in marks.lines


def test_past_the_confirmation_the_handler_is_refused(host, submit, marks):
    submit("test.polling")
    host.start(host.claim(), confirmed_for_ms=500)
    assert host.hear(Finished, 5).text == "lease_lapsed"


def test_a_handler_that_goes_on_one_interval_longer_is_ended_with_its_process(host, submit, marks):
    submit("test.deaf")
    claimed = host.claim()
    began_ms = boottime_ms()
    host.start(claimed, confirmed_for_ms=1_000)
    marks.entered()
    assert host.hear(Lapsed, 10) == Lapsed("run", claimed.fence)
    assert host.worker.reap().code == -9
    # Looks five times per interval; the rest is the machine's.
    assert 1_000 + INTERVAL_MS <= boottime_ms() - began_ms < 1_000 + 2 * INTERVAL_MS + 300


def test_each_confirmation_prolongs_the_life_of_the_handler(host, submit, marks):
    submit("test.deaf")
    claimed = host.claim()
    host.start(claimed, confirmed_for_ms=500)
    marks.entered()
    for _ in range(8):
        time.sleep(0.2)
        host.confirm(claimed, 500)
    assert is_alive(host.worker.pid)


def test_an_unanswered_outcome_is_settled_by_the_worker_when_the_pipe_closes(host, submit):
    submit("test.answer")
    host.start(host.claim())
    host.hear(Finished)
    assert host.store.get("run").status == "running"
    host.worker.dismiss()
    until(has_status("run", "completed"))
    assert host.worker.reap().code == 0


def test_an_answered_outcome_is_not_settled_again(host, submit):
    submit("test.answer")
    claimed = host.claim()
    host.start(claimed)
    host.hear(Finished)
    host.put_back(claimed)
    host.worker.send(Settled("run", claimed.fence))
    host.worker.dismiss()
    assert host.worker.reap().code == 0
    assert host.store.get("run").status == "suspended"


def test_a_handler_ends_with_the_pipe(host, submit, marks):
    submit("test.deaf")
    host.start(host.claim())
    marks.entered()
    host.worker.dismiss()
    assert host.worker.reap().code == -9


def test_a_handler_that_prints_does_not_disturb_the_protocol(host, submit):
    submit("test.noisy")
    host.start(host.claim())
    assert host.hear(Finished).kind == "completed"


@pytest.mark.parametrize(("how", "status"), [({}, 0), ({"raises": True}, 1)])
def test_a_forked_child_that_leaves_the_handler_settles_nothing(
    host, transactional_db, how, status
):
    host.store.create("run", json.dumps(how), handler="test.fork")
    host.start(host.claim())
    assert json.loads(host.hear(Finished).text) == {"from": "parent", "child": status}


def test_a_forked_child_dies_of_the_signal_that_its_parent_sends(host, submit):
    submit("test.pool")
    host.start(host.claim())
    assert json.loads(host.hear(Finished).text) == {"child": -15}


@pytest.mark.postgres("counts the sessions of a server")
def test_a_worker_leaves_no_connection_open_between_runs(host, submit):
    submit("test.backend")
    claimed = host.claim()
    host.start(claimed)
    backend = json.loads(host.hear(Finished).text)["pid"]

    def is_gone():
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [backend])
            return cursor.fetchone()[0] == 0

    until(is_gone)
