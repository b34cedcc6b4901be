"""Move an owned run on, one or many. Spec: run-store 4.3 transition_owned."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from django.db import transaction
from django.db.models import F

from django_runstore.arbiters.lease import AskGuard, AskRelease, Lease, Refused
from django_runstore.db.run_notices import announce_claimable
from django_runstore.metrics import count, tallies
from django_runstore.metrics.contract import RUN_THROUGHPUT
from django_runstore.metrics.exporting import listeners
from django_runstore.outcomes import (
    FenceLost,
    GuardFailed,
    NotFound,
    Transitioned,
    TransitionOutcome,
)
from django_runstore.owners import OwnerId
from django_runstore.services import arguments, door
from django_runstore.services.core import StoreCore, lease_columns
from django_runstore.services.deadlines import due_by_deadline
from django_runstore.services.facts import Fact, append_notes
from django_runstore.services.locked_run import LockedRun
from django_runstore.services.twin import twin
from django_runstore.services.waits import waiting_columns
from django_runstore.snapshots import OwnedTransition, RunNote, TransitionGuard
from django_runstore.states import RunStatus, is_terminal_run_status
from django_runstore.unset import UNSET, UnsetType

R = TypeVar("R", OwnedTransition, RunNote)

LARGEST_BATCH: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Move:
    """One admitted transition."""

    run_id: str
    fence: int | None
    to_status: RunStatus
    guard: TransitionGuard
    columns: Mapping[str, Any]
    available_at_ms: int | UnsetType | None = UNSET
    counts_failure: bool = False
    counts_recovery: bool = False
    note: RunNote | None = None


class _Entries(NamedTuple):
    """What the moves of one transaction leave to its end: entries, runs to count, notices."""

    facts: list[tuple[str, int, Sequence[Fact]]]
    notes: list[tuple[str, int, RunNote]]
    settled: list[str]
    claimable: set[str]


class Settling(StoreCore):
    """The guard makes completed and cancelled exclude each other in every race."""

    @door.operation(tallies.transitions, reads="to_status")
    def transition_owned(
        self,
        run_id: str,
        owner: OwnerId,
        to_status: str,
        state_json: str | None = None,
        guard: TransitionGuard | None = None,
        *,
        fence: int | None = None,
        available_at_ms: int | UnsetType | None = UNSET,
    ) -> TransitionOutcome:
        """
        Save, suspend or settle a run that ``owner`` runs. Spec: run-store 4.3 transition_owned.

        ``running`` keeps owner and heartbeat (a save). Any other status gives the run up:
        terminal runs are never claimable again, suspended ones at once unless said otherwise.
        What the run waits for is left as it is, see ``park``.

        Args:
            to_status: Any status but ``pending``.
            state_json: Replaces the whole state; ``None`` keeps it.
            guard: ``cancel_requested`` ``"absent"`` or ``"present"``, judged in the same write.
            fence: The grant this ownership began with; checked too when given.
            available_at_ms: When a suspended run may be claimed by ``claim_many``; ``None``
                for not before somebody wakes it, omitted for now. A run with a deadline is
                claimable from then on, so that somebody fails it.

        Returns:
            ``Transitioned``: done.
            ``FenceLost``: not running under this owner (and grant); stop.
            ``GuardFailed``: the run is yours, and a request is there (or is not).
            ``NotFound``: there is no such run.
        """
        operation = "transition_owned"
        identifier = arguments.text(operation, run_id)
        holder = arguments.owner(operation, owner)
        status = arguments.target_status(operation, to_status)
        columns = {}
        if state_json is not None:
            columns["state_json"] = arguments.state(operation, state_json, {"run_id": identifier})
        condition = arguments.guard(operation, guard)
        grant = arguments.fence(operation, fence)
        due = arguments.unset_or_timestamp(operation, available_at_ms, "available_at_ms")
        door.note(run_id=identifier, owner_host_id=holder.host_id, to=str(status))
        move = _Move(identifier, grant, status, condition, columns, due)

        now_ms = self._now(operation)

        def body() -> TransitionOutcome:
            entries = _Entries([], [], [], set())
            answer = self._move(operation, self._lock(identifier), holder, move, now_ms, entries)
            self._append(operation, entries, now_ms)
            return answer

        return self._write(operation, body)

    @door.operation(tallies.transitions_of_many, reads="transitions")
    def transition_many(
        self, owner: OwnerId, transitions: Iterable[OwnedTransition]
    ) -> dict[str, TransitionOutcome]:
        """
        Make many owned transitions in one transaction, each judged by its own fence.

        A lost one does not disturb the others. At most one transition per run.

        Returns:
            Per run id what ``transition_owned`` would answer.
        """
        operation = "transition_many"
        holder = arguments.owner(operation, owner)
        moves = self._moves(operation, transitions)
        door.note(owner_host_id=holder.host_id)

        now_ms = self._now(operation)

        def body() -> dict[str, TransitionOutcome]:
            rows = self._lock_many(moves)
            entries = _Entries([], [], [], set())
            answers = {
                run_id: self._move(operation, rows.get(run_id), holder, move, now_ms, entries)
                for run_id, move in moves.items()
            }
            self._append(operation, entries, now_ms)
            return answers

        return self._write(operation, body) if moves else {}

    def _moves(self, operation: str, transitions: object) -> dict[str, _Move]:
        members = arguments.members(operation, transitions, "transitions")
        if len(members) > LARGEST_BATCH:
            arguments.refuse(operation, "transitions", f"must be at most {LARGEST_BATCH}")
        moves = [_admit(operation, member) for member in members]
        by_run = {move.run_id: move for move in moves}
        if len(by_run) != len(moves):
            arguments.refuse(operation, "transitions", "must name each run once")
        return by_run

    def _move(
        self,
        operation: str,
        row: LockedRun | None,
        owner: OwnerId,
        move: _Move,
        now_ms: int,
        entries: _Entries,
    ) -> TransitionOutcome:
        """Judge and write one transition under the row's lock; leave its entries to the end."""
        if row is None:
            return NotFound()
        decision = self._decide(row, row.lease, AskGuard(owner, move.fence))
        if isinstance(decision.answer, Refused) or not row.is_owned_by(owner, move.fence):
            return FenceLost()
        requested = "absent" if row.cancel_requested_at_ms is None else "present"
        if move.guard.cancel_requested not in (None, requested):
            return GuardFailed()
        changes = {**move.columns, **_counts(move), "status": move.to_status}
        if move.to_status == RunStatus.RUNNING:
            changes["finished_at_ms"] = None
        else:
            changes |= self._giving_up(row, owner, move, now_ms)
            released = Fact("released", owner, None, row.owner_fence)
            entries.facts.append((row.run_id, row.ownership_seq, (released,)))
            changes["ownership_seq"] = row.ownership_seq + 1
        if move.note is not None:
            entries.notes.append((row.run_id, row.journal_seq, move.note))
            changes["journal_seq"] = row.journal_seq + 1
        self._apply(operation, row, changes)
        due_at_ms = changes.get("available_at_ms")
        gives_way = row.concurrency_key and move.to_status != RunStatus.RUNNING
        if gives_way or (due_at_ms is not None and due_at_ms <= now_ms):
            entries.claimable.add(row.queue)
        if is_terminal_run_status(move.to_status):
            entries.settled.append(row.run_id)
        return Transitioned()

    def _append(self, operation: str, entries: _Entries, now_ms: int) -> None:
        """Append what the moves have left, each kind in one statement; count runs on commit."""
        append_notes(self.using, entries.notes, now_ms)
        self._append_facts(operation, entries.facts)
        announce_claimable(self.using, entries.claimable)
        if entries.settled and listeners():
            settled = partial(count, RUN_THROUGHPUT, amount=len(entries.settled))
            transaction.on_commit(settled, using=self.using)

    def _giving_up(
        self, row: LockedRun, owner: OwnerId, move: _Move, now_ms: int
    ) -> dict[str, Any]:
        """Clear owner and claim alike: a stealer's pending claim must not be stranded."""
        released = self._decide(row, row.lease, AskRelease(owner)).lease
        if row.claim is not None:
            self._decide(row, released, AskRelease(row.claim))
        columns = lease_columns(Lease(fence=row.fence))
        columns["finished_at_ms"] = now_ms if is_terminal_run_status(move.to_status) else None
        if move.to_status == RunStatus.SUSPENDED:
            due = now_ms if move.available_at_ms is UNSET else move.available_at_ms
            columns["available_at_ms"] = due_by_deadline(due, row.deadline_at_ms)
        elif move.to_status == RunStatus.COMPLETED:
            # What an earlier execution failed with is no error of a run that went well.
            columns["error_json"] = None
        return columns

    atransition_owned = twin(transition_owned)
    atransition_many = twin(transition_many)


