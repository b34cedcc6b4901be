from datetime import UTC, datetime
from html import unescape

import pytest
from django.utils import timezone

from django_runstore.admin.created_filter import Period
from django_runstore.testing import FakeClock
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import RUNS

HOUR_MS = 3_600_000


def ms(*parts):
    return int(datetime(*parts, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("name", "begin", "end"),
    [
        ("2026", (2026, 1, 1), (2027, 1, 1)),
        ("2024-02", (2024, 2, 1), (2024, 3, 1)),
        ("2026-12", (2026, 12, 1), (2027, 1, 1)),
        ("2026-10-05", (2026, 10, 5), (2026, 10, 6)),
        ("2024-02-29", (2024, 2, 29), (2024, 3, 1)),
        ("2026-12-31", (2026, 12, 31), (2027, 1, 1)),
    ],
)
def test_a_period_begins_with_its_first_and_ends_before_the_next(name, begin, end):
    assert Period.read(name).bounds_ms() == (ms(*begin), ms(*end))


def test_a_period_is_one_of_the_time_zone_in_force():
    with timezone.override("Asia/Tokyo"):  # nine hours ahead
        assert Period.read("2026-10-05").bounds_ms() == (
            ms(2026, 10, 4, 15),
            ms(2026, 10, 5, 15),
        )


def test_a_day_on_which_clocks_are_set_has_another_length():
    with timezone.override("Europe/Berlin"):
        begin, end = Period.read("2026-03-29").bounds_ms()
    assert end - begin == 23 * HOUR_MS


@pytest.mark.parametrize(
    "name",
    [
        "",
        "0",
        "1969",
        "9999",
        "2026-13",
        "2026-00",
        "2026-02-30",
        "2026-1-1",
        "٢٠٢٦",
        "2026-10-05x",
    ],
)
def test_what_is_on_no_calendar_is_no_period(name):
    assert Period.read(name) is None


@pytest.fixture
def runs(db, monkeypatch):
    now_ms = ms(2026, 10, 5, 12)
    monkeypatch.setattr(
        "django_runstore.admin.created_filter.clock_for", lambda _: FakeClock(now_ms)
    )
    for name, created in {
        "old": ms(2024, 2, 29, 23),
        "spring": ms(2026, 3, 1),
        "first-of-month": ms(2026, 10, 1),
        "yesterday": now_ms - 23 * HOUR_MS,
        "just-now": now_ms - 1_000,
    }.items():
        RunFactory.raw(run_id=name, created_at_ms=created)


def choices(text):
    block = unescape(text).split('data-filter-title="created"')[1].split("</details>")[0]
    return [line.split(">")[1].split("<")[0] for line in block.splitlines() if "?" in line]


@pytest.mark.parametrize(
    ("created", "shown"),
    [
        ("1h", {"just-now"}),
        ("24h", {"just-now", "yesterday"}),
        ("7d", {"just-now", "yesterday", "first-of-month"}),
        ("2026", {"just-now", "yesterday", "first-of-month", "spring"}),
        ("2026-10", {"just-now", "yesterday", "first-of-month"}),
        ("2026-10-05", {"just-now"}),
        ("2024-02-29", {"old"}),
        ("2023", set()),
    ],
)
def test_runs_are_filtered_by_when_they_were_created(runs, viewer, page, created, shown):
    text = page(viewer, RUNS, created=created)
    names = {"old", "spring", "first-of-month", "yesterday", "just-now"}
    assert {name for name in names if f">{name}<" in text} == shown


def test_spans_and_years_are_offered_first(runs, viewer, page):
    assert choices(page(viewer, RUNS)) == [
        "All",
        "in the past hour",
        "in the past day",
        "in the past 7 days",
        "2026",
        "2025",
        "2024",
    ]


def test_a_year_offers_the_months_in_which_runs_can_be(runs, viewer, page):
    offered = choices(page(viewer, RUNS, created="2026"))
    assert offered[:3] == ["All", "2026", "January 2026"]
    assert offered[-1] == "October 2026"


def test_a_month_offers_its_year_and_its_days(runs, viewer, page):
    offered = choices(page(viewer, RUNS, created="2026-10"))
    assert offered == ["All", "2026", "October 2026", *(f"Oct. {day}, 2026" for day in range(1, 6))]


def test_the_last_times_that_can_be_stored_break_nothing(viewer, page):
    RunFactory.raw(created_at_ms=2**53 - 1)
    for created in ("", "9998", "2026"):
        with timezone.override("Pacific/Kiritimati"):
            assert page(viewer, RUNS, created=created)


def test_without_runs_the_spans_are_offered(viewer, page):
    assert choices(page(viewer, RUNS))[-1] == "in the past 7 days"
