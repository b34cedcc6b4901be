"""On PostgreSQL, delayed runs of a high priority are passed over in the index, unread."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore import OwnerId, RunStore
from django_runstore.testing import FakeClock
from tests.models.plans import empty_runs

pytestmark = pytest.mark.postgres("its buffers are what is counted")

NOW = 10_000_000
DELAYED = 50_000
# An index page holds far more entries than this.
ENTRIES_A_PAGE = 20
A = OwnerId("host", 1, "nonce")


@pytest.fixture(scope="module")
def delayed(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        for kind, count, priority, available in (
            ("delayed", DELAYED, 10_000, f"{NOW + 1} + n"),
            ("due", 20, 0, "n"),
        ):
            cursor.execute(
                "INSERT INTO runstore_run (run_id, created_at_ms, state_json, status, "  # noqa: S608 - a test's columns
                "priority, available_at_ms) "
                f"SELECT '{kind}-' || n, n, '{{}}', 'pending', {priority}, {available} "
                f"FROM generate_series(1, {count}) AS n"
            )
        cursor.execute("ANALYZE runstore_run")
    yield
    with django_db_blocker.unblock():
        empty_runs()


@pytest.mark.parametrize("queues", [None, ["default"]], ids=["every queue", "one queue"])
def test_a_claim_does_not_read_the_delayed_runs_ahead_of_it(delayed: None, db: None, queues):
    store = RunStore(clock=FakeClock(NOW))
    with CaptureQueriesContext(connection) as captured:
        claimed = store.claim_many(A, 20, queues=queues)
    assert {owned.run.run_id for owned in claimed} == {f"due-{n}" for n in range(1, 21)}
    select = next(
        query["sql"]
        for query in captured
        if "SKIP LOCKED" in query["sql"] and "claim_order_ms" in query["sql"]
    )
    nodes = measured(select)
    assert sum(node.get("Rows Removed by Filter", 0) for node in nodes) == 0
    blocks = nodes[0]["Shared Hit Blocks"] + nodes[0]["Shared Read Blocks"]
    assert blocks < DELAYED / ENTRIES_A_PAGE


def measured(sql: str) -> list[dict[str, Any]]:
    """Every node of the plan as it ran, the outermost first."""
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + sql.replace("%", "%%"))
        (answer,) = cursor.fetchone()
    document = json.loads(answer) if isinstance(answer, str) else answer
    nodes: list[dict[str, Any]] = [document[0]["Plan"]]
    for node in nodes:
        nodes += node.get("Plans", [])
    return nodes
