import re
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore.testing.factories import RunFactory
from tests.admin.pages import links, run_url

pytestmark = pytest.mark.django_db


def test_state_result_and_error_are_indented_and_escaped(viewer, page):
    run = RunFactory(
        failed=True, state_json='{"a":"<script>"}', error_json='{"type":"E","message":"m"}'
    )
    text = unescape(page(viewer, run_url(run.pk)))
    assert '{\n  "a": "<script>"\n}' in text
    assert '"type": "E"' in text
    assert (
        "<script>" not in page(viewer, run_url(run.pk)).split("field-state")[1].split("</pre>")[0]
    )


def test_a_long_state_is_cut_and_says_so(viewer, page):
    run = RunFactory(state_json=f'"{"x" * 1_000_000}"')
    text = page(viewer, run_url(run.pk))
    assert "The first 20000 of 1000002 characters." in text
    assert len(text) < 100_000


def test_a_long_state_is_not_even_read(viewer, page):
    run = RunFactory(state_json=f'"{"x" * 1_000_000}"')
    with CaptureQueriesContext(connection) as queries:
        page(viewer, run_url(run.pk))
    reading = [query["sql"] for query in queries if '"state_json"' in query["sql"]]
    assert reading
    assert all("LENGTH(" in sql for sql in reading)


def test_hidden_state_is_neither_shown_nor_read(viewer, page, settings):
    settings.RUNSTORE = {"ADMIN_SHOWS_STATE": False}
    run = RunFactory(completed=True, state_json='"hunter2"', result_json='"hunter3"')
    with CaptureQueriesContext(connection) as queries:
        text = page(viewer, run_url(run.pk))
    assert "hunter" not in text
    assert "Hidden by RUNSTORE" in text
    assert not any("state_json" in query["sql"] for query in queries)


def test_no_state_is_in_titles_or_urls(viewer, page):
    run = RunFactory(state_json='"hunter2"')
    text = page(viewer, run_url(run.pk))
    heads = re.findall(r"<(?:title|h1|h2)[^>]*>(.*?)</", text, re.DOTALL)
    assert not any("hunter2" in found for found in [*heads, *links(text)])


def test_marks_that_turn_text_around_are_spelled_out(viewer, page):
    run = RunFactory(state_json='"\u202e\\u0000 \u2066\x7f"')
    text = page(viewer, run_url(run.pk))
    assert r"\u202e\u0000 \u2066\u007f" in text
