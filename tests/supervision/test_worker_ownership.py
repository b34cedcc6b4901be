import pytest

from django_runstore.clocks import boottime_ms
from django_runstore.durations import LeaseDurations
from django_runstore.supervision import worker_ownership
from django_runstore.supervision.protocol import Start
from django_runstore.supervision.shared_deadline import PublishedDeadlines, SharedDeadlines
from django_runstore.supervision.worker_ownership import Ownership, Watchdog

LEASE = LeaseDurations(200, 2_000, 600)
LOOK_MS = 40


@pytest.fixture
def shared():
    with SharedDeadlines(1) as deadlines:
        published = PublishedDeadlines(deadlines.fileno())
        yield deadlines, Ownership(Start("run", 7, 0), published)
        published.close()


def test_an_ownership_that_was_never_confirmed_is_expired(shared):
    _, ownership = shared
    assert ownership.expired()


def test_a_confirmed_ownership_holds_until_its_time(shared):
    deadlines, ownership = shared
    deadlines.publish(0, "run", 7, boottime_ms() + 60_000)
    assert not ownership.expired()
    deadlines.publish(0, "run", 8, boottime_ms() + 60_000)
    assert ownership.expired()


def test_the_latest_reason_to_stop_counts(shared):
    _, ownership = shared
    assert ownership.stop_reason() is None
    ownership.request_stop("draining")
    ownership.request_stop("cancelled", urgent=True)
    assert (ownership.stop_reason(), ownership.is_urgent) == ("cancelled", True)


@pytest.mark.parametrize(("ago_ms", "is_ended"), [(-1_000, False), (100, False), (200, True)])
def test_the_watchdog_waits_one_interval_past_the_confirmation(
    shared, monkeypatch, ago_ms, is_ended
):
    deadlines, ownership = shared
    ended = []
    monkeypatch.setattr(worker_ownership, "kill_own_group", lambda: ended.append("killed"))
    deadlines.publish(0, "run", 7, 1_000_000)
    monkeypatch.setattr(worker_ownership, "boottime_ms", lambda: 1_000_000 + ago_ms)
    watchdog = Watchdog(LEASE, lambda _: ended.append("said"))
    watchdog.guard(ownership)
    watchdog._look_at(ownership)
    assert ended == (["said", "killed"] if is_ended else [])


@pytest.mark.parametrize(
    ("ago_ms", "nap_ms"), [(-1_000, LOOK_MS), (100, LOOK_MS), (190, 10), (500, 1)]
)
def test_the_watchdog_does_not_sleep_past_the_end(shared, monkeypatch, ago_ms, nap_ms):
    deadlines, ownership = shared
    deadlines.publish(0, "run", 7, 1_000_000)
    monkeypatch.setattr(worker_ownership, "boottime_ms", lambda: 1_000_000 + ago_ms)
    watchdog = Watchdog(LEASE, pytest.fail)
    assert watchdog._nap_ms(ownership) == nap_ms
    assert watchdog._nap_ms(None) == LOOK_MS


def test_the_watchdog_leaves_a_handler_alone_that_has_ended(shared, monkeypatch):
    _, ownership = shared
    monkeypatch.setattr(worker_ownership, "kill_own_group", pytest.fail)
    watchdog = Watchdog(LEASE, pytest.fail)
    watchdog.guard(ownership)
    watchdog.guard(None)
    watchdog._look_at(ownership)
