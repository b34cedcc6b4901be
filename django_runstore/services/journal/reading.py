"""Read a stream: its entries, its newest checkpoint, its generation. Spec: run-store 8.7."""

from collections.abc import Sequence
from typing import Any, Final

from django_runstore.durable import JsonComplaint, parse_event_json, parse_json_text
from django_runstore.errors import Compacted, JournalDecodeFailed
from django_runstore.events import CheckpointRecord, EntryPage, EntryRecord, Generation
from django_runstore.metrics import tallies
from django_runstore.models import JournalCheckpoint, JournalEntry, JournalGeneration
from django_runstore.services import door
from django_runstore.services.journal import arguments
from django_runstore.services.journal.core import JournalCore
from django_runstore.services.journal.streams import Stream
from django_runstore.services.twin import twin

DEFAULT_PAGE: Final = 100

_ENTRY: Final = (
    "seq",
    "source_id",
    "source_seq",
    "emitted_at_ms",
    "event_type",
    "payload_json",
    "meta_json",
)
_CHECKPOINT: Final = ("seq", "state_json", "created_at_ms", "compacted_at_ms")


class Reading(JournalCore):
    """Reading takes no lock and needs no ownership."""

    @door.operation(tallies.uncounted)
    def entries(
        self,
        run_id: str,
        after: int | None = None,
        event_types: Sequence[str] | None = None,
        limit: int = DEFAULT_PAGE,
        *,
        companion: str = "",
    ) -> EntryPage:
        """
        Return the next entries of a stream, in the order of their sequence.

        Args:
            after: The sequence of the last entry that was read; ``None`` begins at the start.
            event_types: Only these exact types, 1 to 64 of them; ``None`` for all.
            limit: 1 to 10,000.
            companion: The stream beside the run's own; ``run-store`` for ownership facts.

        Returns:
            The entries, and whether more match behind the last one. Empty for an unknown run.

        Raises:
            InvalidEvent: an argument breaks the contract; nothing was read.
            Compacted: entries after this cursor are deleted; begin with the checkpoint that
                ``checkpoint_seq`` names.
            JournalDecodeFailed: a stored row is none that the journal writes.
            ReadFailed: the database failed.
        """
        operation = "entries"
        stream = self._stream(operation, run_id, companion)
        cursor = arguments.cursor(operation, after)
        types = arguments.event_types(operation, event_types)
        most = arguments.page_size(operation, limit)
        door.note(run_id=stream.run_id)
        return self._page(operation, stream, cursor, types, most)

    def _page(
        self,
        operation: str,
        stream: Stream,
        after: int,
        types: tuple[str, ...] | None,
        most: int,
    ) -> EntryPage:
        wanted: dict[str, Any] = {} if types is None else {"event_type__in": types}
        entries = (
            JournalEntry.objects.using(self.using)
            .filter(**stream.named, seq__gt=after, **wanted)
            .order_by("seq")
            .values(*_ENTRY)[: most + 1]
        )
        rows = self._read(operation, lambda: list(entries))
        # After the page: a compaction between the two shows in the floor, while a floor that
        # was read first would let a page with a hole pass.
        floor = self._read(operation, lambda: self._floor(stream))
        if after < floor - 1:
            raise Compacted(
                operation,
                f"entries after {after} are compacted; begin with the checkpoint at {floor}",
                {**stream.named, "checkpoint_seq": floor},
            )
        found = tuple(_entry(operation, stream, row) for row in rows[:most])
        return EntryPage(found, has_more=len(rows) > most)

    @door.operation(tallies.uncounted)
    def latest_checkpoint(self, run_id: str, *, companion: str = "") -> CheckpointRecord | None:
        """
        Return the checkpoint with the highest sequence, or nothing.

        Raises:
            InvalidEvent, JournalDecodeFailed, ReadFailed: as ``entries``.
        """
        operation = "latest_checkpoint"
        stream = self._stream(operation, run_id, companion)
        door.note(run_id=stream.run_id)
        newest = self._checkpoints(stream).order_by("-seq").values(*_CHECKPOINT)[:1]
        for row in self._read(operation, lambda: list(newest)):
            return _checkpoint(operation, stream, row)
        return None

    @door.operation(tallies.uncounted)
    def generation(self, run_id: str) -> Generation:
        """
        Return how often the run's stream was rewound: 0, with -1, for one that never was.

        Raises:
            InvalidEvent, ReadFailed: as ``entries``.
        """
        operation = "generation"
        identifier = arguments.text(operation, run_id, "run_id")
        door.note(run_id=identifier)
        rows = JournalGeneration.objects.using(self.using).filter(pk=identifier)
        stored = self._read(operation, lambda: list(rows.values_list("generation", "after_seq")))
        return Generation(*stored[0]) if stored else Generation(0, -1)

    def _stream(self, operation: str, run_id: object, companion: object) -> Stream:
        """Admit what names a stream."""
        identifier = arguments.text(operation, run_id, "run_id")
        return Stream(identifier, arguments.companion(operation, companion))

    def _checkpoints(self, stream: Stream) -> Any:  # noqa: ANN401 - a queryset
        return JournalCheckpoint.objects.using(self.using).filter(**stream.named)

    def _floor(self, stream: Stream) -> int:
        """Give the highest checkpoint that was compacted to, or -1."""
        compacted = self._checkpoints(stream).filter(compacted_at_ms__isnull=False)
        newest = compacted.order_by("-seq").values_list("seq", flat=True)[:1]
        return next(iter(newest), -1)

    aentries = twin(entries)
    alatest_checkpoint = twin(latest_checkpoint)
    ageneration = twin(generation)


def _entry(operation: str, stream: Stream, row: dict[str, Any]) -> EntryRecord:
    try:
        payload, meta = (parse_event_json(row.pop(f"{name}_json")) for name in ("payload", "meta"))
    except JsonComplaint:
        pass
    else:
        return EntryRecord(**stream.named, **row, payload=payload, meta=meta)
    raise JournalDecodeFailed(
        operation, "could not decode journal entry", {**stream.named, "seq": row["seq"]}
    )


def _checkpoint(operation: str, stream: Stream, row: dict[str, Any]) -> CheckpointRecord:
    try:
        state = parse_json_text(row.pop("state_json"))
    except JsonComplaint:
        pass
    else:
        return CheckpointRecord(**stream.named, **row, state=state)
    raise JournalDecodeFailed(
        operation, "could not decode journal checkpoint", {**stream.named, "seq": row["seq"]}
    )
