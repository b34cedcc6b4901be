import re

import pytest

from django_runstore.admin.badges import status_badge
from django_runstore.states import RunStatus


def shape(status):
    return re.search(r"<svg.*?</svg>", str(status_badge(status)), re.DOTALL)[0]


@pytest.mark.parametrize("status", RunStatus)
def test_every_status_has_a_badge_with_its_word_and_a_shape(status):
    badge = str(status_badge(status))
    assert f"<span>{status.label}</span>" in badge
    assert f"runstore-badge--{status.value}" in badge
    assert "<svg" in badge


def test_no_two_statuses_have_the_same_shape():
    assert len({shape(status) for status in RunStatus}) == len(RunStatus)


def test_a_screen_reader_hears_the_word_only():
    assert all('aria-hidden="true"' in shape(status) for status in RunStatus)


def test_a_shape_is_drawn_without_styles():
    assert not any("style" in str(status_badge(status)) for status in RunStatus)


def test_a_status_that_is_not_known_is_escaped():
    assert str(status_badge("<b>")) == '<span class="runstore-badge">&lt;b&gt;</span>'
