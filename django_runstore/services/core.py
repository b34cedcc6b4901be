"""What the operations of ``RunStore`` share: clock, arbiter, the locked row and its write."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar

from django.db import Error as DjangoError
from django.db import connections

from django_runstore import conf
from django_runstore.arbiters import Lease, LeaseArbiter, arbiter_for
from django_runstore.arbiters.lease import Decision, Request
from django_runstore.clocks import Clock, clock_for
from django_runstore.db.backends import has_one_writer
from django_runstore.db.boundary import MOST_ATTEMPTS, drop_lost_connection, write
from django_runstore.db.failures import classify, describe, tells_of_broken_block
from django_runstore.errors import (
    DatabaseFailure,
    DetailValue,
    FailureCode,
    RunConstraint,
    RunPersistenceFailed,
    StoreError,
)
from django_runstore.evidence import LivenessEvidence
from django_runstore.models import Run
from django_runstore.outcomes import (
    AlreadyClaimed,
    ClaimLoss,
    HeartbeatFresh,
    NotFound,
    SnapshotChanged,
)
from django_runstore.services import arguments
from django_runstore.services.facts import Fact, append_facts
from django_runstore.services.locked_run import LOCKED_COLUMNS, LockedRun, locked_run
from django_runstore.states import RunStatus

T = TypeVar("T")

_log = logging.getLogger("django_runstore.services")

_READ_BEFORE_WRITE: Final = (
    "the surrounding transaction began without SQLite's write lock, and one that has read by "
    'then cannot wait for it; set OPTIONS["transaction_mode"] = "IMMEDIATE" on this database'
)
_BROKEN_BLOCK: Final = "the surrounding atomic block is broken; leave it before using the store"


class StoreCore:
    """
    Ground of the services.

    Args:
        using: Database alias.
        clock: Anything with ``now_ms()``; by default the database's time on a server
            database and the system's on SQLite.
        arbiter: Who decides about leases; by default the one shared by all services of this
            process over ``using`` (``RUNSTORE["ARBITER"]``).
    """

    service: ClassVar[str] = "RunStore"
    """How spans name the service; one that is not the run store names itself."""

    _failed: ClassVar[str] = "database operation failed"

    def __init__(
        self,
        using: str = "default",
        clock: Clock | None = None,
        arbiter: LeaseArbiter | None = None,
    ) -> None:
        self.using = using
        self._clock = clock
        self._arbiter = arbiter

    @property
    def clock(self) -> Clock:
        """The clock whose readings stamp rows and bound callers' readings."""
        return clock_for(self.using) if self._clock is None else self._clock

    @property
    def arbiter(self) -> LeaseArbiter:
        """Who decides about leases."""
        return arbiter_for(self.using) if self._arbiter is None else self._arbiter

    def _now(self, operation: str) -> int:
        """Read the store's clock; the first reading of a database's clock is a query."""
        reading = self._typed(operation, self.clock.now_ms)
        if not math.isfinite(reading):
            kind = self._kind_of_failure("unknown")
            raise kind(operation, "the clock gave no time", {"stage": "clock"})
        return math.floor(reading)

    def _reading(
        self, operation: str, now_ms: object, context: Mapping[str, str | int]
    ) -> Callable[[], int]:
        """
        Admit a caller's reading; omitted, it is the store clock's at the time of the call.

        To be called under the row's lock: a reading from before a long wait for it could be
        stale in the moment it is written.
        """
        if now_ms is None:
            return lambda: self._now(operation)
        admitted = self._within_skew(operation, now_ms, context)
        return lambda: admitted

    def _within_skew(self, operation: str, now_ms: object, context: Mapping[str, str | int]) -> int:
        admitted = arguments.timestamp(operation, now_ms)
        clock_ms = self._now(operation)
        allowance_ms = conf.current().lease.skew_allowance_ms
        return arguments.within_skew(operation, admitted, clock_ms, allowance_ms, context)

    def _dated(
        self,
        operation: str,
        now_ms: object,
        evidence: object,
        context: Mapping[str, str | int],
    ) -> tuple[LivenessEvidence, int]:
        """Admit a reading and the evidence made at it; omitted, it is the evidence's own."""
        if now_ms is not None:
            reading = self._within_skew(operation, now_ms, context)
            return arguments.evidence(operation, evidence), reading
        proof = arguments.evidence(operation, evidence)
        return proof, self._within_skew(operation, proof.checked_at_ms, context)

    def _write(self, operation: str, body: Callable[[], T], *, attempts: int = MOST_ATTEMPTS) -> T:
        """Run ``body`` in the write boundary and give its failures their types."""
        return self._typed(operation, lambda: write(self.using, body, attempts=attempts))

    def _kind_of_failure(self, code: FailureCode) -> type[StoreError]:
        """Name the error of this service for a database that failed in this way."""
        return RunConstraint if code == "constraint" else RunPersistenceFailed

    def _typed(
        self, operation: str, body: Callable[[], T], kind: type[StoreError] | None = None
    ) -> T:
        """Call ``body`` and give a failure of the database its type, or the one named here."""
        try:
            return body()
        except StoreError as error:
            # One that was made inside, in a transaction that is over by now.
            if classify(error) == "io":
                drop_lost_connection(self.using)
            raise
        except (DjangoError, OSError) as error:
            broken = tells_of_broken_block(error)
            # A broken block quotes what broke it, which is not what happened here.
            code = "unknown" if broken else classify(error)
            if code == "unknown" and not broken:
                # A missing table or a statement that is wrong. The class and the SQLSTATE tell
                # which; the driver's words stay out, since they may quote a row.
                _log.warning(
                    "database operation failed in a way that is no known one",
                    extra={"operation": operation, **describe(error)},
                )
        if code == "io":
            drop_lost_connection(self.using)
        # Raised after the handler: inside it the driver's exception, which quotes the
        # failing row, would travel along as the context.
        raise self._failure(operation, kind or self._kind_of_failure(code), code, broken=broken)

    def _failure(
        self, operation: str, kind: type[StoreError], code: FailureCode, *, broken: bool
    ) -> StoreError:
        detail = self._failure_detail(kind, code)
        in_block = connections[self.using].in_atomic_block
        if code == "busy" and in_block and has_one_writer(self.using):
            detail["hint"] = _READ_BEFORE_WRITE
        if broken:
            detail["hint"] = _BROKEN_BLOCK
        message = f"{self._failed}: {detail['hint']}" if "hint" in detail else self._failed
        error = kind(operation, message, detail)
        error.__cause__ = DatabaseFailure(code)
        return error

    def _failure_detail(self, kind: type[StoreError], code: FailureCode) -> dict[str, DetailValue]:
        """Say in the words of the service's contract how the database failed."""
        return {"category": kind.code, "cause": code}

    def _lock(self, run_id: str) -> LockedRun | None:
        """Lock one run row and read its narrow part."""
        rows = self._lock_query().filter(pk=run_id)
        return next((locked_run(columns) for columns in rows), None)

    def _peek(self, run_id: str) -> LockedRun | None:
        """Read the narrow part of a run row without locking it."""
        rows = Run.objects.using(self.using).filter(pk=run_id).values(*LOCKED_COLUMNS)
        return next((locked_run(columns) for columns in rows), None)

    def _lock_many(self, run_ids: Iterable[str]) -> dict[str, LockedRun]:
        """Lock run rows in ascending id, the lock order of the package."""
        rows = self._lock_query().filter(pk__in=sorted(run_ids)).order_by("pk")
        return {columns["run_id"]: locked_run(columns) for columns in rows}

    def _lock_query(self) -> Any:  # noqa: ANN401 - an unguarded queryset
        # Not FOR UPDATE: that would also block the key-share lock that a child's foreign
        # key takes on its parent.
        return (
            Run.unguarded.using(self.using).select_for_update(no_key=True).values(*LOCKED_COLUMNS)
        )

    def _decide(self, row: LockedRun, lease: Lease, request: Request) -> Decision:
        return self.arbiter.decide(
            row.run_id,
            lease,
            request,
            stale_after_ms=conf.current().lease.stale_after_ms,
        )

    def _apply(
        self,
        operation: str,
        row: LockedRun,
        changes: Mapping[str, Any],
        facts: Sequence[Fact] = (),
    ) -> None:
        """Write the row once and append its facts, under the lock that the caller holds."""
        columns = dict(changes)
        if facts:
            columns["ownership_seq"] = row.ownership_seq + len(facts)
        # The fence in the WHERE is a second lock: a write that lost its row would match nothing.
        written = (
            Run.unguarded.using(self.using).filter(pk=row.run_id, fence=row.fence).update(**columns)
        )
        if written != 1:
            kind = self._kind_of_failure("unknown")
            raise kind(
                operation,
                "guarded update missed the locked row",
                {"run_id": row.run_id, "stage": "write-invariant"},
            )
        if facts:
            self._append_facts(operation, [(row.run_id, row.ownership_seq, facts)])

    def _append_facts(
        self, operation: str, rows: Sequence[tuple[str, int, Sequence[Fact]]]
    ) -> None:
        """Append facts, dated by the store's clock whatever reading the caller brought."""
        if rows:
            append_facts(self.using, rows, self._now(operation))


def lease_columns(lease: Lease) -> dict[str, Any]:
    """Spell a lease as the columns of its row."""
    owner, claim = lease.owner, lease.claim
    return {
        "owner_host_id": owner and owner.host_id,
        "owner_pid": None if owner is None else owner.pid,
        "owner_nonce": owner and owner.nonce,
        "heartbeat_at_ms": lease.heartbeat_at_ms,
        "owner_fence": lease.owner_fence,
        "claim_host_id": claim and claim.host_id,
        "claim_pid": None if claim is None else claim.pid,
        "claim_nonce": claim and claim.nonce,
        "claimed_at_ms": lease.claimed_at_ms,
        "fence": lease.fence,
    }


def classify_claim_loss(row: LockedRun | None, now_ms: int) -> ClaimLoss:
    """Name why a run could not be taken, in the order of spec 4.1."""
    if row is None:
        return NotFound()
    if row.claim is not None:
        return AlreadyClaimed()
    stale_after_ms = conf.current().lease.stale_after_ms
    if (
        row.status == RunStatus.RUNNING
        and row.heartbeat_at_ms is not None
        and row.heartbeat_at_ms >= now_ms - stale_after_ms
    ):
        return HeartbeatFresh()
    return SnapshotChanged()
