import json

import pytest

from django_runstore import OwnerId
from django_runstore.models import SupervisorProcess
from django_runstore.read_only import ReadOnlyModelError
from django_runstore.services.supervisors import (
    FORGOTTEN_AFTER_MS,
    SupervisorDescription,
    SupervisorRegister,
)
from django_runstore.testing import FakeClock

pytestmark = pytest.mark.django_db

ME = OwnerId("web-1/boot", 4102, "t1-9f3a61c200000000")
OTHER = OwnerId("web-1/boot", 4102, "another")
DESCRIPTION = SupervisorDescription(version="1.0", queues=("mail", "reports"), capacity=4)


@pytest.fixture
def clock():
    return FakeClock(1_000)


@pytest.fixture
def register(clock):
    return SupervisorRegister(clock=clock)


def rows():
    return {row.owner: row for row in SupervisorProcess.objects.all()}


def test_a_supervisor_describes_itself(register):
    register.enter(ME, DESCRIPTION)
    row = rows()[ME]
    assert (row.started_at_ms, row.pulsed_at_ms, row.is_draining) == (1_000, 1_000, False)
    assert (row.version, json.loads(row.queues_json), row.capacity) == (
        "1.0",
        ["mail", "reports"],
        4,
    )


def test_all_queues_are_not_an_empty_list_of_them(register):
    register.enter(ME, SupervisorDescription(version="1.0", queues=None, capacity=1))
    assert rows()[ME].queues_json == "null"


def test_a_touch_moves_the_pulse_and_nothing_of_others(register, clock):
    register.enter(ME, DESCRIPTION)
    register.enter(OTHER, DESCRIPTION)
    clock.advance(500)
    assert register.touch(ME, is_draining=True) is True
    assert (rows()[ME].pulsed_at_ms, rows()[ME].is_draining) == (1_500, True)
    assert (rows()[OTHER].pulsed_at_ms, rows()[OTHER].is_draining) == (1_000, False)


def test_a_touch_without_a_row_says_so_and_writes_nothing(register):
    assert register.touch(ME, is_draining=False) is False
    assert not rows()


def test_entering_again_begins_anew(register, clock):
    register.enter(ME, DESCRIPTION)
    clock.advance(500)
    register.enter(ME, DESCRIPTION)
    assert rows()[ME].started_at_ms == 1_500


def test_leaving_drops_the_own_row_only(register):
    register.enter(ME, DESCRIPTION)
    register.enter(OTHER, DESCRIPTION)
    register.leave(ME)
    assert set(rows()) == {OTHER}


def test_the_rows_of_the_killed_are_dropped_by_whoever_enters(register, clock):
    register.enter(ME, DESCRIPTION)
    clock.advance(FORGOTTEN_AFTER_MS)
    register.enter(OTHER, DESCRIPTION)
    assert set(rows()) == {ME, OTHER}
    clock.advance(1)
    register.enter(OTHER, DESCRIPTION)
    assert set(rows()) == {OTHER}


def test_nobody_else_writes_rows(register):
    register.enter(ME, DESCRIPTION)
    with pytest.raises(ReadOnlyModelError):
        SupervisorProcess.objects.all().delete()


def test_a_row_is_named_after_its_process(register):
    register.enter(ME, DESCRIPTION)
    assert str(rows()[ME]) == "web-1 pid 4102 (9f3a61c2)"
