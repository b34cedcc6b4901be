import re
from html import unescape

import pytest

from django_runstore import OwnerId, RunStore
from django_runstore.testing import FakeClock
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import RUNS

pytestmark = pytest.mark.django_db

NOW_MS = 10_000_000_000
OWNED = {
    "status": "running",
    "owner_host_id": "h",
    "owner_pid": 1,
    "owner_nonce": "n",
    "heartbeat_at_ms": NOW_MS - 2_000,
    "started_at_ms": NOW_MS - 60_000,
}


@pytest.fixture(autouse=True)
def _now(monkeypatch, settings):
    settings.RUNSTORE = {}
    monkeypatch.setattr("django_runstore.admin.read_only.clock_for", lambda _: FakeClock(NOW_MS))


@pytest.fixture
def cell(viewer, page):
    def read(column):
        found = re.search(rf'class="field-{column}[^"]*">(.*?)</td>', page(viewer, RUNS), re.DOTALL)
        below = found[1].replace('<div class="runstore-second">', "\n")
        return unescape(re.sub(r"<[^>]*>", "", below)).strip()

    return read


def test_heartbeat_and_progress_are_two_ages(cell):
    RunFactory.raw(**OWNED, progressed_at_ms=NOW_MS - 50_000)
    assert (cell("heartbeat"), cell("progress_age")) == ("2.0 s ago", "50.0 s ago")


def test_a_run_that_beats_and_does_not_advance_says_so(cell):
    RunFactory.raw(**OWNED, progressed_at_ms=NOW_MS - 1_200_000)
    assert cell("progress_age") == "20 min ago (no progress)"


def test_a_run_that_has_just_begun_has_no_progress_yet(cell):
    RunFactory.raw(**OWNED)
    assert cell("progress_age") == "none yet"


def test_failures_and_losses_are_counted_apart(cell):
    RunFactory.raw(failure_count=2, recovery_count=1)
    assert cell("setbacks") == "2 / 1"


def test_a_run_in_a_loop_of_losses_is_marked(viewer, page):
    RunFactory.raw(recovery_count=2)
    assert "runstore-badge--attention" in page(viewer, RUNS)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({}, ""),
        ({"cancel_requested_at_ms": NOW_MS - 3_000}, "asked to stop 3.0 s ago, not heard yet"),
        (
            {
                "cancel_requested_at_ms": NOW_MS - 3_000,
                "cancel_acknowledgement_json": "{}",
                **OWNED,
            },
            "asked to stop 3.0 s ago, stopping",
        ),
        (
            {"cancel_requested_at_ms": NOW_MS - 3_000, "status": "cancelled"},
            "asked to stop 3.0 s ago",
        ),
    ],
)
def test_the_state_of_a_cancellation_is_said(cell, columns, said):
    RunFactory.raw(**columns)
    assert cell("status_badge").partition("\n")[2] == said


def test_a_time_is_short_and_the_whole_of_it_stands_behind_it(viewer, page):
    RunFactory.raw(created_at_ms=1_234)
    assert (
        '<time datetime="1970-01-01T00:00:01.234+00:00" title="1970-01-01 00:00:01.234 UTC">'
        "1970-01-01 00:00:01</time>"
    ) in page(viewer, RUNS)


def test_the_date_of_today_goes_without_saying(cell):
    RunFactory.raw(created_at_ms=NOW_MS)
    # 10,000,000,000 ms are 115 days and 17:46:40.
    assert cell("created_at_time") == "17:46:40"


def test_start_and_end_stand_one_below_the_other(cell):
    RunFactory.raw(status="failed", started_at_ms=NOW_MS - 1_000, finished_at_ms=NOW_MS)
    assert cell("started_and_finished").split() == ["17:46:39", "17:46:40"]


def test_times_are_those_of_the_readers_zone(viewer, page, settings):
    settings.TIME_ZONE = "Asia/Tokyo"
    RunFactory.raw(created_at_ms=0)
    assert "1970-01-01 09:00:00</time>" in page(viewer, RUNS)


def test_long_names_leave_room_for_the_other_columns(cell):
    RunFactory.raw(handler="h" * 2_000, queue="q" * 500)
    assert cell("handler_and_queue").split() == ["h" * 31 + "…", "q" * 31 + "…"]


def test_a_real_request_and_its_acknowledgement_are_seen(cell):
    store, owner = RunStore(), OwnerId("h", 1, "n")
    RunFactory(run_id="a", running=True, owner=owner)
    store.request_cancel("a")
    store.acknowledge_cancel("a", owner, fence=1)
    assert cell("status_badge").partition("\n")[2].endswith("stopping")
