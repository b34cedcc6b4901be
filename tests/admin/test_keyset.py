from itertools import pairwise

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore.admin.addresses import url_token
from django_runstore.admin.keyset import Edge, Section, edge_from, read_page
from django_runstore.models import Run
from django_runstore.testing.factories import RunFactory

pytestmark = pytest.mark.django_db

NEWEST = ("created_at_ms", "run_id")


@pytest.fixture
def runs():
    """Seven runs of which three share a millisecond: g, f, e, d, c, b, a from newest to oldest."""
    created = {"a": 1, "b": 2, "c": 5, "d": 5, "e": 5, "f": 8, "g": 9}
    for run_id, at_ms in created.items():
        RunFactory.raw(
            run_id=run_id, created_at_ms=at_ms, status="pending" if run_id in "ace" else "failed"
        )
    return Run.objects.all()


@pytest.fixture
def whole(runs):
    return [Section([runs], NEWEST)]


@pytest.fixture
def in_parts(runs):
    return [Section([runs.filter(status="pending"), runs.filter(status="failed")], NEWEST)]


@pytest.fixture
def in_two_sections(runs):
    """The failed ones by id, and then the others, newest first."""
    return [
        Section([runs.filter(status="failed")], ("run_id",)),
        Section([runs.filter(status="pending")], NEWEST),
    ]


def ids(page):
    return "".join(run.run_id for run in page.rows)


def forward(sections, size):
    pages, edge = [], None
    while True:
        page = read_page(sections, edge, size)
        pages.append(page)
        if page.after is None:
            return pages
        edge = page.after


@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 8])
@pytest.mark.parametrize(
    ("sections", "order"),
    [("whole", "gfedcba"), ("in_parts", "gfedcba"), ("in_two_sections", "gfdbeca")],
)
def test_every_row_is_on_one_page_in_order(request, sections, order, size):
    pages = forward(request.getfixturevalue(sections), size)
    assert "".join(map(ids, pages)) == order
    assert {len(page.rows) for page in pages[:-1]} <= {size}


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("sections", ["whole", "in_parts", "in_two_sections"])
def test_the_way_back_leads_over_the_same_rows(request, sections, size):
    sections = request.getfixturevalue(sections)
    pages = forward(sections, size)
    for earlier, later in pairwise(pages):
        back = read_page(sections, later.before, size)
        assert ids(back) == ids(earlier)
        assert back.after is not None
        assert (back.before is None) == (earlier.before is None)


def test_the_first_page_leads_nowhere_back_and_the_last_nowhere_on(whole):
    first, last = forward(whole, 4)
    assert (first.before, last.after) == (None, None)


def test_all_rows_on_one_page_lead_nowhere(whole):
    page = read_page(whole, None, 7)
    assert (ids(page), page.before, page.after) == ("gfedcba", None, None)


def test_less_than_a_page_before_an_edge_is_the_first_page(whole):
    page = read_page(whole, Edge(0, (8, "f"), is_before=True), 3)
    assert ids(page) == "gfe"
    assert page.before is None


def test_a_row_that_is_added_moves_no_later_page(whole):
    first = read_page(whole, None, 2)
    RunFactory.raw(run_id="h", created_at_ms=10)
    assert ids(read_page(whole, first.after, 2)) == "ed"


def test_an_edge_whose_row_is_gone_is_still_a_place(whole):
    first = read_page(whole, None, 2)
    Run.unguarded.filter(pk="f").delete()
    assert ids(read_page(whole, first.after, 2)) == "ed"


def test_nothing_leads_nowhere(whole):
    Run.unguarded.all().delete()
    page = read_page(whole, Edge(0, (5, "c")), 2)
    assert (page.rows, page.before, page.after) == ([], None, None)


def test_several_parts_are_one_statement(in_parts):
    with CaptureQueriesContext(connection) as queries:
        assert ids(read_page(in_parts, None, 3)) == "gfe"
    assert len(queries) == 1


@pytest.mark.parametrize("backwards", [False, True])
def test_several_parts_give_no_more_than_one(in_parts, backwards):
    rows = in_parts[0].read(None, 2, backwards=backwards)
    assert "".join(run.run_id for run in rows) == ("ab" if backwards else "gf")


def test_parts_that_can_hold_nothing_are_not_asked_for(runs):
    nothing = [Section([runs.none(), runs.none()], NEWEST)]
    with CaptureQueriesContext(connection) as queries:
        assert read_page(nothing, None, 3).rows == []
    assert not queries.captured_queries


def test_a_part_leaves_what_is_deferred_unread(runs):
    narrow = runs.defer("state_json")
    section = Section([narrow.filter(status="pending"), narrow.filter(status="failed")], NEWEST)
    assert "state_json" in read_page([section], None, 1).rows[0].get_deferred_fields()


class TestEdges:
    @pytest.mark.parametrize("run_id", ["a/b?#&=+", "🚀" * 512, "a\nb", "\u202e", "x" * 1_024])
    def test_a_token_survives_a_url_whatever_the_id(self, whole, run_id):
        edge = Edge(0, (2**53 - 1, run_id))
        token = edge.token()
        assert set(token) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        assert edge_from(token, whole, is_before=False) == edge

    @pytest.mark.parametrize(
        "token",
        [
            "",
            "nonsense",
            "\0",
            "ü",
            "A" * 20_000,
            "AAAA",
            url_token([]),
            url_token([0]),
            url_token([1, 5, "c"]),
            url_token([-1, 5, "c"]),
            url_token([0, 5]),
            url_token([0, 5, "c", "d"]),
            url_token([0, "5", "c"]),
            url_token([0, 5, 7]),
            url_token([0, -1, "c"]),
            url_token([0, 2**63, "c"]),
            url_token([0, True, "c"]),
            url_token([0, 5, "a\0b"]),
            url_token([0, [5], {"c": 1}]),
            "W" * 9_000,
        ],
    )
    def test_what_nobody_here_has_written_is_no_edge(self, whole, token):
        assert edge_from(token, whole, is_before=False) is None
