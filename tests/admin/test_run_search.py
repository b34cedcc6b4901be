import pytest

from django_runstore.admin.keyset import read_page
from django_runstore.admin.run_search import by_status, found_by, search_sections
from django_runstore.models import Run
from django_runstore.states import RunStatus
from django_runstore.testing.factories import RunFactory

pytestmark = pytest.mark.django_db


def found(term, statuses=tuple(RunStatus)):
    sections = search_sections(Run.objects.filter(status__in=statuses), term, statuses)
    return [run.run_id for run in read_page(sections, None, 100).rows]


def test_ids_come_first_then_lineages_then_handlers():
    RunFactory.raw(run_id="by-handler", handler="alpha", created_at_ms=9)
    RunFactory.raw(run_id="by-lineage", lineage_id="alpha-line", round_ordinal=0, created_at_ms=8)
    RunFactory.raw(run_id="alpha-1", created_at_ms=1)
    RunFactory.raw(run_id="nothing", handler="beta")
    assert found("alpha") == ["alpha-1", "by-lineage", "by-handler"]


def test_a_run_that_matches_in_every_way_is_found_once():
    RunFactory.raw(run_id="alpha", lineage_id="alpha", round_ordinal=0, handler="alpha")
    assert found("alpha") == ["alpha"]


def test_a_run_without_a_lineage_is_found_by_its_handler():
    RunFactory.raw(run_id="one", handler="alpha")
    assert found("alpha") == ["one"]


def test_a_handler_is_found_by_its_whole_name_only():
    RunFactory.raw(run_id="one", handler="alpha.beta")
    assert (found("alpha.beta"), found("alpha")) == (["one"], [])


def test_upper_and_lower_case_differ_as_they_do_in_ids():
    RunFactory.raw(run_id="Alpha")
    assert (found("Alpha"), found("alpha")) == (["Alpha"], [])


def test_the_rounds_of_a_lineage_come_in_order():
    for number in range(12):
        RunFactory.raw(run_id=f"r{number}", lineage_id="line", round_ordinal=number)
    assert found("line") == [f"r{number}" for number in range(11, -1, -1)]


def test_the_runs_of_a_handler_come_newest_first_whatever_their_status():
    statuses = ["failed", "pending", "completed", "cancelled", "suspended"]
    for number, status in enumerate(statuses):
        RunFactory.raw(run_id=f"r{number}", handler="h", created_at_ms=number, status=status)
    assert found("h") == ["r4", "r3", "r2", "r1", "r0"]


@pytest.mark.parametrize(
    "beginning", ["a%", "a_", "\ud7ff", "a\U0010ffff", "\U0010ffff", "z\U0010ffff\U0010ffff", " "]
)
def test_a_beginning_is_taken_character_by_character(beginning):
    RunFactory.raw(run_id=beginning)
    RunFactory.raw(run_id=f"{beginning}more")
    RunFactory.raw(run_id="a")
    RunFactory.raw(run_id="\ue000")
    assert found(beginning) == [f"{beginning}more", beginning]


@pytest.mark.parametrize("term", ["alpha", "a", "\U0010ffff", "line-1"])
def test_the_sections_are_all_that_an_action_may_choose_from(term):
    RunFactory.raw(run_id="alpha", handler="line-1")
    RunFactory.raw(run_id="beta", lineage_id="alpha", round_ordinal=0)
    RunFactory.raw(run_id="gamma", handler="alpha")
    RunFactory.raw(run_id="\U0010ffff", handler="line-1")
    assert set(found(term)) == set(Run.objects.filter(found_by(term)).values_list("pk", flat=True))


def test_the_parts_by_status_are_all_of_the_runs_and_disjoint():
    for status in RunStatus:
        RunFactory(status=status)
    parts = [set(part) for part in by_status(Run.objects.all(), tuple(RunStatus))]
    assert sum(map(len, parts)) == len(set().union(*parts)) == len(RunStatus)


@pytest.mark.parametrize("status", RunStatus)
def test_one_status_is_one_part(status):
    assert len(by_status(Run.objects.all(), (status,))) == 1


def test_other_statuses_are_left_out():
    RunFactory.raw(run_id="a", handler="h", status="failed")
    RunFactory.raw(run_id="b", handler="h", status="pending")
    assert found("h", (RunStatus.FAILED,)) == ["a"]
