"""On PostgreSQL, every page of the admin costs the same however many runs are settled."""

from urllib.parse import urlencode

import pytest

from benchmarks import crowd
from benchmarks.page_plans import cost_of
from django_runstore.admin.addresses import owner_token
from django_runstore.admin.attention import CONCERNS
from django_runstore.models import JournalEntry
from django_runstore.owners import OwnerId
from django_runstore.states import RunStatus
from django_runstore.testing import FakeClock
from tests.admin.pages import ENTRIES, OVERVIEW, RUNS, entry_url, run_url

pytestmark = pytest.mark.postgres("its planner is what is asked")

SETTLED = 100_000
LIVE = 200
MOST_QUERIES = 12
# Fifty rows in as many pages, four buffers of an index to find each; the live runs, which can
# lie before what is looked for; and what the filters offer, one probe per name.
MOST_BUFFERS = 5 * 50 + 2 * LIVE + 3 * (crowd.HANDLERS + 2 * crowd.QUEUES)

QUERIES = {
    "everything": {},
    "live": {"status": "live"},
    **{f"status {status}": {"status": status.value} for status in RunStatus},
    **{f"attention {each.name}": {"attention": each.name} for each in CONCERNS},
    "cancellation": {"cancellation": "requested"},
    "a handler": {"handler": "handler.7"},
    "a handler that never ran": {"handler": "nobody"},
    "a handler's failures": {"handler": "handler.7", "status": "failed"},
    "a queue": {"queue": "queue-3"},
    "a queue that is not there": {"queue": "nowhere"},
    "waiting": {"waiting": "approval-1"},
    "waiting for nothing": {"waiting": "godot"},
    "an owner": {"owner": owner_token(OwnerId("web-1", 101, "nonce"))},
    "an owner that is gone": {"owner": owner_token(OwnerId("web-9", 1, "nonce"))},
    "a year": {"created": "2026"},
    "a day": {"created": "2026-06-05"},
    "the past day": {"created": "24h"},
    "a handler on a day": {"created": "2026-06-05", "handler": "handler.7"},
    "an id": {"q": "settled-00050000"},
    "the beginning of every id": {"q": "s"},
    "the beginning of a lineage": {"q": "line-1"},
    "a handler by name": {"q": "handler.7"},
    "what is not there": {"q": "zzz"},
    "failures among ids": {"q": "settled-0005", "status": "failed"},
}


@pytest.fixture(scope="module")
def year(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock():
        crowd.load(SETTLED, LIVE)
        yield
        crowd.empty()


@pytest.fixture(autouse=True)
def _now(monkeypatch):
    for module in ("filters", "created_filter", "read_only", "overview.figures"):
        monkeypatch.setattr(
            f"django_runstore.admin.{module}.clock_for", lambda _: FakeClock(crowd.NOW_MS)
        )


@pytest.fixture
def cost(year, viewer):
    def measure(url, **query):
        def visit():
            assert viewer.get(url, query).status_code == 200

        visit()  # so that templates and plans are there
        return cost_of(visit)

    return measure


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_list_costs_what_it_shows_and_not_what_there_is(cost, query):
    found = cost(RUNS, **query)
    assert found.whole == set()
    assert found.queries <= MOST_QUERIES
    assert found.buffers <= MOST_BUFFERS


@pytest.mark.parametrize("query", [{}, {"handler": "handler.7"}, {"q": "s"}, {"status": "failed"}])
def test_the_middle_of_a_list_costs_as_much_as_its_beginning(cost, viewer, query):
    url = f"{RUNS}?{urlencode(query)}"
    for _ in range(3):
        url = RUNS + viewer.get(url).context["cl"].older_url
    found = cost(url)
    assert found.whole == set()
    assert found.buffers <= MOST_BUFFERS


@pytest.mark.parametrize("run_id", ["settled-00050001", "running-00000007", "parked-00000001"])
def test_the_page_of_a_run_reads_no_whole_table(cost, run_id):
    found = cost(run_url(run_id))
    assert found.whole == set()
    assert found.buffers <= MOST_BUFFERS


@pytest.mark.parametrize("run_id", ["settled-00050001", "running-00000007"])
def test_the_page_of_a_lineage_costs_what_it_shows(cost, run_id):
    found = cost(run_url(run_id, "lineage"))
    assert found.whole == set()
    assert found.queries <= MOST_QUERIES
    assert found.buffers <= 50


@pytest.mark.parametrize(
    "query",
    [{}, {"q": "settled-00050000"}, {"q": "settled-00050000", "stream": "own"}, {"q": "nobody"}],
)
def test_the_journal_costs_what_it_shows_and_not_what_there_is(cost, query):
    found = cost(ENTRIES, **query)
    assert found.whole == set()
    assert found.queries <= MOST_QUERIES
    assert found.buffers <= MOST_BUFFERS


def test_an_entry_costs_what_it_shows(cost):
    found = cost(entry_url(JournalEntry.objects.get(run_id="settled-00050000", seq=1)))
    assert found.whole == set()
    assert found.queries <= MOST_QUERIES
    assert found.buffers <= 50


def test_the_overview_reads_no_whole_table(cost):
    found = cost(OVERVIEW)
    assert found.whole == set()
    assert found.queries <= MOST_QUERIES
    assert "runstore_run_finished" in found.indexes
    # The runs of a day: one in 365 of those of a year, by an index that holds their status.
    assert found.buffers <= MOST_BUFFERS
