import pytest

from django_runstore.models import Run
from django_runstore.services import RunStore
from django_runstore.testing import FakeClock
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import links, run_url

pytestmark = pytest.mark.django_db


@pytest.fixture
def columns(viewer, page):
    """The columns of a run's page."""

    def of(run):
        text = page(viewer, run_url(run.pk))
        return text.partition('data-runstore-region="columns"')[2].partition("<section")[0]

    return of


def test_a_claimed_run_names_its_claimant_and_when(columns):
    run = RunFactory(claimed=True, clock=FakeClock(5))
    shown = columns(run)
    assert "factory.invalid pid" in shown
    assert "1970-01-01 00:00:00.005" in shown


def test_the_lineage_is_named_with_the_round(columns):
    run = RunFactory(lineage_id="the-line", round_ordinal=3)
    assert "the-line, round 3" in columns(run)


def test_a_run_without_a_lineage_leads_to_its_relatives_all_the_same(columns):
    run = RunFactory()
    shown = columns(run)
    assert "none; see parents and children" in shown
    assert run_url(run.pk, "lineage") in links(shown)


def test_waits_deadlines_and_requests_are_times_of_the_store(columns):
    run = RunFactory()
    Run.unguarded.filter(pk=run.pk).update(
        waiting_reason="approval\u202e",
        waiting_wake_at_ms=1,
        deadline_at_ms=2,
        cancel_requested_at_ms=3,
        available_at_ms=4,
        progressed_at_ms=0,
    )
    shown = columns(run)
    for number in (1, 2, 3, 4):
        assert f"1970-01-01 00:00:00.00{number}" in shown
    assert r"approval\u202e" in shown
    assert "days ago" in shown


def test_asked_seen_and_ended_are_three_times(columns):
    clock = FakeClock(1)
    run = RunFactory(running=True, clock=clock)
    store = RunStore(clock=clock)
    store.request_cancel(run.pk, 2)
    assert "00:00:00.003" not in columns(run)
    clock.set(3)
    assert store.acknowledge_cancel(run.pk, store.get(run.pk).owner)
    clock.set(4)
    store.transition_owned(run.pk, store.get(run.pk).owner, "cancelled")
    shown = columns(run)
    for name, number in (("asked to stop", 2), ("request seen", 3), ("finished", 4)):
        assert f"1970-01-01 00:00:00.00{number}" in shown.lower().partition(name)[2]


@pytest.mark.parametrize("text", ["nonsense", "[]", "{}", '{"observed_at_ms": null}'])
def test_an_acknowledgement_that_is_none_is_called_unreadable(columns, text):
    run = RunFactory(running=True)
    Run.unguarded.filter(pk=run.pk).update(
        cancel_requested_at_ms=1, cancel_acknowledgement_json=text
    )
    assert "unreadable" in columns(run)
