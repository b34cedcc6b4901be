"""Append events, fenced or not. Spec: run-store 8.3 and 8.4."""

from collections.abc import Callable
from typing import Final

from django_runstore.db.journal_notices import announce
from django_runstore.db.journal_statements import Ends, ends_of, known_as, lock_stream
from django_runstore.errors import (
    DatabaseFailure,
    IdempotencyConflict,
    InvalidEvent,
    SequenceConflict,
    SinkFailed,
)
from django_runstore.events import JournalEvent
from django_runstore.metrics import tallies
from django_runstore.outcomes import Accepted, Duplicate, EmitOutcome
from django_runstore.owners import OwnerId
from django_runstore.services import door
from django_runstore.services.entries import insert, new_entry
from django_runstore.services.facts import OWN_STREAM
from django_runstore.services.journal import arguments
from django_runstore.services.journal.admission import AdmittedEvent, admit_event
from django_runstore.services.journal.core import JournalCore, host_of
from django_runstore.services.locked_run import LockedRun
from django_runstore.services.twin import twin

MOST_COLLISIONS: Final = 5


class Emitting(JournalCore):
    """
    An event is appended in one transaction with what it is about, or not at all.

    Sequences are taken under the lock of the run's row, which is held until the transaction
    ends: the entries of a stream become visible in their order.
    """

    @door.operation(tallies.durable_writes)
    def emit_durable(
        self, event: JournalEvent, owner: OwnerId, *, fence: int | None = None
    ) -> EmitOutcome:
        """
        Append an event of the run's owner. Spec: run-store 8.4.

        Args:
            event: What happened; its payload and meta are redacted before they are stored.
            fence: The grant this ownership began with; checked too when given.

        Returns:
            ``Accepted``: it is in the journal, once the surrounding transaction commits.
            ``Duplicate``: an event of this source and number was there before.

        Raises:
            InvalidEvent: an argument breaks the contract; nothing was read.
            FenceLostError: the run is not running under this owner (and grant), also when the
                event is in the journal already; stop.
            IdempotencyConflict: source and number were used for other content.
            SequenceConflict: others kept taking the next sequence; begin anew.
            SinkFailed: the database or the arbiter failed; nothing was written.
        """
        operation = "emit_durable"
        admitted = self._admit(operation, event)
        holder, grant = arguments.owner(operation, owner, fence)
        run_id = admitted.source.run_id
        door.note(run_id=run_id, **host_of(holder))

        def body() -> EmitOutcome:
            row = self._fenced(operation, run_id, holder, grant)
            return self._known(operation, admitted) or self._append(operation, admitted, row)

        return self._emit(operation, body)

    @door.operation(tallies.durable_writes)
    def emit_durable_unfenced(self, event: JournalEvent) -> EmitOutcome:
        """
        Append an event that nobody has to own the run for; the run need not exist.

        For facts of which the first writer's stands, such as those of an observer.
        Spec: run-store 8.4.

        Returns:
            As ``emit_durable``.

        Raises:
            As ``emit_durable``, but never ``FenceLostError``.
        """
        operation = "emit_durable_unfenced"
        admitted = self._admit(operation, event)
        run_id = admitted.source.run_id
        door.note(run_id=run_id)

        def body() -> EmitOutcome:
            # Looked up before the lock: whoever comes second need not wait for the owner.
            known = self._known(operation, admitted)
            if known is not None:
                return known
            row = self._lock(run_id)
            if row is None:
                lock_stream(self.using, run_id)
            return self._known(operation, admitted) or self._append(operation, admitted, row)

        return self._emit(operation, body)

    def _admit(self, operation: str, event: object) -> AdmittedEvent:
        return admit_event(operation, event, self.redactor, self._max_entry_bytes)

    def _emit(self, operation: str, body: Callable[[], EmitOutcome]) -> EmitOutcome:
        """
        Write, and once more where another writer had the sequence.

        Under the row's lock nobody can have it but who wrote while there was no row yet. The
        index made this write wait for that one, so the next look sees it.
        """
        for _ in range(MOST_COLLISIONS):
            try:
                return self._write(operation, body)
            except SinkFailed as error:
                cause = error.__cause__
                if not isinstance(cause, DatabaseFailure) or cause.code != "constraint":
                    raise
        raise SequenceConflict(operation, "the next sequence was taken by other writers")

    def _known(self, operation: str, event: AdmittedEvent) -> Duplicate | None:
        """Look for an event of the same identity, compacted ones included."""
        if event.source_seq is None:
            return None
        known = known_as(self.using, event.source, event.source_seq)
        if known is None:
            return None
        same = known.content == event.content or known.content_hash == event.content_hash
        if same or event.by_identity:
            return Duplicate(known.seq, event.source_seq)
        source = event.source
        raise IdempotencyConflict(
            operation,
            f"source event {event.source_id}:{event.source_seq} for run {source.run_id} "
            f"was reused with different content",
            {"run_id": source.run_id, "source_seq": event.source_seq, "seq": known.seq},
        )

    def _append(self, operation: str, event: AdmittedEvent, row: LockedRun | None) -> Accepted:
        source = event.source
        ends = ends_of(self.using, source)
        seq = _next_seq(ends, source.companion, row)
        source_seq = ends.next_source_seq if event.source_seq is None else event.source_seq
        if max(seq, source_seq) > arguments.LARGEST_SEQUENCE:
            raise InvalidEvent(
                operation,
                "journal sequence is outside the allocatable safe integer range",
                {"run_id": source.run_id},
            )
        if row is not None and source.companion == OWN_STREAM:
            self._apply(operation, row, {"journal_seq": seq + 1})
        entry = new_entry(
            source.run_id,
            source.companion,
            seq,
            source_id=event.source_id,
            source_seq=source_seq,
            emitted_at_ms=self._now(operation),
            event_type=event.event_type,
            payload_json=event.payload_json,
            meta_json=event.meta_json,
        )
        insert(self.using, [entry])
        announce(self.using, source.run_id, source.companion)
        return Accepted(seq, source_seq)

    aemit_durable = twin(emit_durable)
    aemit_durable_unfenced = twin(emit_durable_unfenced)


def _next_seq(ends: Ends, companion: str, row: LockedRun | None) -> int:
    """
    Take the row's count, which is in the row's own write; the stream's end where that is ahead.

    It is ahead when events came while the run was being created. Streams beside the run's own
    have no count: the lock of the row, or of the stream, orders whoever appends to them.
    """
    if row is None or companion != OWN_STREAM:
        return ends.next_seq
    return max(row.journal_seq, ends.next_seq)
