import pytest

from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.services.supervisors import SupervisorDescription, SupervisorRegister
from django_runstore.supervision import health as health_module
from django_runstore.supervision.health import Health, QueueHealth, examine
from django_runstore.testing import FakeClock

pytestmark = pytest.mark.django_db

NOW = 1_000_000
# The default time until an owner counts as stale, and the pause between two words.
SILENT_AFTER = 30_000 + 10_000


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    clock = FakeClock(NOW)
    monkeypatch.setattr(health_module, "clock_for", lambda _: clock)
    return clock


@pytest.fixture(autouse=True)
def default_lease(settings):
    settings.RUNSTORE = {}


def said(name, ms_ago=0, *, is_draining=False, hears_notices=None):
    owner = OwnerId(name, 1, "u-0123456789abcdef")
    register = SupervisorRegister(clock=FakeClock(NOW - ms_ago))
    register.enter(owner, SupervisorDescription(version="1", queues=None, capacity=1))
    register.touch(owner, is_draining=is_draining, hears_notices=hears_notices)


def waits(run_id, ms, queue="default"):
    RunStore(clock=FakeClock(NOW - ms)).create(run_id, "{}", queue=queue)


def test_one_supervisor_at_work_is_enough():
    said("silent", SILENT_AFTER + 1)
    said("draining", is_draining=True)
    said("working", SILENT_AFTER, hears_notices=True)
    report = examine()
    assert report.health is Health.HEALTHY
    assert {each.name.split()[0]: each.is_at_work for each in report.supervisors} == {
        "silent": False,
        "draining": False,
        "working": True,
    }


@pytest.mark.parametrize("others", [[], ["silent"], ["draining"], ["silent", "draining"]])
def test_without_one_at_work_nothing_else_counts(others):
    if "silent" in others:
        said("silent", SILENT_AFTER + 1)
    if "draining" in others:
        said("draining", is_draining=True, hears_notices=False)
    waits("run", 60_000)
    assert examine(longest_wait_ms=1).health is Health.NO_SUPERVISOR


def test_the_oldest_waiting_run_of_each_queue_is_judged():
    said("working", hears_notices=False)
    waits("a", 5_000, "mail")
    waits("b", 7_000, "mail")
    waits("c", 2_000, "reports")
    report = examine(longest_wait_ms=7_000)
    assert list(report.queues) == [QueueHealth("mail", 2, 7_000), QueueHealth("reports", 1, 2_000)]
    assert report.health is Health.POLLING_ONLY
    assert examine(longest_wait_ms=6_999).health is Health.WAITING_TOO_LONG


@pytest.mark.parametrize(
    ("hears", "health"),
    [
        (None, Health.HEALTHY),
        (True, Health.HEALTHY),
        (False, Health.POLLING_ONLY),
    ],
)
def test_a_supervisor_that_only_polls_is_told_apart_from_one_without_notices(hears, health):
    said("working", hears_notices=hears)
    said("draining", is_draining=True, hears_notices=False)
    assert examine().health is health


def test_the_report_can_be_written_as_json():
    said("working", 3_000, hears_notices=False)
    waits("run", 2_000)
    assert examine().as_json() == {
        "status": "polling_only",
        "supervisors": [
            {
                "name": OwnerId("working", 1, "u-0123456789abcdef").describe(),
                "pulsed_ago_ms": 3_000,
                "is_silent": False,
                "is_draining": False,
                "hears_notices": False,
                "is_at_work": True,
            }
        ],
        "queues": [{"name": "default", "due": 1, "oldest_waits_ms": 2_000}],
    }
