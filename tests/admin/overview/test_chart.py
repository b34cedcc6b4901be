import pytest
from django.utils import timezone

from django_runstore.admin.overview.chart import HEIGHT, chart_of
from django_runstore.admin.overview.figures import HOUR_MS, Hour


@pytest.mark.parametrize(
    ("most", "top"), [(0, 1), (1, 1), (2, 2), (3, 5), (6, 10), (11, 20), (21, 50), (51, 100)]
)
def test_the_scale_ends_at_a_round_number_that_all_bars_fit_under(most, top):
    assert chart_of([Hour(0, completed=most), Hour(HOUR_MS)]).top == top


def test_a_bar_is_as_high_as_its_number_and_stands_on_the_ground():
    (bar,) = chart_of([Hour(0, completed=5)]).bars
    assert (bar.completed_height, bar.completed_y) == (HEIGHT, 0)


def test_cancelled_and_failed_are_stacked_on_completed():
    (bar,) = chart_of([Hour(0, completed=4, cancelled=1, failed=5)]).bars
    tenth = HEIGHT / 10
    assert (bar.completed_y, bar.cancelled_y, bar.failed_y) == (6 * tenth, 5 * tenth, 0)
    assert (bar.completed_height, bar.cancelled_height, bar.failed_height) == (
        4 * tenth,
        tenth,
        5 * tenth,
    )


def test_hours_without_runs_are_there_and_flat():
    bars = chart_of([Hour(number * HOUR_MS) for number in range(24)]).bars
    assert len(bars) == 24
    assert {bar.completed_height + bar.failed_height for bar in bars} == {0}


def test_the_current_hour_is_labelled_and_every_fourth_before_it():
    bars = chart_of([Hour(number * HOUR_MS) for number in range(24)]).bars
    assert [bar.label for bar in bars if bar.is_labelled] == [
        "03:00",
        "07:00",
        "11:00",
        "15:00",
        "19:00",
        "23:00",
    ]


def test_labels_are_in_the_zone_of_the_reader():
    with timezone.override("Asia/Tokyo"):
        (bar,) = chart_of([Hour(0)]).bars
    assert bar.label == "09:00"
