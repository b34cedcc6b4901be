"""What a supervisor says about itself, and that saying it can hurt nobody."""

import signal
import threading

import pytest
from django.db import OperationalError

from django_runstore import OwnerId
from django_runstore.models import SupervisorProcess
from django_runstore.services.supervisors import SupervisorDescription, SupervisorRegister
from django_runstore.supervision import presence as presence_module
from django_runstore.supervision.presence import Presence
from tests.supervision.processes import until

ME = OwnerId("host", 1, "nonce")
DESCRIPTION = SupervisorDescription(version="1.0", queues=None, capacity=2)
INTERVAL_MS = 20


class Register:
    """Writes down what is said; fails or hangs when told to."""

    def __init__(self):
        self.calls = []
        self.error = None
        self.has_row = False
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def enter(self, owner, description):
        self._say("enter")
        self.has_row = True

    def touch(self, owner, *, is_draining, hears_notices):
        self._say("drain" if is_draining else "touch")
        return self.has_row

    def leave(self, owner):
        self._say("leave")

    def _say(self, what):
        self.may_go_on.wait(30)
        self.calls.append(what)
        if self.error is not None:
            raise self.error


@pytest.fixture
def register():
    return Register()


@pytest.fixture
def present(register):
    made = []

    def make(*, is_pulsing=lambda: True, register=register):
        made.append(
            Presence(register, ME, DESCRIPTION, is_pulsing=is_pulsing, interval_ms=INTERVAL_MS)
        )
        made[-1].start()
        return made[-1]

    yield make
    register.may_go_on.set()
    for presence in made:
        presence.stop()


def said(register, what, times=1):
    return lambda: register.calls.count(what) >= times


def test_it_enters_once_and_says_then_that_it_is_there(present, register):
    present()
    until(said(register, "touch", 3))
    assert register.calls[:2] == ["enter", "touch"]
    assert register.calls.count("enter") == 1


def test_a_row_that_is_gone_is_written_again(present, register):
    present()
    until(said(register, "touch"))
    register.has_row = False
    until(said(register, "enter", 2))


def test_draining_is_said_at_once(register):
    presence = Presence(register, ME, DESCRIPTION, is_pulsing=lambda: True, interval_ms=3_600_000)
    presence.start()
    until(said(register, "enter"))
    presence.drain()
    until(said(register, "drain"))
    presence.stop()
    assert register.calls[-1] == "leave"


def test_nothing_is_said_while_the_leases_are_not_kept(present, register):
    is_pulsing = threading.Event()
    present(is_pulsing=is_pulsing.is_set)
    is_pulsing.set()
    until(said(register, "touch"))
    is_pulsing.clear()
    # What was under way may still be said.
    until(lambda: (before := len(register.calls)) and _stays(register, before))


def _stays(register, before):
    threading.Event().wait(5 * INTERVAL_MS / 1000)
    return len(register.calls) == before


def test_a_failing_database_is_mentioned_once_and_tried_again(present, register, caplog):
    register.error = OperationalError("quoting a row")
    present()
    until(said(register, "enter", 3))
    assert [record.message for record in caplog.records] == ["this supervisor could not be listed"]
    assert "quoting" not in caplog.text
    register.error = None
    until(said(register, "touch"))


def test_a_defect_ends_neither_the_thread_nor_the_process(present, register, caplog):
    register.error = ZeroDivisionError("secret")
    present()
    until(said(register, "enter", 2))
    assert "ZeroDivisionError" in caplog.text
    assert "secret" not in caplog.text


def test_a_hanging_database_holds_up_no_end(present, register, monkeypatch):
    monkeypatch.setattr(presence_module, "LEAVE_WITHIN_MS", 50)
    register.may_go_on.clear()
    presence = present()
    presence.stop()
    assert register.calls == []


@pytest.mark.django_db(transaction=True)
def test_the_row_is_there_while_it_is_and_gone_afterwards(present):
    presence = present(register=SupervisorRegister())
    until(lambda: SupervisorProcess.objects.filter(host_id="host").exists())
    presence.drain()
    until(lambda: SupervisorProcess.objects.filter(is_draining=True).exists())
    presence.stop()
    assert not SupervisorProcess.objects.exists()


@pytest.mark.timeout(120)
def test_a_supervisor_is_listed_until_it_ends(supervise, submit, marks):
    submit("test.sleeping")
    supervisor = supervise("--concurrency", "3", "--queues", "default,mail", "--grace", "30")
    marks.entered()
    row = until(SupervisorProcess.objects.first)
    assert (row.capacity, row.queues_json, row.is_draining) == (3, '["default", "mail"]', False)
    assert row.pid == supervisor.process.pid
    supervisor.signal(signal.SIGTERM)
    until(lambda: SupervisorProcess.objects.filter(is_draining=True).exists())
    marks.allow()
    assert supervisor.wait() == 0
    assert not SupervisorProcess.objects.exists()


@pytest.mark.timeout(120)
def test_a_killed_supervisor_stays_listed_and_its_pulse_grows_old(supervise, submit, marks):
    submit("test.sleeping")
    supervisor = supervise("--concurrency", "1")
    marks.entered()
    row = until(SupervisorProcess.objects.first)
    supervisor.signal(signal.SIGKILL)
    supervisor.process.wait()
    assert SupervisorProcess.objects.get().pulsed_at_ms == row.pulsed_at_ms
