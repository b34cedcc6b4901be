"""
Several counts that stop counting, in one statement.

A person reads "10,000 and more" as well as the exact number, and a count of all would read as
many index entries as there are. The ORM aggregates whole queries only.
"""

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import QuerySet, Value


def capped_counts(using: str, queries: Mapping[str, "QuerySet[Any]"], most: int) -> dict[str, int]:
    """
    Count the rows of each query up to ``most``, which then stands for that many and more.

    Args:
        queries: By the name of the count.
    """
    counts = dict.fromkeys(queries, 0)
    names: list[str] = []
    parts: list[str] = []
    params: list[Any] = []
    for name, query in queries.items():
        rows = query.using(using).order_by().values(one=Value(1))[:most]
        try:
            sql, given = rows.query.get_compiler(using).as_sql()
        except EmptyResultSet:
            continue
        names.append(name)
        parts.append(f"(SELECT COUNT(*) FROM ({sql}) AS part{len(parts)})")  # noqa: S608 - Django's own
        params += given
    if not parts:
        return counts
    with connections[using].cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(parts)}", params)
        return counts | dict(zip(names, cursor.fetchone(), strict=True))
