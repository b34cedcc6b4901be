"""On PostgreSQL, the entries of other runs cost the journal of one nothing."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore import Journal
from tests.conformance.journal.sample import event
from tests.conformance.world import A, World
from tests.models.plans import explained

pytestmark = pytest.mark.postgres("its planner is what is asked")

RUNS, ENTRIES, LONG = 1_000, 100, 50_000
SEQUENCE, SOURCE = "runstore_journal_sequence", "runstore_journal_source"
TABLES = ("entry", "checkpoint", "dedup")


@pytest.fixture(scope="module")
def crowd(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """A hundred entries, identities and checkpoints of each of a thousand runs, and a long one."""
    short = f"FROM generate_series(1, {RUNS}) AS run, generate_series(1, {ENTRIES}) AS n"
    long = f"FROM generate_series(1, {LONG}) AS n"
    numbers = f"(SELECT run, n {short} UNION ALL SELECT 0, n {long}) AS numbers"
    selections = {
        "entry (run_id, companion, seq, source_id, source_hash, source_seq, emitted_at_ms, "
        "event_type, payload_json, meta_json)": (
            "'run-' || run, '', n, 's', sha256('s'), n, n, 'type-' || n % 7, '{}', 'null'"
        ),
        "dedup (run_id, companion, source_hash, source_seq, seq, content_hash)": (
            "'run-' || run, '', sha256('s'), n, n, sha256('c')"
        ),
        "checkpoint (run_id, companion, seq, state_json, created_at_ms, compacted_at_ms)": (
            "'run-' || run, '', n, '{}', n, CASE n WHEN 1 THEN n END"
        ),
    }
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        for columns, values in selections.items():
            cursor.execute(f"INSERT INTO runstore_journal_{columns} SELECT {values} FROM {numbers}")  # noqa: S608 - a test's columns
        cursor.execute("ANALYZE " + ", ".join(f"runstore_journal_{table}" for table in TABLES))
    yield
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute("TRUNCATE " + ", ".join(f"runstore_journal_{table}" for table in TABLES))


@pytest.fixture
def journal(crowd: None, db: None) -> Journal:
    world = World()
    world.active(A, "run-5")
    return Journal(clock=world.clock, arbiter=world.arbiter)


def nodes_of(action: Callable[[], Any]) -> list[dict[str, Any]]:
    """Every node of the plans of the statements about the journal that ``action`` makes."""
    with CaptureQueriesContext(connection) as captured:
        action()
    nodes: list[dict[str, Any]] = []
    for query in captured:
        sql = query["sql"].strip()
        if "runstore_journal" in sql and sql.startswith(("SELECT", "UPDATE", "DELETE")):
            nodes += explained(sql)
    assert nodes
    return nodes


OPERATIONS: dict[str, Callable[[Journal], Any]] = {
    "a page": lambda journal: journal.entries("run-5", 99),
    "a page of one type": lambda journal: journal.entries("run-5", 99, ["type-1"]),
    "an empty page": lambda journal: journal.entries("nobody", 0),
    "the latest checkpoint": lambda journal: journal.latest_checkpoint("run-5"),
    "an event": lambda journal: journal.emit_durable(event(run_id="run-5"), A),
    "a numbered event": lambda journal: journal.emit_durable(
        event(run_id="run-5", source_seq=2**40), A
    ),
    "an unfenced event": lambda journal: journal.emit_durable_unfenced(event(run_id="run-6")),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_only_index_entries_of_the_stream_are_read(journal, name):
    nodes = nodes_of(lambda: OPERATIONS[name](journal))
    scans = [node for node in nodes if "Relation Name" in node]
    assert {node["Node Type"] for node in scans} <= {
        *("Index Scan", "Index Only Scan", "Bitmap Heap Scan"),
    }
    # No plan expects to read more than a stream has.
    assert max(node["Plan Rows"] for node in scans) <= 2 * ENTRIES


@pytest.mark.parametrize("types", [None, ["type-1", "type-2"]])
def test_a_page_of_a_long_stream_is_read_in_order_up_to_its_limit(journal, types):
    nodes = nodes_of(lambda: journal.entries("run-0", 10, types, limit=20))
    assert SEQUENCE in {node.get("Index Name") for node in nodes}
    assert "Limit" in {node["Node Type"] for node in nodes}
    assert "Sort" not in {node["Node Type"] for node in nodes}


def test_where_a_stream_ends_is_asked_of_the_ends_of_its_indexes(journal):
    nodes = nodes_of(lambda: journal.emit_durable(event(run_id="run-5"), A))
    used = {node["Index Name"] for node in nodes if "Index Name" in node}
    assert used == {SEQUENCE, SOURCE, "runstore_dedup_source"}
