"""Raw SQL cannot leave a row that the services could not have written."""

import pytest
from django.db import IntegrityError, connection, transaction

from django_runstore.models import Run

OWNER = {
    "owner_host_id": "host",
    "owner_pid": 1,
    "owner_nonce": "nonce",
    "heartbeat_at_ms": 5,
}
CLAIM = {"claim_host_id": "host", "claim_pid": 1, "claim_nonce": "nonce", "claimed_at_ms": 5}
RUNNING = {"status": "running", **OWNER}
WAITING = {"waiting_reason": "sleep", "waiting_wake_at_ms": 5, "waiting_token": "t"}
BEYOND_SAFE = 2**53
PENDING = {"status": "pending"}

REQUIRED = ["created_at_ms", "fence", "failure_count", "recovery_count", "state_version"]
OPTIONAL = [
    "started_at_ms",
    "finished_at_ms",
    "round_ordinal",
    "cancel_requested_at_ms",
    "available_at_ms",
    "deadline_at_ms",
    "progressed_at_ms",
]


def without(columns: dict, name: str) -> dict:
    return {**columns, name: None}


BROKEN = {
    "unknown status": {"status": "paused"},
    "empty status": {"status": ""},
    **{f"running without {name}": without(RUNNING, name) for name in OWNER},
    **{f"pending with {name}": {**PENDING, name: value} for name, value in OWNER.items()},
    **{
        f"{status} with an owner": {**RUNNING, "status": status}
        for status in ("pending", "suspended", "completed", "failed", "cancelled")
    },
    "pending with an owner fence": {**PENDING, "owner_fence": 0},
    "owner with an empty host": {**RUNNING, "owner_host_id": ""},
    "owner with an empty nonce": {**RUNNING, "owner_nonce": ""},
    "owner with a negative pid": {**RUNNING, "owner_pid": -1},
    **{f"claim without {name}": without(CLAIM, name) for name in CLAIM},
    "claim with an empty host": {**CLAIM, "claim_host_id": ""},
    "claim with an empty nonce": {**CLAIM, "claim_nonce": ""},
    "claim with a negative pid": {**CLAIM, "claim_pid": -1},
    "owner fence above the last grant": {**RUNNING, "fence": 1, "owner_fence": 2},
    "negative owner fence": {**RUNNING, "fence": 1, "owner_fence": -1},
    "wake time without a reason": {"waiting_wake_at_ms": 5},
    "token without a reason": {"waiting_token": "t"},
    "empty reason": {"waiting_reason": ""},
    "empty token": {**WAITING, "waiting_token": ""},
    "empty run id": {"run_id": ""},
    "empty lineage": {"lineage_id": "", "round_ordinal": 0},
    "empty queue": {"queue": ""},
    "empty state": {"state_json": ""},
    "no state": {"state_json": None},
    **{f"negative {name}": {name: -1} for name in [*REQUIRED, *OPTIONAL]},
    **{f"{name} beyond a safe integer": {name: BEYOND_SAFE} for name in [*REQUIRED, *OPTIONAL]},
    "negative heartbeat": {**RUNNING, "heartbeat_at_ms": -1},
    "heartbeat beyond a safe integer": {**RUNNING, "heartbeat_at_ms": BEYOND_SAFE},
    "negative claim time": {**CLAIM, "claimed_at_ms": -1},
    "negative wake time": {**WAITING, "waiting_wake_at_ms": -1},
}

WHOLE = {
    "pending": {},
    "running": {**RUNNING, "fence": 3, "owner_fence": 2},
    # Other tools may not know of fences; then every fenced write is refused.
    "running without a fence": RUNNING,
    "claimed": CLAIM,
    "stolen": {**RUNNING, **CLAIM},
    "waiting": WAITING,
    "waiting without an end": {"waiting_reason": "approval"},
    "the largest numbers": dict.fromkeys([*REQUIRED, *OPTIONAL], BEYOND_SAFE - 1)
    | {"lineage_id": "line"},
    "pid 0": {**RUNNING, "owner_pid": 0},
}


def insert(columns: dict) -> None:
    row = {"run_id": "x", "status": "pending", "created_at_ms": 0, "state_json": "{}", **columns}
    names, marks = ", ".join(row), ", ".join(["%s"] * len(row))
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO runstore_run ({names}) VALUES ({marks})",  # noqa: S608 - a test's columns
            list(row.values()),
        )


@pytest.mark.parametrize("columns", BROKEN.values(), ids=BROKEN)
def test_a_broken_row_cannot_be_inserted(db, columns):
    with pytest.raises(IntegrityError), transaction.atomic():
        insert(columns)
    assert not Run.objects.exists()


@pytest.mark.parametrize("columns", WHOLE.values(), ids=WHOLE)
def test_a_whole_row_can_be_inserted(db, columns):
    insert(columns)
    assert Run.objects.filter(pk="x").values(*columns or ["pk"]).get()


@pytest.mark.parametrize(
    ("whole", "broken"),
    [
        ("running", {"status": "suspended"}),
        ("running", {"owner_nonce": None}),
        ("running", {"heartbeat_at_ms": None}),
        ("claimed", {"claimed_at_ms": None}),
        ("claimed", {"claim_pid": None}),
        ("pending", {"status": "running"}),
        ("waiting", {"waiting_reason": None}),
    ],
)
def test_a_whole_row_cannot_be_broken_by_an_update(db, whole, broken):
    insert(WHOLE[whole])
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.unguarded.filter(pk="x").update(**broken)


def test_two_rows_of_one_round_cannot_be_inserted(db):
    insert({"lineage_id": "line", "round_ordinal": 1})
    with pytest.raises(IntegrityError), transaction.atomic():
        insert({"run_id": "y", "lineage_id": "line", "round_ordinal": 1})


def test_any_number_of_rows_may_have_no_lineage(db):
    for run_id in ("x", "y", "z"):
        insert({"run_id": run_id})
    assert Run.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_a_child_of_nobody_cannot_be_committed():
    with pytest.raises(IntegrityError), transaction.atomic():
        insert({"parent_run_id": "nobody"})


@pytest.mark.django_db(transaction=True)
def test_a_parent_cannot_be_deleted_by_sql():
    insert({"run_id": "parent"})
    insert({"run_id": "child", "parent_run_id": "parent"})
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM runstore_run WHERE run_id = 'parent'")


def test_no_constraint_reads_a_wide_text():
    wide = {"state_json", "result_json", "error_json", "progress_json", "waiting_request"}
    for constraint in Run._meta.constraints:
        sql = str(constraint)
        touched = {name for name in wide if name in sql}
        assert touched <= {"state_json"}, constraint.name
        assert not touched or "HasBytes" in sql, constraint.name
