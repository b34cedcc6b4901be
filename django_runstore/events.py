"""
What goes into the journal and what comes out: frozen values, checked by the journal alone.

Spec: run-store 8. Payloads can hold what no log should, so they are left out of every repr.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from django_runstore.durable import utf16_units


@dataclass(frozen=True, slots=True)
class JournalEvent:
    """
    Something that happened to a run, to be appended to its journal.

    Attributes:
        run_id: The run it belongs to; for unfenced events it need not exist.
        source_id: Who says it. ``runstore`` and what begins with ``runstore.`` are this
            package's own.
        event_type: What happened, such as ``invoice.sent``.
        payload: Any JSON value; dates become ISO text, numbers that are not finite null.
        meta: As the payload, for what describes the event and is no part of it.
        source_seq: Number of the event within its source, for events that may be sent twice:
            a second one of the same number is a duplicate. By default the next one.
        dedupe: Whether a second event of the same number must also have the same content
            (``content``), or counts as a duplicate whatever it holds (``identity``).
        companion: A stream beside the run's own, at most 512 bytes; empty for the run's own.
            ``run-store`` holds the ownership facts and is written by ``RunStore`` alone.
    """

    run_id: str
    source_id: str
    event_type: str
    payload: Any = field(repr=False)
    meta: Any = field(default=None, repr=False)
    source_seq: int | None = None
    dedupe: Literal["content", "identity"] = "content"
    companion: str = ""


@dataclass(frozen=True, slots=True)
class EntryRecord:
    """One entry as stored, its payload and meta decoded."""

    run_id: str
    companion: str
    seq: int
    source_id: str
    source_seq: int
    emitted_at_ms: int
    event_type: str
    payload: Any = field(repr=False)
    meta: Any = field(repr=False)

    @property
    def event_id(self) -> str:
        """
        One text for the event's identity, the same wherever and whenever it is made.

        Lengths are in UTF-16 units, so that no two identities have the same text.
        """
        parts = [self.companion, self.run_id] if self.companion else [self.run_id]
        lengths = "".join(f"{utf16_units(part)}:{part}" for part in [*parts, self.source_id])
        return f"runstore:event:{lengths}{self.source_seq}"


@dataclass(frozen=True, slots=True)
class EntryPage:
    """Entries in the order of their sequence, and whether more match behind the last one."""

    entries: tuple[EntryRecord, ...]
    has_more: bool


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """The folded state of a stream up to and including the entry at ``seq``."""

    run_id: str
    companion: str
    seq: int
    state: Any = field(repr=False)
    created_at_ms: int
    compacted_at_ms: int | None


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction did: the checkpoint that is the floor now, and how many entries went."""

    run_id: str
    companion: str
    checkpoint_seq: int
    deleted: int


@dataclass(frozen=True, slots=True)
class Generation:
    """How often a run's stream was rewound, and the last sequence that was kept."""

    generation: int
    after_seq: int
