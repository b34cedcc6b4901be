import json
import re
from html import unescape

import pytest
from django.contrib import admin
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore.admin import addresses
from django_runstore.admin.lineage import reading
from django_runstore.testing.factories import RunFactory
from tests.admin.lineage.families import line
from tests.admin.pages import ODD_IDS, RUNS, act_url, as_a_browser_asks, links, run_url

pytestmark = pytest.mark.django_db


def lineage_url(run_id):
    return addresses.run_url(run_id, admin.site, "lineage")


def test_the_page_of_a_run_leads_to_its_lineage(viewer, page):
    line("line", 0, 1)
    assert lineage_url("line-1") in links(page(viewer, run_url("line-1")))


def test_it_shows_a_picture_with_links_and_a_table_with_totals(viewer, page):
    line("line", 0, 1)
    RunFactory(run_id="child", parent_run_id="line-0", failed=True)
    text = page(viewer, lineage_url("line-1"))
    drawing = text.partition('class="runstore-drawing"')[2].partition("</svg>")[0]
    assert set(links(drawing)) == {lineage_url(name) for name in ("line-0", "line-1", "child")}
    assert 'aria-current="page"' in drawing
    table = text.partition("<table>")[2]
    assert {run_url("line-0"), run_url("line-1"), run_url("child")} <= set(links(table))
    assert "<dt>Runs</dt><dd>3</dd>" in text
    assert "<dt>Rounds</dt><dd>2</dd>" in text


@pytest.mark.parametrize("run_id", ODD_IDS)
def test_every_id_has_a_lineage_that_shows_it_safely(viewer, page, run_id):
    RunFactory(run_id=run_id)
    text = page(viewer, as_a_browser_asks(lineage_url(run_id)))
    assert 'class="runstore-drawing"' in text
    assert "<b>" not in text
    assert "\u202e" not in text


def test_a_family_that_is_too_large_says_so(viewer, page, monkeypatch):
    monkeypatch.setattr(reading, "MOST_ROUNDS", 1)
    line("line", 0, 1)
    text = page(viewer, lineage_url("line-1"))
    assert "larger than what is read for a page" in text
    assert "larger than what is read" not in page(viewer, lineage_url(RunFactory().pk))


@pytest.mark.parametrize(
    ("wanted", "kind", "name"),
    [
        ("json", "application/json", "lineage.json"),
        ("mermaid", "text/plain; charset=utf-8", "lineage.mmd"),
        ("dot", "text/plain; charset=utf-8", "lineage.dot"),
    ],
)
def test_it_is_written_in_other_formats_as_a_file(viewer, page, wanted, kind, name):
    line("line", 0)
    assert f"?format={wanted}" in links(page(viewer, lineage_url("line-0")))
    response = viewer.get(lineage_url("line-0"), {"format": wanted})
    assert (response.status_code, response["Content-Type"]) == (200, kind)
    assert response["Content-Disposition"] == f'attachment; filename="{name}"'
    assert response["X-Content-Type-Options"] == "nosniff"
    assert b"line-0" in response.content


def test_the_json_can_be_read(viewer):
    line("line", 0)
    response = viewer.get(lineage_url("line-0"), {"format": "json"})
    assert json.loads(response.content)["runs"][0]["run_id"] == "line-0"


@pytest.mark.parametrize("wanted", ["xml", "", "\0", "json%00"])
def test_a_format_that_is_none_is_not_found(viewer, wanted):
    RunFactory(run_id="a")
    assert viewer.get(lineage_url("a"), {"format": wanted}).status_code == 404


@pytest.mark.parametrize("path", ["%00", "a%00b", "missing", "%ED%A0%80", "x" * 5_000])
def test_what_is_no_run_is_not_found(viewer, path):
    assert viewer.get(f"{RUNS}{path}/lineage/").status_code == 404


def test_staff_without_the_permission_sees_nothing(member):
    RunFactory(run_id="a")
    client = member("cancel_run", "cancel_lineage")
    assert client.get(lineage_url("a")).status_code == 403
    assert client.get(lineage_url("a"), {"format": "json"}).status_code == 403
    assert client.get(lineage_url("missing")).status_code == 403


def test_a_visitor_is_asked_to_log_in(client):
    RunFactory(run_id="a")
    assert client.get(lineage_url("a")).status_code == 302


def test_its_buttons_lead_to_a_confirmation_and_back_here(lineage_operator, page):
    line("line", 0)
    text = page(lineage_operator, lineage_url("line-0"))
    (url,) = [link for link in links(text) if "/act/" in link]
    assert url == f"{act_url('cancel_lineage', 'line-0')}?back=lineage"
    assert lineage_url("line-0") in links(page(lineage_operator, url))
    assert lineage_operator.post(url)["Location"] == lineage_url("line-0")


def test_a_viewer_has_no_buttons(viewer, page):
    line("line", 0)
    assert "/act/" not in page(viewer, lineage_url("line-0"))


def test_it_takes_at_most_twelve_queries(viewer, page):
    parent = None
    for name in ("g3", "g2", "g1", "me", "d1", "d2", "d3", "d4"):
        RunFactory(run_id=name, parent_run_id=parent)
        parent = name
    page(viewer, lineage_url("me"))
    with CaptureQueriesContext(connection) as queries:
        page(viewer, lineage_url("me"))
    assert len(queries) <= 12, [query["sql"] for query in queries]


def test_the_title_is_short_and_in_order(viewer, page):
    RunFactory(run_id="\u202e" + "x" * 1_000)
    text = page(viewer, lineage_url("\u202e" + "x" * 1_000))
    title = unescape(re.search(r"<title>(.*?)</title>", text, re.DOTALL)[1])
    assert len(title) < 200
    assert "\u202e" not in title


def test_it_brings_no_styles_or_scripts_of_its_own(viewer, page):
    line("line", 0, 1)
    text = page(viewer, lineage_url("line-0"))
    assert " style=" not in text
    assert not re.search(r"<script(?![^>]*(src|type))", text)
