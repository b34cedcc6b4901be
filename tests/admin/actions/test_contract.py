import pytest

from django_runstore.admin.actions.contract import Acting, Answer
from django_runstore.models import Run


@pytest.mark.parametrize(
    ("status", "finished_at_ms", "shown_at_ms", "meanwhile"),
    [
        ("completed", 100, 100, True),
        ("completed", 99, 100, False),
        ("completed", 100, None, False),
        ("completed", None, 100, False),
        # Still live when it was read for the answer: it can only have ended after that.
        ("running", None, None, True),
    ],
)
def test_a_run_ended_meanwhile_when_it_ended_after_the_page_was_made(
    status, finished_at_ms, shown_at_ms, meanwhile
):
    acting = Acting(store=None, record=print, shown_at_ms=shown_at_ms)
    run = Run(run_id="a", status=status, finished_at_ms=finished_at_ms)
    assert acting.settled_meanwhile(run) == meanwhile


def test_an_answer_for_one_run_has_its_detail_behind_the_words():
    assert str(Answer("a", "Asked before", is_done=False, detail="1970")) == "Asked before (1970)"
    assert str(Answer("a", "Asked to stop", is_done=True)) == "Asked to stop"
