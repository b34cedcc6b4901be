import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore.admin.lineage import reading
from django_runstore.admin.lineage.reading import family_of
from django_runstore.models import Run
from django_runstore.testing.factories import RunFactory
from tests.admin.lineage.families import line

pytestmark = pytest.mark.django_db


def kin_of(run_id):
    return {
        kin.run_id: (kin.kinship.value, kin.generation)
        for kin in family_of(Run.objects.get(pk=run_id), Run.objects.all()).kin
    }


def edges_of(run_id):
    family = family_of(Run.objects.get(pk=run_id), Run.objects.all())
    return {(edge.source, edge.target, edge.kind.value) for edge in family.edges}


def is_complete(run_id):
    return family_of(Run.objects.get(pk=run_id), Run.objects.all()).is_complete


def test_every_round_has_the_same_family():
    RunFactory(run_id="above")
    RunFactory(run_id="line", parent_run_id="above")
    RunFactory(run_id="line-1", lineage_id="line", round_ordinal=1, parent_run_id="line")
    RunFactory(run_id="child", parent_run_id="line-1")
    RunFactory(run_id="fork", parent_run_id="line", lineage_id="fork", round_ordinal=0)
    RunFactory(run_id="unrelated")
    expected = {
        "above": ("parent", -1),
        "line": ("round", 0),
        "line-1": ("round", 0),
        "child": ("child", 1),
        "fork": ("fork", 1),
    }
    assert kin_of("line") == kin_of("line-1") == expected
    assert is_complete("line")


def test_a_run_alone_is_a_round_of_its_own():
    RunFactory(run_id="alone")
    assert kin_of("alone") == {"alone": ("round", 0)}


def test_lines_are_descents_and_the_order_of_rounds_where_none_descends():
    line("line", 0, 1)
    RunFactory(run_id="line-2", lineage_id="line", round_ordinal=2, parent_run_id="line-1")
    RunFactory(run_id="child", parent_run_id="line-0")
    assert edges_of("line-1") == {
        ("line-0", "line-1", "next_round"),
        ("line-1", "line-2", "parent"),
        ("line-0", "child", "parent"),
    }


def test_relatives_are_read_for_some_generations_and_it_is_said_that_there_are_more():
    parent = None
    for name in ("g3", "g2", "g1", "me", "d1", "d2", "d3", "d4"):
        RunFactory(run_id=name, parent_run_id=parent)
        parent = name
    assert kin_of("me") == {
        "g2": ("parent", -2),
        "g1": ("parent", -1),
        "me": ("round", 0),
        "d1": ("child", 1),
        "d2": ("child", 2),
        "d3": ("child", 3),
    }
    assert not is_complete("me")
    assert not is_complete("d1")


@pytest.mark.parametrize("run_id", ["g2", "d3"])
def test_a_family_that_ends_in_sight_is_complete(run_id):
    parent = None
    for name in ("g2", "g1", "d3"):
        RunFactory(run_id=name, parent_run_id=parent)
        parent = name
    assert is_complete(run_id)


def test_of_many_rounds_the_newest_are_read_and_the_one_asked_for(monkeypatch):
    monkeypatch.setattr(reading, "MOST_ROUNDS", 2)
    parent = None
    for number in range(5):
        RunFactory(
            run_id=f"line-{number}",
            lineage_id="line",
            round_ordinal=number,
            parent_run_id=parent,
        )
        parent = f"line-{number}"
    # The rounds around it are out of sight, and are not taken for its parents and children.
    assert kin_of("line-1") == dict.fromkeys(("line-1", "line-3", "line-4"), ("round", 0))
    assert not is_complete("line-1")


def test_of_many_relatives_only_some_are_read(monkeypatch):
    monkeypatch.setattr(reading, "MOST_RELATIVES", 2)
    RunFactory(run_id="me")
    for number in range(3):
        RunFactory(run_id=f"child-{number}", parent_run_id="me")
    assert len(kin_of("me")) == 3
    assert not is_complete("me")


def test_the_number_of_queries_is_bounded():
    RunFactory(run_id="me")
    for number in range(20):
        RunFactory(run_id=f"child-{number}", parent_run_id="me")
        RunFactory(run_id=f"grandchild-{number}", parent_run_id=f"child-{number}")
    run = Run.objects.get(pk="me")
    with CaptureQueriesContext(connection) as queries:
        family_of(run, Run.objects.all())
    # The rounds, three generations down, and none up.
    assert len(queries) <= 4


def test_nothing_wide_is_read():
    line("line", 0, 1)
    run = Run.objects.only("run_id", "lineage_id").get(pk="line-0")
    with CaptureQueriesContext(connection) as queries:
        family_of(run, Run.objects.all()).totals()
    assert not any("_json" in query["sql"] for query in queries)


def test_totals_add_up():
    RunFactory(run_id="a", completed=True)
    Run.unguarded.filter(pk="a").update(
        started_at_ms=1_000, finished_at_ms=4_000, failure_count=2, recovery_count=1
    )
    RunFactory(run_id="b", parent_run_id="a", failed=True)
    Run.unguarded.filter(pk="b").update(started_at_ms=0, finished_at_ms=500, failure_count=1)
    RunFactory(run_id="c", parent_run_id="a")
    totals = family_of(Run.objects.get(pk="a"), Run.objects.all()).totals()
    assert (totals.runs, totals.rounds, totals.failures, totals.recoveries) == (3, 1, 3, 1)
    assert totals.ran_ms == 3_500
    assert totals.by_status == {"completed": 1, "failed": 1, "pending": 1}
