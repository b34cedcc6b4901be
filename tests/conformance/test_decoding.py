"""Conformance notes 11 and 12: rows and tables that this package did not write."""

import pytest
from django.db import connection

from django_runstore import RunDecodeFailed, RunPersistenceFailed
from django_runstore.errors import DatabaseFailure
from tests.conformance.raw import checks_off, update_raw
from tests.conformance.world import A, C, P, World

OWNER = {"owner_host_id": A.host_id, "owner_pid": A.pid, "owner_nonce": A.nonce}
CLAIM = {"claim_host_id": A.host_id, "claim_pid": A.pid, "claim_nonce": A.nonce}
FULL_OWNER = {**OWNER, "heartbeat_at_ms": 5}

OUT_OF_SCHEMA = {
    "created_at_ms is -1": {"created_at_ms": -1},
    "created_at_ms would spell an impossible time zone": {"created_at_ms": -2_005},
    "created_at_ms beyond a safe integer": {"created_at_ms": 2**53},
    "started_at_ms is -1": {"started_at_ms": -1},
    "unknown status": {"status": "paused"},
    "empty host": {"status": "running", **FULL_OWNER, "owner_host_id": ""},
    "pid is -1": {"status": "running", **FULL_OWNER, "owner_pid": -1},
    "progress is not JSON": {"progress_json": "{"},
    "acknowledgement is not JSON": {"cancel_acknowledgement_json": "{"},
    "acknowledgement is another JSON": {"cancel_acknowledgement_json": "[]"},
    "acknowledgement lacks its owner": {"cancel_acknowledgement_json": '{"observed_at_ms": 1}'},
    "acknowledgement of a wrong type": {
        "cancel_acknowledgement_json": '{"observed_at_ms": "1", "owner": '
        '{"host_id": "h", "pid": 1, "nonce": "n"}}'
    },
}

INCONSISTENT = {
    "partial owner on pending": ({"owner_host_id": A.host_id}, "owner"),
    "whole owner on pending": (FULL_OWNER, "owner"),
    "heartbeat on pending": ({"heartbeat_at_ms": 5}, None),
    "running without owner": ({"status": "running"}, None),
    "running without heartbeat": ({"status": "running", **OWNER}, "owner"),
    "partial claim": ({"claim_nonce": A.nonce, "claimed_at_ms": 5}, "claim"),
    "claimed_at without claim": ({"claimed_at_ms": 5}, None),
    "full claim without claimed_at": (CLAIM, "claim"),
    "state is not JSON": ({"state_json": "{secret"}, None),
}


@pytest.fixture
def corrupt(database_world: World):
    """Write columns that no CHECK would admit over a pending run."""
    with checks_off():
        database_world.pending("run")
        yield lambda columns: update_raw("run", **columns)


@pytest.mark.conformance(11)
@pytest.mark.parametrize("columns", OUT_OF_SCHEMA.values(), ids=OUT_OF_SCHEMA)
@pytest.mark.parametrize("operation", ["get", "lineage", "latest_round"])
def test_a_column_out_of_its_range_fails_to_decode(database_world, corrupt, columns, operation):
    corrupt(columns)
    with pytest.raises(RunDecodeFailed) as caught:
        getattr(database_world.store, operation)("run")
    assert str(caught.value) == f"decode_failed: RunStore.{operation}: could not decode run row"
    assert caught.value.detail == {"run_id": "run", "stage": "row-schema"}


@pytest.mark.conformance(11)
@pytest.mark.parametrize(("columns", "role"), INCONSISTENT.values(), ids=INCONSISTENT)
def test_columns_that_disagree_fail_to_decode(database_world, corrupt, columns, role):
    corrupt(columns)
    with pytest.raises(RunDecodeFailed) as caught:
        database_world.store.get("run")
    assert str(caught.value) == ("decode_failed: RunStore.get: run row violates durable invariants")
    assert caught.value.detail == {
        "run_id": "run",
        "status": columns.get("status", "pending"),
        "heartbeat_at_ms": columns.get("heartbeat_at_ms"),
        "claimed_at_ms": columns.get("claimed_at_ms"),
        "has_owner_columns": role == "owner",
        "has_claim_columns": role == "claim",
        "state_json_valid": "state_json" not in columns,
    }


@pytest.mark.conformance(192)
def test_a_corrupt_row_is_described_by_flags_and_never_by_its_text(database_world, corrupt):
    corrupt({**OWNER, "state_json": '{"password":"hunter2"}'})
    with pytest.raises(RunDecodeFailed) as caught:
        database_world.store.get("run")
    detail = caught.value.detail
    assert detail["has_claim_columns"] is False
    assert detail["has_owner_columns"] is True
    assert detail["state_json_valid"] is True
    assert "hunter2" not in f"{caught.value!r} {detail} {caught.value.__context__!r}"


def test_a_compare_and_swap_does_not_decode_what_it_does_not_need(database_world, corrupt):
    corrupt({"state_json": "{not json"})
    outcome = database_world.store.request_cancel("run", 1)
    assert outcome.code == "cancel_requested"


def test_a_state_that_is_no_json_does_not_stop_a_claim(database_world, corrupt):
    corrupt({"state_json": "{not json"})
    outcome = database_world.store.claim("run", P, C, 0)
    assert outcome.code == "claimed"


@pytest.mark.conformance(12)
@pytest.mark.parametrize(
    ("operation", "arguments"), [("create", ("x", "{}")), ("get", ("x",)), ("lineage", ("x",))]
)
def test_a_missing_table_is_a_persistence_failure(database_world, operation, arguments):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE runstore_run RENAME TO runstore_gone")
    with pytest.raises(RunPersistenceFailed) as caught:
        getattr(database_world.store, operation)(*arguments)
    assert str(caught.value) == (
        f"persistence_failed: RunStore.{operation}: database operation failed"
    )
    assert caught.value.detail == {"category": "persistence_failed", "cause": "unknown"}
    cause = caught.value.__cause__
    assert isinstance(cause, DatabaseFailure)
    assert str(cause) == "unknown"
