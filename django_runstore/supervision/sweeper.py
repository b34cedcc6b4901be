"""The sweeper: looks for what dead processes hold, and takes it back on evidence."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django.db import Error as DjangoError
from django.db import transaction
from django.db.models import Q

from django_runstore import conf
from django_runstore.clocks import boottime_ms, clock_for, takeovers_blocked
from django_runstore.db.failures import classify
from django_runstore.db.lock_wait import limit_lock_wait
from django_runstore.errors import RunNotFound, RunStoreError
from django_runstore.liveness import gather_claim_evidence, gather_evidence
from django_runstore.models import Run
from django_runstore.services import RunStore
from django_runstore.states import RunStatus
from django_runstore.supervision.sweep_report import (
    CLAIMANT_MAY_LIVE,
    CLOCK_MOVED,
    OWNER_MAY_LIVE,
    SweepReport,
)
from django_runstore.supervision.takeover import RunMovedError, clear_claim, take_back

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from django_runstore.clocks import Clock
    from django_runstore.durations import LeaseDurations
    from django_runstore.owners import OwnerId
    from django_runstore.snapshots import RunRow

logger = logging.getLogger("django_runstore.supervision")

PAGE: Final = 200
"""Rows read at once; a sweep goes on until there are no more."""

INTERVALS_UNCHANGED: Final = 2
"""For how many heartbeat intervals a stamp must have stood still before this sweeper's eyes."""

INTERVALS_APART: Final = 4
"""Looks further apart than this are no watching: the sweeper itself was asleep."""

_OWNER: Final = ("owner_host_id", "owner_pid", "owner_nonce", "heartbeat_at_ms", "owner_fence")
_CLAIM: Final = ("claim_host_id", "claim_pid", "claim_nonce", "claimed_at_ms", "fence")


@dataclass(slots=True)
class _Watched:
    stamp: tuple[object, ...]
    since_ms: float
    seen_ms: float


@dataclass(slots=True)
class _Findings:
    """A report in the making."""

    lists: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, name: str, entry: object) -> None:
        self.lists.setdefault(name, []).append(entry)

    def report(self) -> SweepReport:
        return SweepReport(**{name: tuple(found) for name, found in self.lists.items()})


