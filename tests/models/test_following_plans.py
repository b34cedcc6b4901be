"""On PostgreSQL, waits and changes are read by index, in order, a page at a time."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from django_runstore import RunStore
from tests.models.plans import empty_runs, indexes_of, plans

pytestmark = pytest.mark.postgres("its planner is what is asked")

ROWS = {
    "settled": (12_000, {"status": "'completed'"}),
    "waiting": (
        5_000,
        {
            "status": "'suspended'",
            "waiting_reason": "(ARRAY['timer', 'approval'])[1 + n % 2]",
            "waiting_wake_at_ms": "CASE WHEN n % 3 > 0 THEN n END",
        },
    ),
    # What they had been waiting for when they were settled.
    "ended": (
        5_000,
        {"status": "'completed'", "waiting_reason": "'timer'", "waiting_wake_at_ms": "n"},
    ),
    "deleted": (5_000, {"status": "'completed'"}),
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
        cursor.execute("DELETE FROM runstore_run WHERE run_id LIKE 'deleted-%'")
        cursor.execute("VACUUM ANALYZE runstore_run, runstore_run_tombstone")
    yield
    with django_db_blocker.unblock():
        empty_runs()


@pytest.fixture
def store(crowd: None, db: None) -> RunStore:
    return RunStore()


@pytest.mark.parametrize(
    ("filters", "index"),
    [
        ({}, "runstore_run_waiting_any"),
        ({"due_before_ms": 3_750}, "runstore_run_waiting_any"),
        ({"reason": "approval"}, "runstore_run_waiting_idx"),
        ({"reason": "timer", "due_before_ms": 3_750}, "runstore_run_waiting_idx"),
        ({"reason": "timer", "cancel_requested": False}, "runstore_run_waiting_idx"),
    ],
    ids=str,
)
def test_waiting_runs_are_read_in_the_order_in_which_they_wake(store: RunStore, filters, index):
    nodes = plans(lambda: store.waiting_runs(**filters, limit=50))
    assert indexes_of(nodes) == {index}
    assert "Sort" not in {node["Node Type"] for node in nodes}


@pytest.mark.parametrize("seen", [0, 15_000])
def test_a_page_of_changes_is_read_in_order_from_the_indexes_of_changes(store: RunStore, seen):
    identity, xid, revision = store.changes(limit=10).cursor.split(".")
    after = f"{identity}.{xid}.{int(revision) + seen}"
    nodes = plans(lambda: store.changes(after, limit=500))
    indexes = {name for name in indexes_of(nodes) if "identity" not in name}
    assert indexes == {
        "runstore_run_changes",
        "runstore_run_tombstone_changes",
        "runstore_run_pkey",
    }
    for scan in nodes:
        if scan.get("Index Name", "").endswith("_changes"):
            assert "Filter" not in scan
            assert "ROW(revision_xid, revision) > ROW(" in scan["Index Cond"]
            assert "pg_snapshot_xmin" in scan["Index Cond"]
    # Sorted are the two pages that are merged, never a table.
    assert all(node["Plan Rows"] <= 1_002 for node in nodes if node["Node Type"] == "Sort")
