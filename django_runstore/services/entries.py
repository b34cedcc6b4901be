"""The one place where entries of the journal are made and inserted."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from django_runstore.durable import encode_json
from django_runstore.models import JournalEntry


def new_entry(
    run_id: str,
    companion: str,
    seq: Any,  # noqa: ANN401 - a number, or an expression that gives one
    *,
    source_id: str,
    source_seq: Any,  # noqa: ANN401 - as seq
    emitted_at_ms: int,
    event_type: str,
    payload_json: str,
    meta_json: str = "null",
) -> JournalEntry:
    """Make an entry, to be inserted under the lock that its sequence was taken under."""
    return JournalEntry(
        run_id=run_id,
        companion=companion,
        seq=seq,
        source_id=source_id,
        source_hash=source_digest(source_id),
        source_seq=source_seq,
        emitted_at_ms=emitted_at_ms,
        event_type=event_type,
        payload_json=payload_json,
        meta_json=meta_json,
    )


def insert(using: str, entries: Sequence[JournalEntry]) -> None:
    """Insert entries of any number of streams in one statement."""
    if entries:
        JournalEntry.unguarded.using(using).bulk_create(entries)


@lru_cache(maxsize=256)
def source_digest(source_id: str) -> bytes:
    """Digest a source id: in an index it would not fit beside a run id."""
    return hashlib.sha256(source_id.encode()).digest()


def content_digest(event_type: str, payload_json: str, meta_json: str) -> bytes:
    """Digest what an event says, to tell a retry from a reuse once its entry is deleted."""
    return hashlib.sha256(encode_json([event_type, payload_json, meta_json]).encode()).digest()
