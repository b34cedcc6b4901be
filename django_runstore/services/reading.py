"""Create a run and read it back. Spec: run-store 4.3 create, get, lineage, latest_round."""

from collections.abc import Callable
from typing import Final, TypeVar

from django.db.models import F

from django_runstore.db.journal_statements import first_sequences
from django_runstore.db.run_notices import announce_claimable
from django_runstore.durable import durable_text, safe_integer
from django_runstore.errors import RunConstraint, RunNotFound
from django_runstore.metrics import tallies
from django_runstore.models import Run
from django_runstore.querysets import RunQuerySet
from django_runstore.rows import decode_run
from django_runstore.services import arguments, door
from django_runstore.services.core import StoreCore
from django_runstore.services.deadlines import due_by_deadline
from django_runstore.services.twin import twin
from django_runstore.snapshots import RunRow
from django_runstore.states import RunStatus

T = TypeVar("T")

_ANCESTRY: Final = "contains invalid ancestry or lineage"


class Reading(StoreCore):
    """The operations that neither claim nor need ownership."""

    @door.operation(tallies.uncounted)
    def create(
        self,
        run_id: str,
        state_json: str,
        *,
        parent_run_id: str | None = None,
        lineage_id: str | None = None,
        round_ordinal: int | None = None,
        handler: str = "",
        queue: str = "default",
        priority: int = 0,
        available_at_ms: int | None = None,
        deadline_at_ms: int | None = None,
        concurrency_key: str = "",
        concurrency_limit: int = 1,
        state_version: int = 0,
    ) -> None:
        """
        Insert a pending run. Spec: run-store 4.3 create.

        Args:
            run_id: 1 to 1,024 UTF-16 units and at most 2,048 bytes; no NUL, no lone surrogate.
            state_json: JSON text, stored and returned byte for byte.
            parent_run_id: An existing run this one descends from.
            lineage_id: The logical run this is a round of; given together with ``round_ordinal``.
            round_ordinal: Position within the lineage, unique there.
            handler: Name of the handler that executes the run; empty for hosts of their own.
            queue: Which supervisors may claim it; at most 512 bytes.
            priority: Higher runs first; a 32-bit integer.
            available_at_ms: ``claim_many`` leaves the run alone until then; by default now.
            deadline_at_ms: Supervisors fail the run if it is not settled by then; it is
                claimable from then on whatever ``available_at_ms`` says.
            concurrency_key: ``claim_many`` leaves the run alone while as many runs with this
                key are running or claimed as ``concurrency_limit`` says; empty for no such
                limit; at most 512 bytes.
            concurrency_limit: 1 or more; each run's own, and the same for all of a key.
            state_version: Which shape the state has, for the handler; 0 for none of them.

        Raises:
            InvalidRun: an argument breaks the contract; nothing was written.
            RunConstraint: the id or the round exists, or the parent does not.
            RunPersistenceFailed: the database failed.
        """
        operation = "create"
        identifier = arguments.text(operation, run_id)
        if (lineage_id is None) != (round_ordinal is None):
            arguments.refuse(operation, "options", _ANCESTRY)
        parent = _ancestry(operation, parent_run_id, durable_text)
        lineage = _ancestry(operation, lineage_id, durable_text)
        ordinal = _ancestry(operation, round_ordinal, safe_integer)
        deadline = arguments.optional_timestamp(operation, deadline_at_ms, "deadline_at_ms")
        due = arguments.optional_timestamp(operation, available_at_ms, "available_at_ms")
        columns = {
            "handler": arguments.label(operation, handler, "handler"),
            "queue": arguments.indexed_text(operation, queue, "queue"),
            "priority": arguments.priority(operation, priority),
            "deadline_at_ms": deadline,
            "concurrency_key": arguments.indexed_label(
                operation, concurrency_key, "concurrency_key"
            ),
            "state_version": arguments.timestamp(operation, state_version, "state_version"),
            "concurrency_limit": arguments.concurrency_limit(operation, concurrency_limit),
        }
        state = arguments.state(
            operation,
            state_json,
            {
                "run_id": identifier,
                "parent_run_id": parent,
                "lineage_id": lineage,
                "round_ordinal": ordinal,
            },
        )
        door.note(run_id=identifier)

        now_ms = self._now(operation)
        due_at_ms = due_by_deadline(now_ms if due is None else due, deadline)

        def body() -> None:
            # The foreign key is checked at commit only, which may be the caller's and far away.
            if parent is not None and not self._runs().filter(pk=parent).exists():
                raise RunConstraint(
                    operation, "the parent run does not exist", {"run_id": identifier}
                )
            Run.unguarded.using(self.using).create(
                run_id=identifier,
                status=RunStatus.PENDING,
                created_at_ms=now_ms,
                available_at_ms=due_at_ms,
                parent_run_id=parent,
                lineage_id=lineage,
                round_ordinal=ordinal,
                state_json=state,
                **first_sequences(self.using, identifier),
                **columns,
            )
            if due_at_ms is not None and due_at_ms <= now_ms:
                announce_claimable(self.using, [str(columns["queue"])])

        self._write(operation, body)

    @door.operation(tallies.uncounted)
    def get(self, run_id: str) -> RunRow:
        """
        Return the run, decoded and checked. Spec: run-store 4.3 get.

        Raises:
            InvalidRun: ``run_id`` is not durable text.
            RunNotFound: there is no such run.
            RunDecodeFailed: the stored row breaks the invariants.
        """
        operation = "get"
        identifier = arguments.text(operation, run_id)
        door.note(run_id=identifier)
        run = self._typed(operation, lambda: self._runs().filter(pk=identifier).first())
        if run is None:
            raise _not_found(operation, identifier)
        return decode_run(operation, run)

    @door.operation(tallies.uncounted)
    def lineage(self, run_id: str) -> tuple[RunRow, ...]:
        """
        Return every round of the logical run that ``run_id`` belongs to, in round order.

        Empty for an unknown id. Parents are not followed. Spec: run-store 4.3 lineage.
        """
        operation = "lineage"
        identifier = arguments.text(operation, run_id)
        door.note(run_id=identifier)
        rounds = self._typed(operation, lambda: list(self._runs().lineage_of(identifier)))
        return tuple(decode_run(operation, run) for run in rounds)

    @door.operation(tallies.uncounted)
    def latest_round(self, run_id: str) -> RunRow:
        """
        Return the newest round of the logical run that ``run_id`` belongs to.

        Raises:
            RunNotFound: there is no such run. Spec: run-store 4.3 latest_round.
        """
        operation = "latest_round"
        identifier = arguments.text(operation, run_id)
        door.note(run_id=identifier)
        # A root that names no lineage of its own is the newest only where it is alone.
        rounds = (
            self._runs()
            .lineage_of(identifier)
            .order_by(
                F("lineage_id").asc(nulls_last=True),
                F("round_ordinal").desc(nulls_last=True),
                "run_id",
            )
        )
        newest = self._typed(operation, rounds.first)
        if newest is None:
            raise _not_found(operation, identifier)
        return decode_run(operation, newest)

    def _runs(self) -> RunQuerySet:
        return Run.objects.using(self.using)

    acreate = twin(create)
    aget = twin(get)
    alineage = twin(lineage)
    alatest_round = twin(latest_round)


def _ancestry(operation: str, value: object, admit: Callable[[object], T | None]) -> T | None:
    """Admit one of the options that place a run among others; absent stays absent."""
    if value is None:
        return None
    admitted = admit(value)
    if admitted is None:
        arguments.refuse(operation, "options", _ANCESTRY)
    return admitted


def _not_found(operation: str, run_id: str) -> RunNotFound:
    return RunNotFound(operation, f"run {run_id} was not found", {"run_id": run_id})
