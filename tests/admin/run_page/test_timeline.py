from itertools import pairwise

import pytest

from django_runstore.admin.run_page.bars import LEFT, NARROWEST_BAR, RIGHT
from django_runstore.admin.run_page.tenures import Ending, Tenure
from django_runstore.admin.run_page.timeline import MOST_TENURES, Scale, timeline_of
from django_runstore.owners import OwnerId

A = OwnerId("a", 1, "a")
NOW = 1_000_000


def test_moments_keep_their_order_and_fill_the_line():
    scale = Scale([5, 0, 1_000, 86_400_000, 5], 100, 500)
    places = [scale(at_ms) for at_ms in (0, 5, 1_000, 86_400_000)]
    assert (places[0], places[-1]) == (100, 500)
    assert all(earlier < later for earlier, later in pairwise(places))


def test_a_second_is_seen_beside_a_day():
    scale = Scale([0, 1_000, 86_401_000], 0, 1_000)
    # One second weighs 1 + log2(2) = 2, a day 1 + log2(86 401) = 17.4.
    assert scale(1_000) == pytest.approx(1_000 * 2 / 19.4, abs=1)


def test_moments_that_are_one_stand_at_the_beginning():
    assert Scale([7, 7], 100, 500)(7) == 100


def test_a_tenure_that_lasts_is_drawn_until_now():
    chart = timeline_of([Tenure(1, A, 0, 0)], NOW)
    (bar,) = chart.bars
    assert (bar.start_x, bar.end_x, bar.end_mark, bar.note) == (
        LEFT,
        RIGHT,
        "arrow",
        "16 min, owns it",
    )
    assert bar.label == "#1 a pid 1 (a)"


@pytest.mark.parametrize(
    ("tenure", "note", "mark"),
    [
        (Tenure(1, A, 0, None), "16 min, claims it", "arrow"),
        (Tenure(1, A, 0, 0, 500, Ending.RELEASED), "0.5 s, gave it up", "tick"),
        (Tenure(1, A, 0, None, 500, Ending.RELEASED), "0.5 s, left the claim", "tick"),
        (Tenure(1, A, 0, 100, 500, Ending.DISPLACED), "0.4 s, lost it", "cross"),
        (Tenure(1, A, 0, None, 500, Ending.EXPIRED), "0.5 s, claim cleared", "cross"),
        (Tenure(1, A, None, None, 500, Ending.RELEASED), "gave it up", "tick"),
    ],
)
def test_every_ending_is_told_in_words_and_by_a_mark(tenure, note, mark):
    (bar,) = timeline_of([tenure], NOW).bars
    assert (bar.note, bar.end_mark) == (note, mark)


def test_a_claim_alone_has_no_bar():
    (bar,) = timeline_of([Tenure(1, A, 0, None, 500, Ending.EXPIRED)], NOW).bars
    assert (bar.start_x, bar.width, bar.mark_x) == (None, 0, LEFT)


def test_the_shortest_ownership_can_be_seen():
    (bar,) = timeline_of([Tenure(1, A, 5, 5, 5, Ending.RELEASED)], NOW).bars
    assert bar.width == NARROWEST_BAR


def test_only_the_latest_tenures_are_drawn():
    tenures = [Tenure(n, A, n, n, n, Ending.RELEASED) for n in range(MOST_TENURES + 5)]
    assert timeline_of(tenures, NOW).bars[0].label.startswith("#5 ")


def test_nothing_makes_no_drawing():
    assert timeline_of([], NOW) is None
