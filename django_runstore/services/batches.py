"""Claim many runs and beat for many, each as a set: what a supervisor does all day."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from django.db.models import F, Q
from django.db.models.functions import Coalesce

from django_runstore import conf
from django_runstore.arbiters import DatabaseArbiter
from django_runstore.arbiters.lease import AskActivate, AskClaim, Granted
from django_runstore.db import pulse_statements
from django_runstore.db.backends import has_one_writer, skips_locked_rows
from django_runstore.db.boundary import MOST_ATTEMPTS, is_nested
from django_runstore.db.concurrency import FULL_KEYS
from django_runstore.db.lock_wait import limit_lock_wait
from django_runstore.errors import RunDecodeFailed
from django_runstore.metrics import tallies
from django_runstore.models import Run
from django_runstore.outcomes import (
    BatchHeartbeatOutcome,
    FenceLost,
    NotFound,
    Unconfirmed,
    Updated,
)
from django_runstore.owners import OwnerId
from django_runstore.rows import decode_run
from django_runstore.services import arguments, door
from django_runstore.services.concurrency import Concurrency
from django_runstore.services.facts import Fact
from django_runstore.services.leasing import Leasing
from django_runstore.services.locked_run import LOCKED_COLUMNS, LockedRun, locked_run
from django_runstore.services.twin import twin
from django_runstore.services.waits import NOT_WAITING
from django_runstore.snapshots import ClaimedRun, RunRow
from django_runstore.states import CLAIMABLE_STATUSES, RunStatus

_log = logging.getLogger("django_runstore.services")

LARGEST_CLAIM: Final = 1_000
_PAIR: Final = 2
_CLAIM_ATTEMPTS: Final = 2

_ANSWERS: Final[Mapping[pulse_statements.Beat, BatchHeartbeatOutcome]] = {
    "beaten": Updated(),
    "held": Unconfirmed(),
    "lost": FenceLost(),
    "missing": NotFound(),
}


class Batches(Leasing):
    """Set-based twins of ``claim_and_own`` and ``heartbeat``."""

    @door.operation(tallies.claims_of_many)
    def claim_many(
        self,
        owner: OwnerId,
        limit: int,
        *,
        queues: Sequence[str] | None = None,
        handlers: Sequence[str] | dict[str, int] | None = None,
        now_ms: int | None = None,
        code_version: str = "",
    ) -> tuple[ClaimedRun, ...]:
        """
        Own up to ``limit`` runs that are due, the highest priority and the longest due first.

        A step of priority counts like a minute of having been due longer, so that runs of a
        low priority have their turn too.

        Runs that another transaction has locked are passed over, not waited for, and a lock of
        the whole table is waited for one heartbeat interval, twice. Clears what
        a suspended run was waiting for. Three statements for any number of runs, and two more
        for those with a concurrency key, which are passed over while their limit is reached.

        Args:
            limit: 1 to 1,000.
            queues: Only these queues; ``None`` for all.
            handlers: Only runs of these handlers; ``None`` for all. A run whose handler
                nobody here knows stays untouched for a process that knows it. Given as a
                dict, it names for each handler the newest state version that it reads, and
                runs with a newer state stay untouched as well.
            code_version: Recorded on the claimed runs, to tell old code from new.

        Returns:
            The claimed runs with their fences; pass the fence to every write.
        """
        operation = "claim_many"
        holder = arguments.owner(operation, owner)
        most = arguments.limit(operation, limit, LARGEST_CLAIM)
        served = arguments.texts(operation, queues, "queues")
        readable = _readable_by(operation, handlers)
        reading = self._reading(operation, now_ms, {})
        version = arguments.label(operation, code_version, "code_version")
        door.note(owner_host_id=holder.host_id)

        def body() -> tuple[ClaimedRun, ...]:
            if not nested:
                limit_lock_wait(self.using, conf.current().lease.heartbeat_interval_ms)
            at_ms = reading()
            due, refused = self._due(served, readable, at_ms), set[str]()
            concurrency = Concurrency(self.using)
            granted: list[tuple[LockedRun, RunRow, int]] = []
            while (wanted := most - len(granted)) > 0:
                open_to_all = due.exclude(concurrency_key__in=concurrency.closed)
                candidates = list(open_to_all.exclude(pk__in=refused)[:wanted])
                concurrency.look_at(candidates)
                for run in candidates:
                    # Whatever is not granted is left out of the next look, so that a row
                    # that cannot be read at the head of the queue does not block the rest.
                    refused.add(run.run_id)
                    if not concurrency.admits(run):
                        continue
                    if grant := self._grant(operation, run, holder, at_ms):
                        granted.append(grant)
                        concurrency.granted(run)
                if len(candidates) < wanted:
                    break
            self._install(holder, granted, at_ms, version)
            return tuple(
                ClaimedRun(_as_owned(row, holder, fence, at_ms, version), fence)
                for _, row, fence in granted
            )

        nested = is_nested(self.using)
        # What is waited for here is a lock of the whole table. The next poll is the retry, and
        # who claims has signals to answer. Where there is one lock for all writers, to be
        # passed over by a few of them says nothing.
        attempts = MOST_ATTEMPTS if has_one_writer(self.using) else _CLAIM_ATTEMPTS
        return self._write(operation, body, attempts=attempts)

    def _due(self, queues: tuple[str, ...] | None, readable: Q, now_ms: int) -> Any:  # noqa: ANN401 - an unguarded queryset
        """Lock what is due, in the order it is to be taken."""
        served = Q() if queues is None else Q(queue__in=queues)
        return (
            Run.unguarded.using(self.using)
            .select_for_update(no_key=True, skip_locked=skips_locked_rows(self.using))
            .filter(
                served,
                readable,
                Q(concurrency_key="") | ~Q(concurrency_key__in=FULL_KEYS),
                claim_host_id__isnull=True,
                status__in=CLAIMABLE_STATUSES,
                available_at_ms__lte=now_ms,
            )
            .order_by("claim_order_ms", "available_at_ms", "run_id")
        )

    def _grant(
        self, operation: str, run: Run, owner: OwnerId, now_ms: int
    ) -> tuple[LockedRun, RunRow, int] | None:
        """Ask the arbiter for one run; None when it refuses or the row cannot be read."""
        try:
            row = decode_run(operation, run)
        except RunDecodeFailed:
            _log.warning("run row cannot be decoded; left alone", extra={"run_id": run.run_id})
            return None
        locked = locked_run({name: getattr(run, name) for name in LOCKED_COLUMNS})
        claimed = self._decide(locked, locked.lease, AskClaim(owner, now_ms))
        if not isinstance(claimed.answer, Granted):
            return None
        active = self._decide(locked, claimed.lease, AskActivate(owner, now_ms, now_ms))
        if not isinstance(active.answer, Granted):
            return None
        return locked, row, active.answer.fence

    def _install(
        self,
        owner: OwnerId,
        granted: Sequence[tuple[LockedRun, RunRow, int]],
        now_ms: int,
        code_version: str,
    ) -> None:
        """Write rows and facts. The fence rises by one for all, unless an arbiter skipped some."""
        for rise in sorted({fence - locked.fence for locked, _, fence in granted}):
            chosen = [locked.run_id for locked, _, fence in granted if fence - locked.fence == rise]
            Run.unguarded.using(self.using).filter(pk__in=chosen).update(
                status=RunStatus.RUNNING,
                owner_host_id=owner.host_id,
                owner_pid=owner.pid,
                owner_nonce=owner.nonce,
                heartbeat_at_ms=now_ms,
                fence=F("fence") + rise,
                owner_fence=F("fence") + rise,
                started_at_ms=Coalesce(F("started_at_ms"), now_ms),
                finished_at_ms=None,
                code_version=code_version,
                ownership_seq=F("ownership_seq") + 2,
                **NOT_WAITING,
            )
        facts = [
            (
                locked.run_id,
                locked.ownership_seq,
                (Fact("claimed", owner, now_ms, fence), Fact("activated", owner, now_ms, fence)),
            )
            for locked, _, fence in granted
        ]
        self._append_facts("claim_many", facts)

    @door.operation(tallies.heartbeats_of_many)
    def heartbeat_many(
        self,
        owner: OwnerId,
        runs: Sequence[tuple[str, int]],
        now_ms: int | None = None,
    ) -> dict[str, BatchHeartbeatOutcome]:
        """
        Beat for many runs in one statement that waits for no row lock.

        Args:
            runs: Pairs of run id and fence, each run once.
            now_ms: As in ``heartbeat``.

        Returns:
            Per run id ``Updated``, ``FenceLost`` or ``NotFound`` as ``heartbeat`` answers, or
            ``Unconfirmed``: somebody had the row locked; it was neither renewed nor refused.
        """
        operation = "heartbeat_many"
        holder = arguments.owner(operation, owner)
        pairs = _pairs(operation, runs)
        reading = self._reading(operation, now_ms, {})
        door.note(owner_host_id=holder.host_id)
        if not pairs:
            return {}
        if not isinstance(self.arbiter, DatabaseArbiter):
            # Only a lease that is the row itself may be renewed without asking the arbiter.
            return {
                run_id: self._beat(operation, run_id, holder, reading, fence, unclaimed=False)
                for run_id, fence in pairs
            }

        def body() -> dict[str, BatchHeartbeatOutcome]:
            if not nested:
                pulse_statements.begin_pulse(self.using, conf.current().lease.heartbeat_interval_ms)
            at_ms = reading()
            answers: dict[str, BatchHeartbeatOutcome] = {}
            for start in range(0, len(pairs), pulse_statements.MOST_RUNS):
                part = pairs[start : start + pulse_statements.MOST_RUNS]
                beats = pulse_statements.beat_many(self.using, holder, part, at_ms)
                answers.update((run_id, _ANSWERS[beat]) for run_id, beat in beats.items())
            return answers

        nested = is_nested(self.using)
        # Not replayed when the database is busy: the next pulse is the retry, and carries a
        # fresh reading.
        return self._write(operation, body, attempts=1)

    aclaim_many = twin(claim_many)
    aheartbeat_many = twin(heartbeat_many)


def _readable_by(operation: str, handlers: object) -> Q:
    """Admit the handlers of a claim: which runs can be executed at all."""
    # Compared by identity, as in arguments: iterating anything else runs its code.
    if type(handlers) is not dict:
        names = arguments.texts(operation, handlers, "handlers")
        return Q() if names is None else Q(handler__in=names)
    by_version: dict[int, list[str]] = {}
    for name in arguments.texts(operation, list(handlers), "handlers") or ():
        version = arguments.timestamp(operation, handlers[name], "handlers")
        by_version.setdefault(version, []).append(name)
    readable = Q(pk__in=())
    for version, names_of_it in sorted(by_version.items()):
        readable |= Q(handler__in=names_of_it, state_version__lte=version)
    return readable


def _pairs(operation: str, value: object) -> list[tuple[str, int]]:
    admitted: dict[str, int] = {}
    for member in arguments.members(operation, value, "runs"):
        pair = arguments.members(operation, member, "runs")
        if len(pair) != _PAIR:
            arguments.refuse(operation, "runs", "must hold pairs of run id and fence")
        run_id = arguments.text(operation, pair[0])
        fence = arguments.fence(operation, pair[1])
        if fence is None:
            arguments.refuse(operation, "fence", "must be given in a batch")
        if run_id in admitted:
            arguments.refuse(operation, "runs", "must name each run once")
        admitted[run_id] = fence
    return list(admitted.items())


def _as_owned(row: RunRow, owner: OwnerId, fence: int, now_ms: int, code_version: str) -> RunRow:
    """Show the row as the statement left it."""
    return replace(
        row,
        status=RunStatus.RUNNING,
        owner=owner,
        heartbeat_at_ms=now_ms,
        fence=fence,
        owner_fence=fence,
        started_at_ms=now_ms if row.started_at_ms is None else row.started_at_ms,
        finished_at_ms=None,
        code_version=code_version,
        **NOT_WAITING,
    )
