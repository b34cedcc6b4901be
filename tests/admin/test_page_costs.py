"""On PostgreSQL, every page of the admin costs the same however many runs are settled."""

from urllib.parse import urlencode

import pytest

from benchmarks import crowd
from benchmarks.admin_pages import LISTS
from benchmarks.page_plans import cost_of
from django_runstore.models import JournalEntry
from django_runstore.testing import FakeClock
from tests.admin.pages import ENTRIES, OVERVIEW, RUNS, entry_url, run_url

pytestmark = pytest.mark.postgres("its planner is what is asked")

NOW_MS = 1_800_000_000_000
SETTLED = 100_000
LIVE = 200
MOST_QUERIES = 12
# Fifty rows in as many pages, four buffers of an index to find each; what is passed over where
# the planner walks the newest: the live runs, and the runs of other queues; and what the
# filters offer, one probe per name. The table and its indexes have 12,000.
MOST_BUFFERS = 5 * 50 + 2 * LIVE + 50 * crowd.QUEUES + 4 * (crowd.HANDLERS + 2 * crowd.QUEUES)


@pytest.fixture(scope="module")
def year(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock():
        crowd.load(SETTLED, LIVE, NOW_MS)
        yield
        crowd.empty()


@pytest.fixture(autouse=True)
def _now(monkeypatch):
    for module in ("filters", "created_filter", "read_only", "overview.figures"):
        monkeypatch.setattr(
            f"django_runstore.admin.{module}.clock_for", lambda _: FakeClock(NOW_MS)
        )


@pytest.fixture
def cost(year, viewer):
    def measure(url, **query):
        def visit():
            assert viewer.get(url, query).status_code == 200

        visit()  # so that templates and plans are there
        return cost_of(visit)

    return measure


@pytest.mark.parametrize("query", LISTS.values(), ids=LISTS)
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
    [
        {},
        {"stream": "own"},
        {"q": "settled-00050000"},
        {"q": "settled-00050000", "stream": "own"},
        {"q": "nobody"},
    ],
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
