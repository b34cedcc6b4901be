"""
The distinct values of a column by way of an index that begins with it.

``SELECT DISTINCT`` reads every entry of the index. Here each step asks for the next value
behind the one before, so that it costs one probe per value, whatever the number of rows.
Written as SQL because the ORM has no recursive queries.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db import connections

_SCAN: Final = """
{name} (value, number) AS (
    SELECT (SELECT {column} FROM runstore_run WHERE {condition}
             ORDER BY {column} LIMIT 1), 1
    UNION ALL
    SELECT (SELECT {column} FROM runstore_run
             WHERE {condition} AND {column} > {name}.value
             ORDER BY {column} LIMIT 1), number + 1
      FROM {name}
     WHERE value IS NOT NULL AND number < %s
)"""


@dataclass(frozen=True, slots=True)
class Scan:
    """
    What to look for.

    Attributes:
        column: Of the run table; leads an index with this condition.
        condition: SQL with its values written out: for a parameter no partial index is used.
    """

    column: str
    condition: str


def distinct_names(using: str, scans: Sequence[Scan], most: int) -> list[list[str]]:
    """
    List the distinct values of each scan, ascending, in one statement.

    Args:
        most: At most this many values of each.
    """
    named = {f"scan{number}": scan for number, scan in enumerate(scans)}
    tables = ", ".join(
        _SCAN.format(name=name, column=scan.column, condition=scan.condition)
        for name, scan in named.items()
    )
    rows = " UNION ALL ".join(
        f"SELECT {number} AS scan, value FROM {name} WHERE value IS NOT NULL"  # noqa: S608 - names made here
        for number, name in enumerate(named)
    )
    found: list[list[str]] = [[] for _ in scans]
    with connections[using].cursor() as cursor:
        cursor.execute(f"WITH RECURSIVE {tables} {rows}", [most] * len(scans))
        for number, value in cursor.fetchall():
            found[number].append(value)
    return [sorted(values) for values in found]
