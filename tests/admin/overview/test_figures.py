import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore import OwnerId
from django_runstore.admin.overview import figures as figures_module
from django_runstore.admin.overview.figures import HOUR_MS, read_figures
from django_runstore.models import Run
from django_runstore.services.supervisors import SupervisorDescription, SupervisorRegister
from django_runstore.states import RunStatus
from django_runstore.testing import FakeClock
from django_runstore.testing.factories import RunFactory

pytestmark = pytest.mark.django_db

# Half an hour into an hour.
NOW_MS = 500_000 * HOUR_MS + HOUR_MS // 2
ME = OwnerId("web-1", 4102, "nonce")


@pytest.fixture(autouse=True)
def clock(monkeypatch, settings):
    settings.RUNSTORE = {}
    clock = FakeClock(NOW_MS)
    monkeypatch.setattr(figures_module, "clock_for", lambda _: clock)
    return clock


def read():
    return read_figures(Run.objects.all())


def settled(at_ms, status="completed"):
    return RunFactory.raw(status=status, finished_at_ms=at_ms)


def running(owner=ME):
    return RunFactory.raw(
        status="running",
        owner_host_id=owner.host_id,
        owner_pid=owner.pid,
        owner_nonce=owner.nonce,
        heartbeat_at_ms=NOW_MS,
        started_at_ms=NOW_MS,
    )


def test_live_runs_are_counted_by_status():
    RunFactory.create_batch(2)
    RunFactory(suspended=True)
    RunFactory(completed=True)
    assert read().live == {RunStatus.PENDING: 2, RunStatus.RUNNING: 0, RunStatus.SUSPENDED: 1}


def test_counting_ends_where_a_number_says_no_more(monkeypatch):
    monkeypatch.setattr(figures_module, "MOST_COUNTED", 2)
    RunFactory.create_batch(3)
    assert read().live[RunStatus.PENDING] == 2


def test_what_needs_a_look_is_counted_by_its_reason():
    RunFactory.raw(status="suspended", waiting_reason="approval")
    RunFactory.raw(recovery_count=5)
    counts = {concern.name: count for concern, count in read().concerns}
    assert counts == {
        "silent": 0,
        "quiet": 0,
        "crashing": 1,
        "parked": 1,
        "claimed": 0,
        "stopping": 0,
    }


def test_the_day_is_24_hours_and_the_current_one_is_the_last():
    hours = read().hours
    assert len(hours) == 24
    assert hours[-1].begins_at_ms == 500_000 * HOUR_MS
    assert hours[0].begins_at_ms == 499_977 * HOUR_MS


def test_runs_are_counted_in_the_hour_in_which_they_were_settled():
    current = 500_000 * HOUR_MS
    settled(current)
    settled(current - 1)
    settled(current - 1, "failed")
    settled(current - 23 * HOUR_MS, "cancelled")
    settled(current - 23 * HOUR_MS - 1)
    hours = read().hours
    assert [tuple(hour[1:]) for hour in hours if any(hour[1:])] == [
        (0, 0, 1),
        (1, 1, 0),
        (1, 0, 0),
    ]
    assert [tuple(hour[1:]) for hour in (hours[0], *hours[-2:])] == [
        (0, 0, 1),
        (1, 1, 0),
        (1, 0, 0),
    ]


def test_a_clock_that_leads_counts_in_the_current_hour():
    settled(NOW_MS + HOUR_MS)
    assert read().hours[-1].completed == 1


def test_a_supervisor_is_listed_with_the_runs_it_holds(clock):
    register = SupervisorRegister(clock=clock)
    register.enter(ME, SupervisorDescription(version="1.2", queues=("mail",), capacity=4))
    running()
    running()
    running(OwnerId("web-1", 4102, "another"))
    (line,) = read().supervisors
    assert (line.runs, line.row.capacity, line.queues, line.is_silent) == (2, 4, ["mail"], False)


def test_a_supervisor_is_silent_past_a_lease_and_a_pause_of_its_messages(clock):
    everything = SupervisorDescription(version="1.2", queues=None, capacity=4)
    SupervisorRegister(clock=clock).enter(ME, everything)
    clock.advance(30_000 + 10_000)
    assert read().supervisors[0].is_silent is False
    clock.advance(1)
    assert read().supervisors[0].is_silent is True
    assert read().supervisors[0].queues is None


def test_the_supervisor_that_was_seen_last_comes_first(clock):
    register = SupervisorRegister(clock=clock)
    everything = SupervisorDescription(version="1", queues=None, capacity=1)
    for number in range(3):
        register.enter(OwnerId("h", number, "n"), everything)
        clock.advance(1)
    assert [line.row.pid for line in read().supervisors] == [2, 1, 0]


def test_all_figures_take_four_statements():
    RunFactory.create_batch(3, queue="a")
    running()
    with CaptureQueriesContext(connection) as queries:
        read()
    assert len(queries) == 4


def test_runs_that_the_reader_may_not_see_are_not_counted():
    RunFactory(handler="mine")
    RunFactory(handler="theirs")
    assert read_figures(Run.objects.filter(handler="mine")).live[RunStatus.PENDING] == 1
