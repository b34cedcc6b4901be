"""The datetime twins of millisecond columns are the same on every database."""

import datetime as dt

import pytest

from django_runstore.models import Run

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
LAST_OF_9999 = 253_402_300_799_999
SAFE = 2**53 - 1

MOMENTS = {
    "the epoch": 0,
    "a millisecond later": 1,
    "ten milliseconds": 10,
    "a hundred milliseconds": 100,
    "just before a second": 999,
    "a whole second": 1_000,
    "a second and a bit": 1_001,
    "just before a day": 86_399_999,
    "a whole day": 86_400_000,
    "a leap day": 951_782_400_000,
    "today": 1_764_547_200_123,
    "a far day with a fraction": 7_258_118_399_987,
    "the last millisecond of 9999": LAST_OF_9999,
}


def moment(ms: int) -> dt.datetime:
    return EPOCH + dt.timedelta(milliseconds=ms)


@pytest.fixture
def runs(db):
    for name, ms in MOMENTS.items():
        Run.unguarded.create(run_id=name, status="pending", created_at_ms=ms, state_json="{}")


@pytest.mark.parametrize("name", MOMENTS)
def test_the_twin_is_exact_to_the_millisecond(runs, name):
    assert Run.objects.get(pk=name).created_at == moment(MOMENTS[name])


@pytest.mark.parametrize("name", MOMENTS)
def test_a_twin_is_found_by_its_exact_value(runs, name):
    found = Run.objects.filter(created_at=moment(MOMENTS[name]))
    assert [run.run_id for run in found] == [name]


@pytest.mark.parametrize("name", MOMENTS)
@pytest.mark.parametrize(
    ("lookup", "belongs"),
    [
        ("lte", lambda each, bound: each <= bound),
        ("lt", lambda each, bound: each < bound),
        ("gte", lambda each, bound: each >= bound),
        ("gt", lambda each, bound: each > bound),
    ],
    ids=["lte", "lt", "gte", "gt"],
)
def test_comparisons_of_twins_agree_with_those_of_milliseconds(runs, name, lookup, belongs):
    bound = MOMENTS[name]
    found = set(
        Run.objects.filter(**{f"created_at__{lookup}": moment(bound)}).values_list("pk", flat=True)
    )
    assert found == {each for each, ms in MOMENTS.items() if belongs(ms, bound)}


def test_twins_sort_like_milliseconds(runs):
    by_twin = list(Run.objects.order_by("created_at").values_list("pk", flat=True))
    assert by_twin == list(MOMENTS)


def test_twins_are_found_by_year(runs):
    found = set(Run.objects.filter(created_at__year=1970).values_list("pk", flat=True))
    assert found == {name for name, ms in MOMENTS.items() if moment(ms).year == 1970}


@pytest.mark.parametrize("ms", [LAST_OF_9999 + 1, 8_000_000_000_000_000, SAFE])
def test_past_year_9999_the_twin_is_null_and_the_row_still_reads(db, ms):
    Run.unguarded.create(run_id="x", status="pending", created_at_ms=ms, state_json="{}")
    run = Run.objects.get(pk="x")
    assert (run.created_at_ms, run.created_at) == (ms, None)


def test_an_unset_time_has_an_unset_twin(db):
    Run.unguarded.create(run_id="x", status="pending", created_at_ms=0, state_json="{}")
    run = Run.objects.get(pk="x")
    assert (run.started_at, run.finished_at) == (None, None)
    assert Run.objects.filter(started_at__isnull=True).count() == 1


@pytest.mark.parametrize("column", ["created_at", "started_at", "finished_at"])
def test_each_twin_follows_its_own_column(db, column):
    times = {"created_at_ms": 1_000, "started_at_ms": 2_001, "finished_at_ms": 3_010}
    Run.unguarded.create(run_id="x", status="completed", state_json="{}", **times)
    assert getattr(Run.objects.get(pk="x"), column) == moment(times[f"{column}_ms"])
    Run.unguarded.filter(pk="x").update(**{f"{column}_ms": 9_999})
    assert getattr(Run.objects.get(pk="x"), column) == moment(9_999)
