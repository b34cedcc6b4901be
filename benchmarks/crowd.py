"""
A table as it is after a year of work: many settled runs and a few of every other kind.

Written by SQL on PostgreSQL, so that a million rows take seconds. Test and benchmark of the
admin read the same rows.
"""

from collections.abc import Mapping
from typing import Final

from django.db import connection

YEAR_MS: Final = 365 * 24 * 3_600_000
HANDLERS: Final = 40
QUEUES: Final = 8

_OWNED: Final = {
    "owner_host_id": "'web-' || n % 3",
    "owner_pid": "100 + n % 3",
    "owner_nonce": "'nonce'",
    "fence": "1",
    "owner_fence": "1",
}


def _kinds(settled: int, live: int, now_ms: int) -> dict[str, tuple[int, Mapping[str, str]]]:
    step = YEAR_MS // settled
    created = f"{now_ms - YEAR_MS} + n * {step}::bigint"
    recent = f"{now_ms} - n * 1000::bigint"
    return {
        "settled": (
            settled,
            {
                "status": "CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'completed' END",
                "created_at_ms": created,
                "started_at_ms": f"{created} + 500",
                "finished_at_ms": f"{created} + 60000",
                "available_at_ms": created,
                # A lineage of three rounds now and then.
                "lineage_id": "CASE WHEN n % 10 < 3 THEN 'line-' || n / 10 END",
                "round_ordinal": "CASE WHEN n % 10 < 3 THEN n % 10 END",
            },
        ),
        "pending": (
            live,
            {"status": "'pending'", "created_at_ms": recent, "available_at_ms": recent},
        ),
        "running": (
            live,
            {
                "status": "'running'",
                "created_at_ms": recent,
                "started_at_ms": recent,
                "available_at_ms": recent,
                # One in a hundred is silent, and one in fifty does not advance.
                "heartbeat_at_ms": f"{now_ms} - CASE n % 100 WHEN 0 THEN 600000 ELSE 0 END",
                "progressed_at_ms": f"{now_ms} - CASE n % 50 WHEN 1 THEN 7200000 ELSE 0 END",
                **_OWNED,
            },
        ),
        "parked": (
            20,
            {
                "status": "'suspended'",
                "created_at_ms": recent,
                "available_at_ms": "NULL",
                "waiting_reason": "'approval-' || n % 4",
            },
        ),
        "crashing": (
            5,
            {
                "status": "'pending'",
                "created_at_ms": recent,
                "available_at_ms": recent,
                "recovery_count": "3",
            },
        ),
        "stopping": (
            10,
            {
                "status": "'pending'",
                "created_at_ms": recent,
                "available_at_ms": recent,
                "cancel_requested_at_ms": str(now_ms - 3_600_000),
            },
        ),
        "claimed": (
            5,
            {
                "status": "'pending'",
                "created_at_ms": recent,
                "available_at_ms": recent,
                "claim_host_id": "'gone'",
                "claim_pid": "1",
                "claim_nonce": "'nonce'",
                "claimed_at_ms": str(now_ms - 3_600_000),
            },
        ),
    }


def load(settled: int, live: int, now_ms: int) -> None:
    """
    Fill the empty tables of the connection, three journal entries per run included.

    One run in ten has an attempt of a step.

    Args:
        settled: Runs settled in the year before ``now_ms``, evenly.
        live: As many pending runs, and as many running ones.
        now_ms: The time that the pages will be read at.
    """
    with connection.cursor() as cursor:
        for kind, (count, columns) in _kinds(settled, live, now_ms).items():
            shared = {
                "run_id": f"'{kind}-' || lpad(n::text, 8, '0')",
                "state_json": "'{}'",
                "handler": f"'handler.' || (n * 7 + n / 1000) % {HANDLERS}",
                "queue": f"'queue-' || (n * 3 + n / 500) % {QUEUES}",
                "journal_seq": "3",
            }
            values = shared | columns
            cursor.execute(
                f"INSERT INTO runstore_run ({', '.join(values)}) "  # noqa: S608 - written above
                f"SELECT {', '.join(values.values())} FROM generate_series(1, {count}) AS n"
            )
        cursor.execute(
            "INSERT INTO runstore_journal_entry (run_id, companion, seq, source_id, source_hash, "
            "source_seq, emitted_at_ms, event_type, payload_json) "
            "SELECT run_id, 'run-store', seq, 'runstore', '\\x00'::bytea, seq, created_at_ms, "
            "'runstore.ownership.claimed', '{}' FROM runstore_run, generate_series(0, 2) AS seq"
        )
        cursor.execute(
            "INSERT INTO runstore_attempt "
            "(run_id, step_key_digest, step_key_hash, attempt, state, started_at_ms) "
            "SELECT run_id, 'extract', '\\x00'::bytea, 0, 'completed', created_at_ms "
            "FROM runstore_run WHERE status <> 'pending' AND right(run_id, 1) = '1'"
        )
        cursor.execute("VACUUM ANALYZE runstore_run")
        cursor.execute("VACUUM ANALYZE runstore_attempt")
        cursor.execute("VACUUM ANALYZE runstore_journal_entry")


def empty() -> None:
    """Take everything out again, and what it left."""
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE runstore_run, runstore_journal_entry CASCADE")
        # What is emptied has left tombstones, and those make the next load a slow one.
        cursor.execute("TRUNCATE runstore_run_tombstone")
