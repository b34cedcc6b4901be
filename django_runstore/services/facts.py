"""
Ownership facts: what changed hands, when, under which fence and on what evidence.

Appended to the run's companion stream in the transaction of the change itself, so that
neither can exist without the other. Spec: run-store 4.2 with departures D2 to D4.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from django.db.models import BigIntegerField, Value
from django.db.models.functions import Greatest

from django_runstore.db.journal_statements import next_seq
from django_runstore.durable import canonical_json
from django_runstore.evidence import LivenessEvidence
from django_runstore.models import JournalEntry
from django_runstore.owners import OwnerId
from django_runstore.services.entries import insert, new_entry
from django_runstore.snapshots import RunNote

OWN_STREAM: Final = ""
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
    insert(
        using,
        [
            _entry(run_id, first_seq + offset, emitted_at_ms, fact)
            for run_id, first_seq, facts in rows
            for offset, fact in enumerate(facts)
        ],
    )


def append_notes(using: str, rows: Iterable[tuple[str, int, RunNote]], emitted_at_ms: int) -> None:
    """Insert remarks into the runs' own streams; the caller advances ``journal_seq``."""
    insert(using, [_note(run_id, seq, emitted_at_ms, note) for run_id, seq, note in rows])


def _note(run_id: str, seq: int, emitted_at_ms: int, note: RunNote) -> JournalEntry:
    # An event that was emitted while the run was being created may be ahead of its count.
    free = Greatest(Value(seq), next_seq(run_id, OWN_STREAM), output_field=BigIntegerField())
    return new_entry(
        run_id,
        OWN_STREAM,
        free,
        source_id=NOTE_SOURCE,
        source_seq=free,
        emitted_at_ms=emitted_at_ms,
        event_type=note.event_type,
        payload_json=canonical_json(dict(note.payload)),
    )


def _entry(run_id: str, seq: int, emitted_at_ms: int, fact: Fact) -> JournalEntry:
    return new_entry(
        run_id,
        COMPANION,
        seq,
        source_id=SOURCE,
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
