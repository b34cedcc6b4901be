"""On PostgreSQL, a beat costs the same however large the state of its run is."""

import json
import random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore import OwnerId, RunSnapshot, RunStore
from django_runstore.testing import FakeClock

pytestmark = [
    pytest.mark.postgres("its buffers are what is counted"),
    pytest.mark.django_db(transaction=True),
]

A = OwnerId("host", 1, "nonce")
BEATS = 20
SIZES = (1_000, 1_000_000)


def state_of(size: int) -> str:
    """JSON text of ``size`` bytes that does not compress away."""
    body = random.Random(size).randbytes(size).hex()[: size - 2]
    return f'"{body}"'


def owned(store: RunStore, run_id: str, size: int) -> None:
    store.create(run_id, state_of(size))
    assert store.claim_and_own(run_id, RunSnapshot("pending"), A, 0).code == "activated"


def settle_down() -> None:
    """Clear away what creating and claiming has left, and have plans read by key."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE runstore_run")
        cursor.execute("SET enable_seqscan = off")


@pytest.fixture(autouse=True)
def default_plans():
    yield
    with connection.cursor() as cursor:
        cursor.execute("RESET enable_seqscan")


def update_of(store: RunStore, run_id: str, *, many: bool, at: int) -> str:
    """The statement that a beat makes, taken from a beat."""
    with CaptureQueriesContext(connection) as captured:
        if many:
            assert store.heartbeat_many(A, [(run_id, 1)], at)[run_id].code == "updated"
        else:
            assert store.heartbeat(run_id, A, at, fence=1).code == "updated"
    (sql,) = [
        query["sql"] for query in captured if "UPDATE " in query["sql"].replace("KEY UPDATE", "")
    ]
    return sql


def buffers_of(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + sql.replace("%", "%%"))
        (answer,) = cursor.fetchone()
    (document,) = json.loads(answer) if isinstance(answer, str) else answer
    plan = document["Plan"]
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


@pytest.mark.parametrize("many", [False, True], ids=["heartbeat", "heartbeat_many"])
def test_a_state_of_a_megabyte_beats_with_the_buffers_of_a_kilobyte(many):
    store = RunStore(clock=FakeClock(0))
    for size in SIZES:
        owned(store, f"run-{size}", size)
    settle_down()
    costs: dict[int, list[int]] = {size: [] for size in SIZES}
    for at in range(BEATS):
        for size in SIZES:
            costs[size].append(buffers_of(update_of(store, f"run-{size}", many=many, at=at)))
    # The least of many, because now and then a beat also tidies up its page.
    assert min(costs[1_000]) == min(costs[1_000_000])
    assert sum(costs[1_000_000]) <= sum(costs[1_000]) + BEATS


def test_beats_are_updates_within_the_page_and_touch_no_index():
    store = RunStore(clock=FakeClock(0))
    owned(store, "run", 1_000_000)
    settle_down()
    before = updates()
    for at in range(BEATS):
        store.heartbeat("run", A, at, fence=1)
    made, within_page = (now - then for now, then in zip(updates(), before, strict=True))
    assert made == BEATS
    assert within_page == BEATS


def updates() -> tuple[int, int]:
    """How many row updates the table has seen, and how many of them stayed in their page."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables "
            "WHERE relname = 'runstore_run'"
        )
        made, within_page = cursor.fetchone()
    return made, within_page