def _counts(move: _Move) -> dict[str, Any]:
    counted = {"failure_count": move.counts_failure, "recovery_count": move.counts_recovery}
    return {column: F(column) + 1 for column, counts in counted.items() if counts}


def _admit(operation: str, line: object) -> _Move:
    """Check one line of a batch."""
    value = _copy(operation, line, OwnedTransition, "transitions", "must hold owned transitions")
    run_id = arguments.text(operation, value.run_id)
    columns: dict[str, Any] = {}
    if value.state_json is not None:
        columns["state_json"] = arguments.state(operation, value.state_json, {"run_id": run_id})
    for name in ("result_json", "error_json"):
        text = arguments.optional_json(operation, getattr(value, name), name)
        if text is not None:
            columns[name] = text
    if value.waiting is not None:
        columns |= waiting_columns(operation, value.waiting)
    fence = arguments.fence(operation, value.fence)
    if fence is None:
        arguments.refuse(operation, "fence", "must be given in a batch")
    return _Move(
        run_id=run_id,
        fence=fence,
        to_status=arguments.target_status(operation, value.to_status),
        guard=arguments.guard(operation, value.guard),
        columns=columns,
        available_at_ms=arguments.unset_or_timestamp(
            operation, value.available_at_ms, "available_at_ms"
        ),
        counts_failure=arguments.flag(operation, value.counts_failure, "counts_failure"),
        counts_recovery=arguments.flag(operation, value.counts_recovery, "counts_recovery"),
        note=None if value.note is None else _note(operation, value.note),
    )


def _note(operation: str, note: object) -> RunNote:
    value = _copy(operation, note, RunNote, "note", "must be a run note")
    event_type = arguments.text(operation, value.event_type, "note.event_type")
    return RunNote(event_type, arguments.small_pairs(operation, value.payload, "note.payload"))


def _copy(operation: str, value: object, kind: type[R], field: str, detail: str) -> R:
    """Copy an exact record, so that every field is there and stays as it is."""
    names = [member.name for member in dataclass_fields(kind)]
    return kind(*arguments.fields(operation, value, kind, field, detail, names))
