"""
Ownership facts: what changed hands, when, under which fence and on what evidence.

Appended to the run's companion stream in the transaction of the change itself, so that
neither can exist without the other. Spec: run-store 4.2 with departures D2 to D4.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from django_runstore.durable import canonical_json
from django_runstore.evidence import LivenessEvidence
from django_runstore.models import JournalEntry
from django_runstore.owners import OwnerId
from django_runstore.snapshots import RunNote

COMPANION: Final = "run-store"
SOURCE: Final = "runstore"
NOTE_SOURCE: Final = "runstore.supervisor"
EVENT_PREFIX: Final = "runstore.ownership."


@dataclass(frozen=True, slots=True)
class TakeoverEvidence:
    """What a takeover was based on, kept so that people can ask later."""

    evidence: LivenessEvidence
    observer: OwnerId
    last_heartbeat_at_ms: int | None


@dataclass(frozen=True, slots=True)
class Fact:
    """One change of hands."""

    transition: Literal["claimed", "activated", "released", "stolen", "expired"]
    owner: OwnerId
    granted_at_ms: int | None
    fence: int | None
    takeover: TakeoverEvidence | None = None


def append_facts(
    using: str, rows: Iterable[tuple[str, int, Sequence[Fact]]], emitted_at_ms: int
) -> None:
    """
    Insert the facts of any number of runs in one statement.

    Args:
        rows: Per run its id, the first sequence to use and its facts in order. The caller
            holds the run's lock and advances ``ownership_seq`` in the same transaction.
    """
    entries = [
        _entry(run_id, COMPANION, SOURCE, first_seq + offset, emitted_at_ms, fact)
        for run_id, first_seq, facts in rows
        for offset, fact in enumerate(facts)
    ]
    if entries:
        JournalEntry.unguarded.using(using).bulk_create(entries)


def append_notes(using: str, rows: Iterable[tuple[str, int, RunNote]], emitted_at_ms: int) -> None:
    """Insert remarks into the runs' own streams; the caller advances ``journal_seq``."""
    entries = [
        JournalEntry(
            run_id=run_id,
            companion="",
            seq=seq,
            source_id=NOTE_SOURCE,
            source_hash=_digest(NOTE_SOURCE),
            source_seq=seq,
            emitted_at_ms=emitted_at_ms,
            event_type=note.event_type,
            payload_json=canonical_json(dict(note.payload)),
        )
        for run_id, seq, note in rows
    ]
    if entries:
        JournalEntry.unguarded.using(using).bulk_create(entries)


def _entry(
    run_id: str, companion: str, source: str, seq: int, emitted_at_ms: int, fact: Fact
) -> JournalEntry:
    return JournalEntry(
        run_id=run_id,
        companion=companion,
        seq=seq,
        source_id=source,
        source_hash=_digest(source),
        source_seq=seq,
        emitted_at_ms=emitted_at_ms,
        event_type=EVENT_PREFIX + fact.transition,
        payload_json=canonical_json(_payload(run_id, fact)),
        meta_json=canonical_json({"run_id": run_id}),
    )


def _payload(run_id: str, fact: Fact) -> dict[str, object]:
    payload: dict[str, object] = {
        "run_id": run_id,
        "owner": identity_json(fact.owner),
        "granted_at_ms": fact.granted_at_ms,
        "fence": fact.fence,
    }
    if fact.takeover is not None:
        evidence = fact.takeover.evidence
        payload["evidence"] = {
            "kind": str(evidence.kind),
            "checked_at_ms": evidence.checked_at_ms,
            "observer": identity_json(fact.takeover.observer),
            "last_heartbeat_at_ms": fact.takeover.last_heartbeat_at_ms,
            "observed": None if evidence.observed is None else dict(evidence.observed),
        }
    return payload


def identity_json(owner: OwnerId) -> dict[str, object]:
    """Spell an identity the way the journal and the acknowledgement store it."""
    return {"host_id": owner.host_id, "pid": owner.pid, "nonce": owner.nonce}


def _digest(source: str) -> bytes:
    return hashlib.sha256(source.encode()).digest()
