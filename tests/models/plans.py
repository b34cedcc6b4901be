"""How PostgreSQL would run the statements that an operation makes."""

import json
from collections.abc import Callable
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext


def plans(action: Callable[[], Any]) -> list[dict[str, Any]]:
    """Every node of the plans of the statements about runs that ``action`` makes."""
    with CaptureQueriesContext(connection) as captured:
        action()
    nodes: list[dict[str, Any]] = []
    for query in captured:
        sql = query["sql"].strip()
        if "runstore_run" in sql and sql.startswith(("SELECT", "(SELECT", "UPDATE", "WITH")):
            nodes += explained(sql)
    assert nodes
    return nodes


def explained(sql: str) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (FORMAT JSON) " + sql.replace("%", "%%"))
        (answer,) = cursor.fetchone()
    document = json.loads(answer) if isinstance(answer, str) else answer
    pending, nodes = [document[0]["Plan"]], []
    while pending:
        node = pending.pop()
        nodes.append(node)
        pending += node.get("Plans", [])
    return nodes


def indexes_of(nodes: list[dict[str, Any]]) -> set[str]:
    scanned = [node["Node Type"] for node in nodes if node.get("Relation Name") == "runstore_run"]
    assert "Seq Scan" not in scanned
    return {node["Index Name"] for node in nodes if "Index Name" in node}


def empty_runs() -> None:
    """
    Take a crowd away again, its tombstones too.

    An id that has a tombstone costs several statements to create anew, and whoever follows
    the changes from the beginning reads all of them.
    """
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE runstore_run CASCADE")
        cursor.execute("TRUNCATE runstore_run_tombstone")
