"""One stream of a run's journal, page by page, by sequence and without counting."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import QuerySet
from django.http import QueryDict

from django_runstore.admin.cursors import whole_number
from django_runstore.models import JournalEntry


@dataclass(frozen=True, slots=True)
class StreamPage:
    """
    Some entries, the newest first, and the way to the others.

    Attributes:
        older, newer: Addresses within the page; None where there is nothing more.
    """

    entries: Sequence[JournalEntry]
    older: str | None
    newer: str | None


def read_stream(
    entries: QuerySet[JournalEntry], *, query: QueryDict, name: str, size: int
) -> StreamPage:
    """
    Read the page of a stream that the address asks for, in one query; by default the newest.

    Args:
        entries: Of one stream of one run.
        query: ``<name>_before`` or ``<name>_after`` hold a sequence; nonsense is ignored.
    """
    before = whole_number(query.get(f"{name}_before"))
    after = whole_number(query.get(f"{name}_after"))
    if after is not None:
        found = list(entries.filter(seq__gt=after).order_by("seq")[: size + 1])
        has_newer, has_older = len(found) > size, True
        newest_first = found[:size][::-1]
    else:
        older = entries if before is None else entries.filter(seq__lt=before)
        found = list(older.order_by("-seq")[: size + 1])
        has_newer, has_older = before is not None, len(found) > size
        newest_first = found[:size]
    if not newest_first:
        # Past either end there is nothing to go on from but the newest.
        is_elsewhere = before is not None or after is not None
        return StreamPage([], None, turned_to(query, name) if is_elsewhere else None)
    first, last = newest_first[0].seq, newest_first[-1].seq
    return StreamPage(
        newest_first,
        turned_to(query, name, before=last) if has_older else None,
        turned_to(query, name, after=first) if has_newer else None,
    )


def turned_to(query: QueryDict, name: str, **cursor: int | str) -> str:
    """Address another page of a section and leave the others where they are."""
    turned = query.copy()
    for direction in ("before", "after"):
        turned.pop(f"{name}_{direction}", None)
    for direction, value in cursor.items():
        turned[f"{name}_{direction}"] = str(value)
    return f"?{turned.urlencode()}#{name}"
