"""
What the journal asks of a stream before it appends, as SQL.

Written as SQL because the ORM would ask in three or four statements what is one look at
the ends of two indexes.
"""

from dataclasses import dataclass
from typing import Any, Final

from django.db import connections
from django.db.models import BigIntegerField
from django.db.models.expressions import RawSQL

from django_runstore.db.backends import has_one_writer

_ENDS: Final = """
SELECT (SELECT MAX(seq) FROM runstore_journal_entry
         WHERE run_id = %(run_id)s AND companion = %(companion)s),
       (SELECT MAX(source_seq) FROM runstore_journal_entry
         WHERE run_id = %(run_id)s AND companion = %(companion)s AND source_hash = %(source)s),
       (SELECT MAX(source_seq) FROM runstore_journal_dedup
         WHERE run_id = %(run_id)s AND companion = %(companion)s AND source_hash = %(source)s)
"""

_KNOWN: Final = """
SELECT seq, event_type, payload_json, meta_json, NULL
  FROM runstore_journal_entry
 WHERE run_id = %(run_id)s AND companion = %(companion)s
   AND source_hash = %(source)s AND source_seq = %(source_seq)s
 UNION ALL
SELECT seq, NULL, NULL, NULL, content_hash
  FROM runstore_journal_dedup
 WHERE run_id = %(run_id)s AND companion = %(companion)s
   AND source_hash = %(source)s AND source_seq = %(source_seq)s
"""

_NEXT: Final = (
    "SELECT COALESCE(MAX(seq) + 1, 0) FROM runstore_journal_entry "
    "WHERE run_id = %s AND companion = %s"
)

# Any number, as long as no other lock of this package has it.
_STREAM_LOCKS: Final = 1_784_027_911


@dataclass(frozen=True, slots=True)
class Source:
    """One source of one stream; a source id is known by its digest."""

    run_id: str
    companion: str
    source_hash: bytes


@dataclass(frozen=True, slots=True)
class Ends:
    """The next free numbers of a stream and of a source in it."""

    next_seq: int
    next_source_seq: int


@dataclass(frozen=True, slots=True)
class Known:
    """What is there under an identity: the content of an entry, or the digest kept of it."""

    seq: int
    content: tuple[str, str, str] | None
    content_hash: bytes | None


def ends_of(using: str, source: Source) -> Ends:
    """
    Look where a stream and a source of it end, compacted entries included.

    The last entry of a stream is never compacted, so its sequence is above all of those.
    """
    with connections[using].cursor() as cursor:
        cursor.execute(_ENDS, _named(source))
        seq, source_seq, compacted = cursor.fetchone()
    numbers = [number for number in (source_seq, compacted) if number is not None]
    return Ends(0 if seq is None else seq + 1, max(numbers, default=-1) + 1)


def known_as(using: str, source: Source, source_seq: int) -> Known | None:
    """Look an identity up among the entries and among what compaction has kept."""
    with connections[using].cursor() as cursor:
        cursor.execute(_KNOWN, {**_named(source), "source_seq": source_seq})
        row = cursor.fetchone()
    if row is None:
        return None
    seq, event_type, payload_json, meta_json, content_hash = row
    if content_hash is not None:
        return Known(seq, None, bytes(content_hash))
    return Known(seq, (event_type, payload_json, meta_json), None)


def next_seq(run_id: str, companion: str) -> RawSQL:
    """Give the next sequence of a stream as an expression, to be evaluated by an INSERT."""
    return RawSQL(_NEXT, (run_id, companion), BigIntegerField())  # noqa: S611 - parameters are bound


def first_sequences(using: str, run_id: str) -> dict[str, RawSQL]:
    """
    Give the counts of a new run as columns: the journal of a deleted run of its id is kept.

    On PostgreSQL the trigger that removes the tombstone sets them. There the two subqueries
    would cost a third of the INSERT, for a run that hardly ever was there before.
    """
    if not has_one_writer(using):
        return {}
    return {"journal_seq": next_seq(run_id, ""), "ownership_seq": next_seq(run_id, "run-store")}


def lock_stream(using: str, run_id: str) -> None:
    """
    Lock the streams of a run that has no row to lock, until the transaction ends.

    On SQLite the write lock, which the caller holds, does it already.
    """
    if has_one_writer(using):
        return
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))", [run_id, _STREAM_LOCKS]
        )


def _named(source: Source) -> dict[str, Any]:
    return {
        "run_id": source.run_id,
        "companion": source.companion,
        "source": source.source_hash,
    }
