"""On PostgreSQL, a hundred thousand settled runs cost the hot queries nothing."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from django_runstore import OwnerId, RunStore
from django_runstore.models import Run
from django_runstore.prometheus import RunGauges
from django_runstore.supervision import Sweeper
from django_runstore.testing import FakeClock
from tests.models.plans import empty_runs, indexes_of, plans

pytestmark = pytest.mark.postgres("its planner is what is asked")

SETTLED = 100_000
NOW = 10_000_000
A = OwnerId("host", 1, "nonce")

# Settled runs, and a few of every kind that the hot queries look for.
ROWS = {
    "settled": (
        SETTLED,
        {
            "status": "(ARRAY['completed', 'failed', 'cancelled'])[1 + n % 3]",
            "finished_at_ms": "n",
            "available_at_ms": "n",
        },
    ),
    "pending": (200, {"status": "'pending'", "available_at_ms": "n", "priority": "n % 5"}),
    "running": (
        100,
        {
            "status": "'running'",
            "owner_host_id": "'host'",
            "owner_pid": "1",
            "owner_nonce": "'nonce'",
            "heartbeat_at_ms": "n",
            "fence": "1",
            "owner_fence": "1",
        },
    ),
    "claimed": (
        10,
        {
            "status": "'pending'",
            "claim_host_id": "'host'",
            "claim_pid": "1",
            "claim_nonce": "'gone'",
            "claimed_at_ms": "n",
        },
    ),
}


@pytest.fixture(scope="module")
def crowd(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        for kind, (count, columns) in ROWS.items():
            cursor.execute(
                "INSERT INTO runstore_run "  # noqa: S608 - a test's columns
                f"(run_id, created_at_ms, state_json, {', '.join(columns)}) "
                f"SELECT '{kind}-' || n, n, '{{}}', {', '.join(columns.values())} "
                f"FROM generate_series(1, {count}) AS n"
            )
        cursor.execute("ANALYZE runstore_run")
    yield
    with django_db_blocker.unblock():
        empty_runs()


@pytest.fixture
def store(crowd: None, db: None) -> RunStore:
    return RunStore(clock=FakeClock(NOW))


KEY = {"runstore_run_pkey"}
# One or several; all of them partial, and so small.
CLAIMABLE = {
    index.name for index in Run._meta.indexes if index.name.startswith("runstore_run_claimable")
}


def test_settled_runs_are_in_the_indexes_of_the_admin_and_of_changes_only(crowd: None, db: None):
    admins = {"newest", "by_status", "by_handler", "by_queue", "finished"}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE reltuples > %s AND relkind = 'i' "
            "AND relname LIKE 'runstore_run_%%'",
            [SETTLED // 4],
        )
        large = {name for (name,) in cursor.fetchall()}
    assert large - KEY == {f"runstore_run_{name}" for name in (*admins, "changes")}


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"queues": ["default"]},
        {"queues": ["default", "slow"]},
        {"handlers": [""]},
        {"handlers": {"": 0, "report": 1, "import": 2}},
    ],
    ids=["everything", "one queue", "two queues", "a handler", "versions"],
)
def test_a_claim_reads_an_index_of_claimable_runs(store: RunStore, filters):
    used = indexes_of(plans(lambda: store.claim_many(A, 20, **filters)))
    assert used & CLAIMABLE
    # Those that share a concurrency key are counted from the live ones alone.
    assert used <= CLAIMABLE | KEY | {"runstore_run_concurrency", "runstore_run_claimed"}


def test_a_sweep_reads_the_indexes_of_running_and_of_claimed_runs(store: RunStore):
    observer = OwnerId("host", 2, "observer")
    sweeper = Sweeper("default", observer=observer, clock=FakeClock(NOW))
    used = indexes_of(plans(sweeper.sweep_once))
    assert used == {"runstore_run_running", "runstore_run_claimed"}


def test_the_stale_query_reads_the_index_of_running_runs(store: RunStore):
    used = indexes_of(plans(lambda: list(Run.objects.stale(NOW))))
    assert used == {"runstore_run_running"}


def test_a_group_heartbeat_finds_its_rows_by_key(store: RunStore):
    pairs = [(f"running-{n}", 1) for n in range(1, 101)]
    used = indexes_of(plans(lambda: store.heartbeat_many(A, pairs)))
    assert used <= KEY | {"runstore_run_running"}
    assert used


@pytest.mark.parametrize("operation", ["heartbeat", "reconfirm"])
def test_a_heartbeat_finds_its_row_by_key(store: RunStore, operation):
    nodes = plans(lambda: getattr(store, operation)("running-7", A, fence=1))
    assert indexes_of(nodes) <= KEY | {"runstore_run_running"}


def test_the_newest_runs_are_read_in_order(store: RunStore):
    newest = Run.objects.order_by("-created_at_ms", "-run_id")
    nodes = plans(lambda: list(newest[:50]))
    assert indexes_of(nodes) == {"runstore_run_newest"}
    assert "Sort" not in {node["Node Type"] for node in nodes}


@pytest.mark.parametrize("run_id", ["settled-5", "running-5", "nobody"])
def test_a_request_of_a_lineage_reads_no_table(store: RunStore, run_id):
    indexes_of(plans(lambda: store.request_cancel_lineage(run_id, 1)))
    indexes_of(plans(lambda: store.lineage(run_id)))


def test_children_are_found_by_their_parent(store: RunStore):
    nodes = plans(lambda: list(Run.objects.filter(parent_run_id="settled-5")))
    assert indexes_of(nodes) == {"runstore_run_children"}


def test_a_scrape_reads_the_indexes_of_what_is_not_settled(store: RunStore):
    used = indexes_of(plans(lambda: list(RunGauges().collect())))
    assert "runstore_run_running" in used
    assert used <= CLAIMABLE | {"runstore_run_running"}
