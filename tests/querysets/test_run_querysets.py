"""Each reporting query against sets worked out by hand."""

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from django_runstore import OwnerId
from django_runstore.models import Run

RUNNING = {
    "status": "running",
    "owner_host_id": "host",
    "owner_pid": 1,
    "owner_nonce": "nonce",
    "fence": 1,
    "owner_fence": 1,
}
CLAIM = {"claim_host_id": "host", "claim_pid": 1, "claim_nonce": "n", "claimed_at_ms": 0}
STALE_AFTER = 30_000
OWNER = OwnerId("host", 1, "nonce")


def add(run_id: str, status: str = "pending", **columns) -> None:
    Run.unguarded.create(
        **{"run_id": run_id, "status": status, "created_at_ms": 0, "state_json": "{}", **columns}
    )


def ids(runs) -> list[str]:
    return [run.run_id for run in runs]


@pytest.fixture
def one_of_each(db):
    for status in ("pending", "suspended", "completed", "failed", "cancelled"):
        add(status, status, available_at_ms=0)
    add("running", heartbeat_at_ms=0, available_at_ms=0, **RUNNING)


def test_live_runs_are_those_that_have_not_ended(one_of_each):
    assert set(ids(Run.objects.live())) == {"pending", "running", "suspended"}


def test_settled_runs_are_those_that_have(one_of_each):
    assert set(ids(Run.objects.settled())) == {"completed", "failed", "cancelled"}


def test_every_run_is_live_or_settled_and_never_both(one_of_each):
    live, settled = set(ids(Run.objects.live())), set(ids(Run.objects.settled()))
    assert live | settled == set(ids(Run.objects.all()))
    assert not live & settled


def test_claimable_runs_are_free_waiting_and_due(one_of_each):
    add("claimed", available_at_ms=0, **CLAIM)
    add("due now", available_at_ms=50)
    add("due later", available_at_ms=51)
    add("waits for a signal", available_at_ms=None)
    assert set(ids(Run.objects.claimable(50))) == {"pending", "suspended", "due now"}


def test_stale_runs_are_running_and_strictly_older_than_stale_after(db):
    for run_id, heartbeat in (("older", 999), ("equal", 1_000), ("younger", 1_001)):
        add(run_id, heartbeat_at_ms=heartbeat, **RUNNING)
    add("never ran")
    assert ids(Run.objects.stale(1_000 + STALE_AFTER)) == ["older"]


def test_stale_follows_the_settings(db):
    add("x", heartbeat_at_ms=0, **RUNNING)
    lease = {"STALE_AFTER_MS": 6_000, "HEARTBEAT_INTERVAL_MS": 500, "SKEW_ALLOWANCE_MS": 1_000}
    assert not Run.objects.stale(6_001).exists()
    with override_settings(RUNSTORE={"LEASE": lease}):
        assert ids(Run.objects.stale(6_001)) == ["x"]
        assert not Run.objects.stale(6_000).exists()


@pytest.fixture
def lineages(db):
    add("root")
    add("root-1", lineage_id="root", round_ordinal=1)
    add("root-2", lineage_id="root", round_ordinal=2)
    add("child", parent_run_id="root")
    add("b-0", lineage_id="b", round_ordinal=0)
    add("b-1", lineage_id="b", round_ordinal=1)
    add("shared-name", lineage_id="X", round_ordinal=0)
    add("target", lineage_id="shared-name", round_ordinal=0)


@pytest.mark.parametrize(
    ("member", "rounds"),
    [
        ("root", ["root", "root-1", "root-2"]),
        ("root-1", ["root", "root-1", "root-2"]),
        ("root-2", ["root", "root-1", "root-2"]),
        ("child", ["child"]),
        ("b-0", ["b-0", "b-1"]),
        ("shared-name", ["shared-name"]),
        ("target", ["target"]),
        ("b", []),
        ("nobody", []),
    ],
)
def test_a_lineage_is_the_rounds_of_one_logical_run_in_order(lineages, member, rounds):
    assert ids(Run.objects.lineage_of(member)) == rounds


def test_a_lineage_is_one_statement(lineages, django_assert_num_queries):
    with django_assert_num_queries(1):
        ids(Run.objects.lineage_of("root"))


def test_a_lineage_can_be_filtered_further(lineages):
    assert ids(Run.objects.lineage_of("root").filter(round_ordinal__gt=1)) == ["root-2"]
    assert ids(Run.objects.live().lineage_of("b-0")) == ["b-0", "b-1"]


def test_the_latest_rounds_are_one_per_logical_run(lineages):
    latest = {"root-2", "child", "b-1", "shared-name", "target"}
    assert set(ids(Run.objects.latest_rounds())) == latest


def test_the_latest_rounds_can_be_narrowed_without_changing_what_latest_means(lineages):
    narrowed = Run.objects.latest_rounds().filter(lineage_id="b")
    assert ids(narrowed) == ["b-1"]
    assert ids(Run.objects.filter(pk="b-0").latest_rounds()) == []


def test_waiting_runs_come_in_the_order_they_wake(db):
    for run_id, wake in (("c", 5), ("a", 9), ("b", 5), ("no end", None)):
        add(run_id, "suspended", waiting_reason="sleep", waiting_wake_at_ms=wake)
    add("asks", "suspended", waiting_reason="approval", waiting_wake_at_ms=1)
    add("over", "completed", waiting_reason="sleep", waiting_wake_at_ms=0)
    add("not waiting", "suspended")
    assert ids(Run.objects.waiting()) == ["asks", "b", "c", "a", "no end"]
    assert ids(Run.objects.waiting("sleep")) == ["b", "c", "a", "no end"]
    assert ids(Run.objects.waiting("nothing")) == []


def test_durations_are_known_once_both_ends_are(db):
    add("new", created_at_ms=10)
    add("begun", created_at_ms=10, started_at_ms=25)
    add("over", "completed", created_at_ms=10, started_at_ms=25, finished_at_ms=125)
    add("never begun", "cancelled", created_at_ms=10, finished_at_ms=99)
    found = {run.run_id: (run.queued_ms, run.ran_ms) for run in Run.objects.with_durations().all()}
    assert found == {
        "new": (None, None),
        "begun": (15, None),
        "over": (15, 100),
        "never begun": (None, None),
    }


def test_durations_can_be_filtered_and_summed(db):
    for number in range(3):
        add(f"run-{number}", "completed", started_at_ms=0, finished_at_ms=number * 100)
    assert ids(Run.objects.with_durations().filter(ran_ms__gt=100)) == ["run-2"]


def test_queries_can_be_chained_in_any_order(lineages):
    chained = Run.objects.live().latest_rounds().with_durations().filter(pk__startswith="b")
    assert ids(chained) == ["b-1"]


def test_no_reporting_query_selects_more_than_it_needs(one_of_each):
    with CaptureQueriesContext(connection) as queries:
        list(Run.objects.live().only("run_id"))
    assert "state_json" not in queries[0]["sql"]
