import pytest

from django_runstore.admin.attention import CONCERNS, CRASH_LOOP
from django_runstore.models import Run
from django_runstore.testing import FakeClock
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import RUNS

pytestmark = pytest.mark.django_db

NOW_MS = 10_000_000_000
# As in the default settings.
STALE_AFTER_MS = 30_000
STOP_GRACE_MS = 10_000
QUIET_AFTER_MS = 900_000


@pytest.fixture(autouse=True)
def _default_settings(settings):
    settings.RUNSTORE = {}


def running(**columns):
    owned = {"owner_host_id": "h", "owner_pid": 1, "owner_nonce": "n", "heartbeat_at_ms": NOW_MS}
    times = {"started_at_ms": NOW_MS, "progressed_at_ms": NOW_MS}
    return RunFactory.raw(status="running", **(owned | times | columns))


def concerning(name):
    (concern,) = (each for each in CONCERNS if each.name == name)
    return set(Run.objects.filter(concern.condition(NOW_MS)))


def test_an_owner_is_silent_past_its_lease_and_not_at_its_end():
    running(heartbeat_at_ms=NOW_MS - STALE_AFTER_MS)
    late = running(heartbeat_at_ms=NOW_MS - STALE_AFTER_MS - 1)
    assert concerning("silent") == {late}


def test_a_run_is_quiet_when_it_beats_and_does_not_advance():
    running(progressed_at_ms=NOW_MS - QUIET_AFTER_MS)
    quiet = running(progressed_at_ms=NOW_MS - QUIET_AFTER_MS - 1)
    running(
        heartbeat_at_ms=NOW_MS - STALE_AFTER_MS - 1, progressed_at_ms=NOW_MS - QUIET_AFTER_MS - 1
    )
    assert concerning("quiet") == {quiet}


def test_a_run_that_has_never_advanced_is_quiet_since_it_began():
    running(progressed_at_ms=None, started_at_ms=NOW_MS - QUIET_AFTER_MS)
    quiet = running(progressed_at_ms=None, started_at_ms=NOW_MS - QUIET_AFTER_MS - 1)
    assert concerning("quiet") == {quiet}


def test_how_long_is_too_long_is_a_setting(settings):
    settings.RUNSTORE = {"ADMIN_QUIET_AFTER_MS": 1_000}
    quiet = running(progressed_at_ms=NOW_MS - 1_001)
    assert concerning("quiet") == {quiet}


@pytest.mark.parametrize("status", ["pending", "suspended"])
def test_losing_workers_again_and_again_is_a_loop_until_the_run_is_settled(status):
    RunFactory.raw(status=status, recovery_count=CRASH_LOOP - 1)
    RunFactory.raw(status="failed", recovery_count=CRASH_LOOP)
    looping = RunFactory.raw(status=status, recovery_count=CRASH_LOOP)
    assert concerning("crashing") == {looping}


def test_a_run_is_parked_when_nothing_but_somebody_wakes_it():
    RunFactory.raw(status="suspended", waiting_reason="sleep", waiting_wake_at_ms=NOW_MS)
    RunFactory.raw(status="cancelled", waiting_reason="approval")
    RunFactory.raw(status="suspended")
    parked = RunFactory.raw(status="suspended", waiting_reason="approval")
    assert concerning("parked") == {parked}


def test_a_claim_is_stranded_when_it_is_older_than_a_lease():
    claim = {"claim_host_id": "h", "claim_pid": 1, "claim_nonce": "n"}
    RunFactory.raw(**claim, claimed_at_ms=NOW_MS - STALE_AFTER_MS)
    stranded = RunFactory.raw(**claim, claimed_at_ms=NOW_MS - STALE_AFTER_MS - 1)
    assert concerning("claimed") == {stranded}


def test_a_run_that_was_asked_to_stop_has_a_lease_and_a_grace_to_do_so():
    patience_ms = STALE_AFTER_MS + STOP_GRACE_MS
    RunFactory.raw(cancel_requested_at_ms=NOW_MS - patience_ms)
    RunFactory.raw(status="cancelled", cancel_requested_at_ms=0)
    going_on = RunFactory.raw(cancel_requested_at_ms=NOW_MS - patience_ms - 1)
    assert concerning("stopping") == {going_on}


@pytest.mark.parametrize("concern", CONCERNS, ids=lambda each: each.name)
def test_every_concern_is_a_filter_of_the_list(concern, viewer, page, monkeypatch):
    monkeypatch.setattr("django_runstore.admin.filters.clock_for", lambda _: FakeClock(NOW_MS))
    RunFactory.raw(run_id="unconcerned", created_at_ms=NOW_MS)
    text = page(viewer, RUNS, attention=concern.name)
    assert str(concern.label) in text
    assert ">unconcerned<" not in text
