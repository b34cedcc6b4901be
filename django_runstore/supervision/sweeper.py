"""
The sweeper: take back what dead owners left, on evidence, and nothing else.

Stateless apart from what it has seen: it may be killed at any moment, and any number of
them may run side by side. How long a run has been running never matters.
"""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING, Final

from django_runstore import conf
from django_runstore.clocks import takeovers_blocked
from django_runstore.display_text import printable
from django_runstore.services import RunStore
from django_runstore.supervision.examination import Examiner
from django_runstore.supervision.sightings import Window
from django_runstore.supervision.stale_rows import Page, stale_claims, stale_running
from django_runstore.supervision.sweep_report import (
    NEEDS_A_PERSON,
    TAKEN,
    HeldAs,
    SweepAnswer,
    SweepReport,
    SweptRun,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_runstore.clocks import Clock
    from django_runstore.durations import LeaseDurations
    from django_runstore.owners import OwnerId
    from django_runstore.supervision.sightings import Sighting

logger = logging.getLogger("django_runstore.supervision")

INTERVALS_UNCHANGED: Final = 2
"""For how many heartbeat intervals a stale stamp has to be seen unchanged."""

LARGEST_WINDOW: Final = 500
"""How many stale claims, and as many stale runs, one sweep looks at."""


def monotonic_ms() -> float:
    """
    Read a clock that stands still while the machine sleeps, in milliseconds.

    On purpose: time in which neither this process nor an owner beside it could do anything
    proves nothing. Leases are measured by the other one, ``clocks.boottime_ms()``.
    """
    return time.monotonic() * 1000


class Sweeper:
    """
    Looks for stale claims and stale running runs, and takes them from holders that are dead.

    A row is taken only when its stamp is stale, *and* this sweeper has itself seen it
    unchanged for two heartbeat intervals, *and* every liveness check calls its holder dead.
    So neither a clock that jumps nor a queue for a lock takes a run from a living owner.
    Keep one sweeper and call ``sweep_once()`` about once per interval; the first call can
    only watch.

    Args:
        using: Database alias.
        observer: Who looks; the takeovers are made, for one transaction, in its name.
        clock: What stamps are compared with; by default the store's.
        lease: The durations; by default ``RUNSTORE["LEASE"]``.
        store: By default one over ``using`` and ``clock``.
        dry_run: Write nothing, and only say what would be done.
        window: How many rows of each kind one sweep looks at, which also bounds its memory.
        read_ms: The clock of the observations; replaced in tests.

    Example::

        sweeper = Sweeper("default", OwnerId.for_this_process())
        while not stopping.wait(1):
            for swept in sweeper.sweep_once().taken:
                print(swept.run_id, swept.answer, swept.reason)
    """

    def __init__(
        self,
        using: str,
        observer: OwnerId,
        clock: Clock | None = None,
        lease: LeaseDurations | None = None,
        store: RunStore | None = None,
        *,
        dry_run: bool = False,
        window: int = LARGEST_WINDOW,
        read_ms: Callable[[], float] = monotonic_ms,
    ) -> None:
        self._store = RunStore(using, clock=clock) if store is None else store
        self._using = using
        self._clock = self._store.clock if clock is None else clock
        self._lease = conf.current().lease if lease is None else lease
        self._dry_run = dry_run
        self._read_ms = read_ms
        self._claims = Window(window)
        self._runs = Window(window)
        self._examiner = Examiner(
            self._store,
            observer,
            self._clock,
            lock_wait_ms=self._lease.heartbeat_interval_ms,
            dry_run=dry_run,
        )

    @property
    def patience_ms(self) -> int:
        """How long a stale row has to be seen unchanged, in milliseconds."""
        return INTERVALS_UNCHANGED * self._lease.heartbeat_interval_ms

    def sweep_once(self) -> SweepReport:
        """
        Look once at claims and running runs, and take what can be taken.

        Each row is judged by itself: one that cannot be read, or whose check fails, is in
        the report and keeps no other from being looked after. A lost race is in the report
        too.

        Raises:
            RunPersistenceFailed, django.db.Error, OSError: the database is away or stays
                busy. What was taken until then is taken; observation begins anew.
        """
        self._examiner.begin()
        try:
            # Read before asking about jumps: reading is what discovers one.
            self._clock.now_ms()
            if takeovers_blocked(self._clock):
                self._forget()
                return SweepReport(takeovers_blocked=True, dry_run=self._dry_run)
            # Claims first: a claim whose holder died in the middle of a takeover keeps the
            # run below it from being taken.
            swept = [*self._sweep(self._claims, "claim"), *self._sweep(self._runs, "ownership")]
        except Exception:
            # A database that stalls for this process may stall for the owners too.
            self._forget()
            raise
        return SweepReport(tuple(swept), has_more=not self._is_round(), dry_run=self._dry_run)

    def _is_round(self) -> bool:
        """Tell whether a round over all stale rows ends here, and begin the next one if so."""
        windows = (self._claims, self._runs)
        is_round = all(window.has_been_round for window in windows)
        if is_round:
            for window in windows:
                window.has_been_round = False
        return is_round

    def _forget(self) -> None:
        self._claims.forget()
        self._runs.forget()

    def _sweep(self, window: Window, held_as: HeldAs) -> list[SweptRun]:
        now_ms = math.floor(self._clock.now_ms())
        page = Page(
            self._using,
            after=window.after,
            size=window.size,
            stale_before_ms=now_ms - self._lease.stale_after_ms,
            lock_wait_ms=self._lease.heartbeat_interval_ms,
        )
        began_ms = self._read_ms()
        is_claim = held_as == "claim"
        rows = stale_claims(page) if is_claim else stale_running(page)
        ended_ms = self._read_ms()
        window.look(rows, began_ms, ended_ms)
        examine = self._examiner.claim if is_claim else self._examiner.run
        swept: list[SweptRun] = []
        for sighting in window.sightings():
            if window.unchanged_ms(sighting) < self.patience_ms:
                answer, reason = SweepAnswer.WATCHED, "not yet seen unchanged for long enough"
            else:
                answer, reason = examine(sighting.row)
                sighting.is_examined = True
            swept.append(self._report(sighting, held_as, answer, reason, now_ms))
        window.move_on()
        return swept

    def _report(
        self,
        sighting: Sighting,
        held_as: HeldAs,
        answer: SweepAnswer,
        reason: str,
        now_ms: int,
    ) -> SweptRun:
        """Put the row into the report, and into the log when there is something new to say."""
        row = sighting.row
        swept = SweptRun(
            row.run_id, held_as, answer, row.holder.describe(), now_ms - row.stamp_ms, reason
        )
        if answer not in {SweepAnswer.WATCHED, sighting.said} and not self._dry_run:
            sighting.said = answer
            level = logging.WARNING if answer in TAKEN | NEEDS_A_PERSON else logging.INFO
            logger.log(
                level,
                "run %s: %s",
                printable(row.run_id),
                swept.describe(),
                extra={"run_id": row.run_id, "answer": str(answer)},
            )
        return swept
