"""Fold a stream into a checkpoint and delete what lies below it. Spec: run-store 8.8."""

from collections.abc import Sequence
from typing import Any, Final

from django_runstore.durable import parse_json_text
from django_runstore.errors import CheckpointInvalid, ReaderBehind
from django_runstore.events import CheckpointRecord, Compaction
from django_runstore.metrics import tallies
from django_runstore.models import JournalCheckpoint, JournalDedup, JournalEntry
from django_runstore.owners import OwnerId
from django_runstore.services import door
from django_runstore.services.entries import content_digest
from django_runstore.services.journal import arguments
from django_runstore.services.journal.core import host_of
from django_runstore.services.journal.reading import Reading
from django_runstore.services.journal.streams import Stream, somebody_needs
from django_runstore.services.twin import twin

ENTRIES_AT_ONCE: Final = 500

_IDENTITY: Final = ("seq", "source_hash", "source_seq")
_CONTENT: Final = ("event_type", "payload_json", "meta_json")


class Compacting(Reading):
    """Only the owner of a run may fold its journal."""

    @door.operation(tallies.uncounted)
    def checkpoint(
        self,
        run_id: str,
        seq: int,
        state: Any,  # noqa: ANN401 - any JSON value
        owner: OwnerId,
        *,
        fence: int | None = None,
        companion: str = "",
    ) -> CheckpointRecord:
        """
        Store what the entries up to ``seq`` fold to. A second one at the same place replaces it.

        Args:
            seq: The sequence of a committed entry above the last compaction.
            state: Any JSON value; stored as it is and not redacted.

        Raises:
            InvalidEvent: an argument breaks the contract; nothing was read.
            FenceLostError: the run is not running under this owner (and grant); stop.
            CheckpointInvalid: no such entry, or it is compacted.
            SinkFailed: the database or the arbiter failed; nothing was written.
        """
        operation = "checkpoint"
        stream = self._stream(operation, run_id, companion)
        position = arguments.sequence(operation, seq, "seq")
        text = arguments.state(operation, state)
        holder, grant = arguments.owner(operation, owner, fence)
        door.note(run_id=stream.run_id, **host_of(holder))

        def body() -> CheckpointRecord:
            self._fenced(operation, stream.run_id, holder, grant)
            entry = JournalEntry.objects.using(self.using).filter(**stream.named, seq=position)
            if position <= self._floor(stream) or not entry.exists():
                raise CheckpointInvalid(
                    operation,
                    "a checkpoint must name a committed entry above the compaction floor",
                    {**stream.named, "seq": position},
                )
            now_ms = self._now(operation)
            checkpoint = JournalCheckpoint(
                **stream.named, seq=position, state_json=text, created_at_ms=now_ms
            )
            JournalCheckpoint.unguarded.using(self.using).bulk_create(
                [checkpoint],
                update_conflicts=True,
                unique_fields=["run_id", "companion", "seq"],
                update_fields=["state_json", "created_at_ms"],
            )
            return CheckpointRecord(
                **stream.named,
                seq=position,
                state=parse_json_text(text),
                created_at_ms=now_ms,
                compacted_at_ms=None,
            )

        return self._write(operation, body)

    @door.operation(tallies.uncounted)
    def compact(
        self,
        run_id: str,
        owner: OwnerId,
        *,
        up_to: int | None = None,
        fence: int | None = None,
        companion: str = "",
    ) -> Compaction:
        """
        Delete the entries below a checkpoint, and the checkpoints before it.

        The identities of deleted events are kept: an exact retry of one is still a duplicate.
        The entry at the checkpoint stays, and a cursor from before it is answered ``Compacted``.

        Args:
            up_to: The sequence of a checkpoint; by default the latest.

        Returns:
            What was deleted; nothing when it was compacted to this checkpoint before.

        Raises:
            InvalidEvent: an argument breaks the contract; nothing was read.
            FenceLostError: the run is not running under this owner (and grant); stop.
            CheckpointInvalid: there is no such checkpoint.
            ReaderBehind: a reader that follows in this process has not come so far.
            SinkFailed: the database or the arbiter failed; nothing was deleted.
        """
        operation = "compact"
        stream = self._stream(operation, run_id, companion)
        wanted = None if up_to is None else arguments.sequence(operation, up_to, "up_to")
        holder, grant = arguments.owner(operation, owner, fence)
        door.note(run_id=stream.run_id, **host_of(holder))

        def body() -> Compaction:
            self._fenced(operation, stream.run_id, holder, grant)
            floor, compacted_at_ms = self._target(operation, stream, wanted)
            if compacted_at_ms is not None:
                return Compaction(**stream.named, checkpoint_seq=floor, deleted=0)
            if somebody_needs(self.using, stream, floor):
                raise ReaderBehind(
                    operation,
                    f"a reader in this process has not come to the checkpoint at {floor}",
                    {**stream.named, "checkpoint_seq": floor},
                )
            deleted = self._retire(stream, floor)
            checkpoints = JournalCheckpoint.unguarded.using(self.using).filter(**stream.named)
            checkpoints.filter(seq__lt=floor).delete()
            checkpoints.filter(seq=floor).update(compacted_at_ms=self._now(operation))
            return Compaction(**stream.named, checkpoint_seq=floor, deleted=deleted)

        return self._write(operation, body)

    def _target(self, operation: str, stream: Stream, wanted: int | None) -> tuple[int, int | None]:
        checkpoints = self._checkpoints(stream)
        if wanted is not None:
            checkpoints = checkpoints.filter(seq=wanted)
        newest = checkpoints.order_by("-seq").values_list("seq", "compacted_at_ms")[:1]
        for seq, compacted_at_ms in newest:
            return seq, compacted_at_ms
        detail = {**stream.named, "seq": wanted}
        raise CheckpointInvalid(operation, "there is no checkpoint to compact to", detail)

    def _retire(self, stream: Stream, floor: int) -> int:
        """Move the entries below ``floor`` to what is kept of them, some at a time."""
        entries = JournalEntry.unguarded.using(self.using).filter(**stream.named, seq__lt=floor)
        deleted = 0
        while page := list(entries.order_by("seq").values(*_IDENTITY, *_CONTENT)[:ENTRIES_AT_ONCE]):
            self._keep_identities(stream, page)
            entries.filter(seq__lte=page[-1]["seq"]).delete()
            deleted += len(page)
        return deleted

    def _keep_identities(self, stream: Stream, page: Sequence[dict[str, Any]]) -> None:
        JournalDedup.unguarded.using(self.using).bulk_create(
            JournalDedup(
                **stream.named,
                **{name: entry[name] for name in _IDENTITY},
                content_hash=content_digest(*(entry[name] for name in _CONTENT)),
            )
            for entry in page
        )

    acheckpoint = twin(checkpoint)
    acompact = twin(compact)
