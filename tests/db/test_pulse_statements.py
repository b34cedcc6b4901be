"""The group heartbeat finds its rows by key, and claims read what they take: on both databases."""

from collections.abc import Callable, Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore import OwnerId, RunStore
from django_runstore.models import Run
from django_runstore.testing import FakeClock

OWNER = OwnerId("host", 1, "nonce")
NOW = 1_000_000
SETTLED, WAITING, OWNED = 1_000, 1_000, 200


def rows() -> Iterator[Run]:
    def row(run_id: str, status: str, **columns: object) -> Run:
        return Run(run_id=run_id, status=status, created_at_ms=0, state_json="{}", **columns)

    for number in range(SETTLED):
        yield row(f"settled-{number}", "completed", available_at_ms=0)
    for number in range(WAITING):
        # All due at one moment, as runs submitted together are.
        yield row(f"waiting-{number:05}", "pending", available_at_ms=0, queue=f"q{number % 3}")
    for number in range(OWNED):
        yield row(
            f"owned-{number}",
            "running",
            available_at_ms=0,
            owner_host_id=OWNER.host_id,
            owner_pid=OWNER.pid,
            owner_nonce=OWNER.nonce,
            heartbeat_at_ms=0,
            fence=1,
            owner_fence=1,
        )


@pytest.fixture
def store(db: None) -> RunStore:
    Run.unguarded.bulk_create(rows(), batch_size=500)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return RunStore(clock=FakeClock(NOW))


def plan_of(action: Callable[[], object], start: str) -> str:
    """The plan of the first statement that begins so, as the database words it."""
    with CaptureQueriesContext(connection) as captured:
        action()
    statement = next(
        query["sql"] for query in captured if query["sql"].strip().startswith(start)
    ).replace("%", "%%")
    explain = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN (ANALYZE)"
    with connection.cursor() as cursor:
        cursor.execute(f"{explain} {statement}")
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


def test_a_group_heartbeat_scans_no_table_and_compares_no_two_runs(store):
    pairs = [(f"owned-{number}", 1) for number in range(OWNED)]
    plan = plan_of(lambda: store.heartbeat_many(OWNER, pairs), "WITH")
    assert "SCAN runstore_run" not in plan
    assert "Rows Removed by Join Filter" not in plan


@pytest.mark.parametrize(
    "filters",
    [{}, {"queues": ["q1"]}, {"queues": ["q1", "q2"]}, {"handlers": ["", "other"]}],
    ids=["everything", "one queue", "two queues", "handlers"],
)
def test_a_claim_sorts_nothing_however_many_runs_are_due(store, filters):
    plan = plan_of(lambda: store.claim_many(OWNER, 10, **filters), "SELECT")
    # The keys of the live runs may be sorted: those are few.
    assert "Sort Key: runstore_run." not in plan
    assert "TEMP B-TREE FOR ORDER BY" not in plan
    assert "runstore_run_claimable" in plan


def test_runs_submitted_together_are_claimed_in_the_order_of_their_names(store):
    claimed = [each.run.run_id for each in store.claim_many(OWNER, 3)]
    assert claimed == ["waiting-00000", "waiting-00001", "waiting-00002"]
