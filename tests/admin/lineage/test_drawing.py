import pytest

from django_runstore.admin.lineage import drawing
from django_runstore.admin.lineage.drawing import COLUMN, NODE_HEIGHT, STEP, picture_of
from django_runstore.admin.lineage.reading import family_of
from django_runstore.models import Run
from django_runstore.testing.factories import RunFactory
from tests.admin.lineage.families import line

pytestmark = pytest.mark.django_db


@pytest.fixture
def draw():
    return lambda run_id: picture_of(family_of(Run.objects.get(pk=run_id), Run.objects.all()))


def places(picture):
    """Column and row of each run, counted from the upper left."""
    left, top = min(n.x for n in picture.nodes), min(n.y for n in picture.nodes)
    return {
        node.kin.run_id: ((node.x - left) // COLUMN, (node.y - top) // STEP)
        for node in picture.nodes
    }


def test_generations_are_columns_and_descendants_stand_beside_their_parents(draw):
    RunFactory(run_id="above")
    RunFactory(run_id="line", parent_run_id="above")
    RunFactory(run_id="line-1", lineage_id="line", round_ordinal=1)
    for name, parent in (("a", "line"), ("b", "line"), ("aa", "a"), ("c", "line-1")):
        RunFactory(run_id=name, parent_run_id=parent)
    assert places(draw("line")) == {
        "above": (0, 0),
        "line": (1, 0),
        "a": (2, 0),
        "aa": (3, 0),
        "b": (2, 1),
        "line-1": (1, 2),
        "c": (2, 2),
    }


def test_no_two_runs_stand_in_the_same_place(draw):
    parents = [RunFactory(run_id=f"parent-{n}") for n in range(2)]
    line("line", 0)
    for number, parent in enumerate(parents, 1):
        RunFactory(
            run_id=f"line-{number}",
            lineage_id="line",
            round_ordinal=number,
            parent_run_id=parent.pk,
        )
    for number in range(7):
        RunFactory(run_id=f"child-{number}", parent_run_id=f"line-{number % 3}")
    picture = draw("line-0")
    found = places(picture)
    assert len(set(found.values())) == len(found) == 12
    assert all(0 <= node.y <= picture.height - NODE_HEIGHT for node in picture.nodes)
    assert all(0 <= node.x <= picture.width - picture.node_width for node in picture.nodes)


def test_the_run_of_the_page_is_marked(draw):
    line("line", 0, 1)
    marked = [node.kin.run_id for node in draw("line-1").nodes if node.is_origin]
    assert marked == ["line-1"]


def test_a_node_says_in_words_what_it_is(draw):
    RunFactory(run_id="a" * 40, failed=True, lineage_id="l", round_ordinal=3)
    (node,) = draw("a" * 40).nodes
    assert (node.name, node.place) == ("a" * 21 + "…", "round 3 · failed")
    assert node.title == "a" * 40 + ": round 3 · failed"


def test_a_line_does_not_cross_a_third_run_of_the_column(draw):
    line("line", 0, 1)
    RunFactory(run_id="back", lineage_id="line", round_ordinal=2, parent_run_id="line-0")
    paths = {one.path: one.is_descent for one in draw("line-0").lines}
    straight = [path for path in paths if "V" in path]
    bent = [path for path in paths if "C" in path]
    # From round 0 to 1 and from 1 to 2 straight down; from 0 to 2 around.
    assert (len(straight), len(bent)) == (2, 1)
    assert [paths[path] for path in bent] == [True]


def test_of_a_large_family_some_are_drawn_the_run_itself_among_them(draw, monkeypatch):
    monkeypatch.setattr(drawing, "MOST_DRAWN", 4)
    line("line", *range(6))
    for number in range(6):
        RunFactory(run_id=f"child-{number}", parent_run_id="line-5")
    picture = draw("line-0")
    assert set(places(picture)) == {"line-0", "line-5", "child-0", "child-1"}
    assert picture.undrawn == 8


def test_relatives_leave_their_room_to_rounds_when_there_are_few(draw, monkeypatch):
    monkeypatch.setattr(drawing, "MOST_DRAWN", 4)
    line("line", *range(6))
    assert set(places(draw("line-5"))) == {"line-2", "line-3", "line-4", "line-5"}
