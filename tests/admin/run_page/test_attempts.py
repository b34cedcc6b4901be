import hashlib
from html import unescape

import pytest

from django_runstore.admin.run_page import attempts
from django_runstore.models import Attempt
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import run_url, section

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    return RunFactory()


def record(run, step="extract", attempt=1, state="completed", started=0, finished=None, **more):
    return Attempt.unguarded.create(
        run_id=run.pk,
        step_key_digest=f"digest of {step}",
        step_key_hash=hashlib.sha256(step.encode()).digest(),
        attempt=attempt,
        step_name=step,
        state=state,
        started_at_ms=started,
        finished_at_ms=finished,
        **more,
    )


@pytest.fixture
def show(viewer, page, run):
    return lambda **query: section(page(viewer, run_url(run.pk), **query), "attempts")


def test_an_attempt_shows_step_number_state_and_how_long_it_took(show, run):
    record(run, "extract", 3, "failed", started=1_000, finished=13_500)
    text = show()
    for shown in ("extract</th>", "<td>3</td>", "failed", "1970-01-01 00:00:01.000", "12.5 s"):
        assert shown in text


def test_checkpoint_error_and_outcome_are_shown_with_their_names(show, run):
    record(
        run,
        checkpoint_json='{"page":7}',
        error_json='{"type":"<E>"}',
        outcome_json='"fine"',
        finished=1,
    )
    text = show()
    for shown in ("Checkpoint", '"page": 7', "Error", '"type": "<E>"', "Outcome", '"fine"'):
        assert shown in unescape(text)
    assert "<E>" not in text
    assert ">error</strong>" in text


def test_an_attempt_without_a_name_is_known_by_its_key(show, run):
    record(run, "")
    assert "digest of " in show()


def test_what_is_not_finished_lasts_so_far(show, run):
    record(run, state="running")
    assert "days so far" in show()


def test_the_chart_draws_each_attempt_and_says_how_it_ended(show, run):
    record(run, "extract", 1, "failed", 0, 12_000, error_json="{}")
    record(run, "extract", 2, "completed", 20_000, 80_000)
    drawing = show().partition("<svg")[2].partition("</svg>")[0]
    assert "<title>extract #1: 12.0 s, failed, error</title>" in drawing
    assert "<title>extract #2: 60.0 s, completed</title>" in drawing
    assert drawing.index("extract #1") < drawing.index("extract #2")


def test_a_run_without_attempts_says_so_and_has_no_chart(show):
    text = show()
    assert "It has recorded no attempt at a step." in text
    assert "<svg" not in text


def test_many_attempts_are_shown_page_by_page(show, run, monkeypatch):
    monkeypatch.setattr(attempts, "MOST_ATTEMPTS", 2)
    # The two in the middle began at the same time; the later row comes first.
    rows = [record(run, "s", n, started=at) for n, at in enumerate((0, 5, 5, 9))]
    text = show()
    cursor = f"5-{rows[2].pk}"
    assert f"attempts_before={cursor}#attempts" in text
    assert ("s #3" in text, "s #2" in text, "s #1" in text) == (True, True, False)
    older = show(attempts_before=cursor)
    assert ("s #1" in older, "s #0" in older, "s #2" in older) == (True, True, False)
    assert '<a href="?#attempts">Newest</a>' in older
    assert "There is nothing more." in show(attempts_before="0-0")


@pytest.mark.parametrize("cursor", ["x", "1", "-", "1-x", "-1--1", "9" * 30 + "-1", "\0"])
def test_a_cursor_that_is_none_is_ignored(show, run, cursor):
    record(run)
    assert "extract #1" in show(attempts_before=cursor)


def test_what_attempts_hold_is_hidden_with_the_state(show, run, settings):
    settings.RUNSTORE = {"ADMIN_SHOWS_STATE": False}
    record(run, checkpoint_json='"hunter2"', error_json='"hunter3"', outcome_json='"hunter4"')
    text = show()
    assert "hunter" not in text
    assert ">error</strong>" in text


def test_long_ones_are_cut_and_folded(show, run):
    record(run, checkpoint_json=f'"{"x" * 10_000}"')
    text = show()
    assert "<summary>Checkpoint: 10002 characters</summary>" in text
    assert "The first 2000 of 10002 characters." in text
    assert "x" * 2_000 not in text


def test_steps_and_states_are_shown_safely(show, run):
    record(run, "<b>\u202estep", state="<i>\u202estate")
    text = show()
    assert ("<b>" in text, "<i>" in text, "\u202e" in text) == (False, False, False)
