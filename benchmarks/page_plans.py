"""What a page of the admin asks the database for, and what that costs there."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

BIG_TABLES = {"runstore_run", "runstore_journal_entry", "runstore_attempt"}


@dataclass
class PageCost:
    """
    The queries of one page.

    Attributes:
        queries: How many there were, the user's session included.
        buffers: Pages of tables and indexes that the queries about runs touched.
        whole: Big tables that were read from beginning to end.
        indexes: The indexes that were used.
    """

    queries: int = 0
    buffers: int = 0
    whole: set[str] = field(default_factory=set)
    indexes: set[str] = field(default_factory=set)


def cost_of(visit: Callable[[], object]) -> PageCost:
    """Visit a page and explain what it asked for."""
    with CaptureQueriesContext(connection) as captured:
        visit()
    cost = PageCost(queries=len(captured))
    for query in captured:
        sql = query["sql"].strip()
        if "runstore_" in sql and sql.startswith(("SELECT", "WITH", "(SELECT")):
            for node in _nodes(sql, cost):
                if node.get("Relation Name") in BIG_TABLES and node["Node Type"] == "Seq Scan":
                    cost.whole.add(node["Relation Name"])
                if "Index Name" in node:
                    cost.indexes.add(node["Index Name"])
    return cost


def _nodes(sql: str, cost: PageCost) -> Iterator[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql.replace('%', '%%')}")
        (answer,) = cursor.fetchone()
    (document,) = json.loads(answer) if isinstance(answer, str) else answer
    plan = document["Plan"]
    cost.buffers += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    pending = [plan]
    while pending:
        node = pending.pop()
        yield node
        pending += node.get("Plans", [])