class Sweeper:
    """
    Take back runs and claims of holders that are stale *and* provably gone.

    A row is touched only after this sweeper has itself seen its stamp unchanged for two
    heartbeat intervals, so that neither a clock that jumps nor a lock that was waited for can
    take a run from a live owner. That memory is all the state there is: a sweeper can be
    killed at any moment, and any number may work at once.

    Args:
        using: Database alias.
        observer: Who takes things over, and vouches for the evidence.
        clock: The store's clock by default.
        lease: ``RUNSTORE["LEASE"]`` by default.
        dry_run: Only report what would be done.
        read_boottime_ms: The clock for watching; replaced in tests.
    """

    def __init__(
        self,
        using: str,
        observer: OwnerId,
        clock: Clock | None = None,
        lease: LeaseDurations | None = None,
        *,
        dry_run: bool = False,
        read_boottime_ms: Callable[[], float] = boottime_ms,
    ) -> None:
        self._using = using
        self._observer = observer
        self._clock = clock_for(using) if clock is None else clock
        self._lease = conf.current().lease if lease is None else lease
        self._store = RunStore(using, clock=self._clock)
        self._dry_run = dry_run
        self._read_boottime_ms = read_boottime_ms
        self._watching: dict[tuple[str, str], _Watched] = {}

    def sweep_once(self) -> SweepReport:
        """
        Look at every stale claim and every stale running run once.

        A row that makes trouble is reported and left alone; it does not hold up the rest.

        Raises:
            django.db.Error: the rows could not even be listed.
        """
        findings = _Findings()
        stale_ms = self._clock.now_ms() - self._lease.stale_after_ms
        seen: dict[tuple[str, str], _Watched] = {}
        claims = Q(claim_host_id__isnull=False, claimed_at_ms__lt=stale_ms)
        for row in self._pages(claims, _CLAIM):
            if self._is_ripe("claim", row, _CLAIM, seen, findings):
                self._isolated(row["run_id"], self._sweep_claim, findings)
        owned = Q(status=RunStatus.RUNNING, heartbeat_at_ms__lt=stale_ms)
        for row in self._pages(owned, _OWNER):
            if self._is_ripe("owner", row, _OWNER, seen, findings):
                self._isolated(row["run_id"], self._sweep_run, findings)
        # Whatever was not seen this time has moved, and is forgotten.
        self._watching = seen
        return findings.report()

    def _pages(self, stale: Q, columns: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
        """Walk by id, so that rows which cannot be taken do not hide those behind them."""
        after = ""
        while True:
            with transaction.atomic(using=self._using):
                # A table that a migration has locked must not stop the supervisor's loop.
                limit_lock_wait(self._using, self._lease.heartbeat_interval_ms)
                runs = Run.objects.using(self._using).filter(stale, run_id__gt=after)
                page = list(runs.order_by("run_id").values("run_id", *columns)[:PAGE])
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1]["run_id"]

    def _is_ripe(
        self,
        role: str,
        row: Mapping[str, Any],
        columns: tuple[str, ...],
        seen: dict[tuple[str, str], _Watched],
        findings: _Findings,
    ) -> bool:
        """Watch a stamp; true once it has stood still for long enough before our eyes."""
        key = role, row["run_id"]
        stamp = tuple(row[column] for column in columns)
        now_ms = self._read_boottime_ms()
        interval_ms = self._lease.heartbeat_interval_ms
        watched = self._watching.get(key)
        apart_ms = max(INTERVALS_APART * interval_ms, self._lease.stale_after_ms / 3)
        if watched is None or watched.stamp != stamp or now_ms - watched.seen_ms > apart_ms:
            watched = _Watched(stamp, now_ms, now_ms)
        watched.seen_ms = now_ms
        seen[key] = watched
        if now_ms - watched.since_ms >= INTERVALS_UNCHANGED * interval_ms:
            return True
        findings.add("watched", row["run_id"])
        return False

    def _isolated(
        self, run_id: str, sweep: Callable[[RunRow, _Findings], None], findings: _Findings
    ) -> None:
        try:
            sweep(self._store.get(run_id), findings)
        except RunMovedError as moved:
            findings.add("moved", (run_id, moved.code))
        except RunNotFound:
            findings.add("moved", (run_id, "not_found"))
        except RunStoreError as error:
            findings.add("broken", (run_id, error.code))
        except DjangoError as error:
            findings.add("broken", (run_id, classify(error)))

    def _sweep_claim(self, row: RunRow, findings: _Findings) -> None:
        evidence = gather_claim_evidence(row, self._observer, self._clock)
        if evidence is None:
            findings.add("unproven", (row.run_id, self._why_not(CLAIMANT_MAY_LIVE)))
            return
        if not self._dry_run:
            clear_claim(self._store, row, self._observer, evidence)
        findings.add("claims_cleared", row.run_id)

    def _sweep_run(self, row: RunRow, findings: _Findings) -> None:
        evidence = gather_evidence(row, self._observer, self._clock)
        if evidence is None:
            findings.add("unproven", (row.run_id, self._why_not(OWNER_MAY_LIVE)))
            return
        status = take_back(
            self._store,
            row,
            self._observer,
            evidence,
            max_recoveries=conf.current().max_recoveries,
            lock_timeout_ms=self._lease.heartbeat_interval_ms,
            dry_run=self._dry_run,
        )
        findings.add("put_back" if status == RunStatus.SUSPENDED else str(status), row.run_id)

    def _why_not(self, otherwise: str) -> str:
        return CLOCK_MOVED if takeovers_blocked(self._clock) else otherwise
