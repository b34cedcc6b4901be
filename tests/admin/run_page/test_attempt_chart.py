from django_runstore.admin.json_text import JsonText
from django_runstore.admin.run_page.attempt_chart import chart_of
from django_runstore.admin.run_page.attempt_line import AttemptLine
from django_runstore.admin.run_page.bars import LEFT, RIGHT

NOTHING = JsonText()


def line(started, finished, *, has_error=False):
    words = {"started": "", "finished": "", "lasted": "1 s", "heartbeat": ""}
    documents = {"checkpoint": NOTHING, "error": NOTHING, "outcome": NOTHING}
    return AttemptLine(
        pk=1,
        step="step",
        attempt=1,
        state="s",
        started_at_ms=started,
        finished_at_ms=finished,
        has_error=has_error,
        **words,
        **documents,
    )


def test_bars_are_on_a_true_scale():
    chart = chart_of([line(0, 100), line(50, 200)], 0)
    width = RIGHT - LEFT
    assert [(bar.start_x, bar.end_x) for bar in chart.bars] == [
        (LEFT, LEFT + width // 2),
        (LEFT + width // 4, RIGHT),
    ]


def test_what_lasts_goes_on_until_now_with_an_arrow():
    (bar,) = chart_of([line(0, None)], 500).bars
    assert (bar.end_x, bar.end_mark, bar.kind) == (RIGHT, "arrow", "open")


def test_an_error_is_a_cross_and_a_word():
    (bar,) = chart_of([line(0, 5, has_error=True)], 0).bars
    assert (bar.end_mark, bar.kind, bar.note) == ("cross", "failed", "1 s, s, error")


def test_a_clock_that_was_set_back_ends_nothing_before_it_began():
    (bar,) = chart_of([line(10, 5)], 0).bars
    assert (bar.start_x, bar.end_x) == (LEFT, LEFT)


def test_no_attempts_make_no_chart():
    assert chart_of([], 0) is None
