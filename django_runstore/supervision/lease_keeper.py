"""
The group pulse of a supervisor: keeps all runs it owns, and says which it has to let go.

Everything about database connections that hang, hooks and deadlines is as for ``Pulse``: one
thread keeps the deadlines and makes no call that can hang. Spec: run-store 7.3 to 7.5.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from django_runstore.clocks import boottime_ms
from django_runstore.outcomes import BatchHeartbeatOutcome, HeartbeatOutcome, Updated
from django_runstore.supervision.background import ThreadedCalls
from django_runstore.supervision.held_runs import Grant, HeldRuns, Lapse
from django_runstore.supervision.lease_watch import Moment
from django_runstore.supervision.pulse_conductor import failure_code

if TYPE_CHECKING:
    from django_runstore.durations import LeaseDurations
    from django_runstore.owners import OwnerId
    from django_runstore.supervision.background import BackgroundCalls, Completion
    from django_runstore.supervision.shared_deadline import SharedDeadlines

logger = logging.getLogger("django_runstore.supervision")

_BEAT: Final = "heartbeat_many"
_RECONFIRM: Final = "reconfirm"


class KeepsLeases(Protocol):
    """What the keeper needs of a store; ``RunStore`` has it."""

    def heartbeat_many(
        self, owner: OwnerId, runs: Sequence[tuple[str, int]], now_ms: int | None = None
    ) -> Mapping[str, BatchHeartbeatOutcome]:
        """Beat for many runs without waiting for a row lock."""
        ...

    def reconfirm(
        self, run_id: str, owner: OwnerId, now_ms: int | None = None, *, fence: int | None = None
    ) -> HeartbeatOutcome:
        """Renew an ownership that nobody has begun to take over."""
        ...


class LeaseKeeper:
    """
    Beat for all held runs with one statement per interval, from ``start()`` to ``stop()``.

    A run counts as confirmed for the write tolerance after the reading of its last written
    beat. Past that it is reconfirmed, within one interval; else it lapses. A process that was
    stopped for longer than the tolerance therefore finds nothing confirmed until it has
    asked: whoever acts for a run asks ``confirmed()`` before.

    Args:
        store: Its clock stamps the beats; the deadlines are kept by ``CLOCK_BOOTTIME``.
        on_lost: Called with run id and fence: another owner has the run, or it is gone. Also
            for a run whose owner has settled it and not dropped it yet.
        on_lapsed: Called with run id, fence and the unconfirmed milliseconds.
        deadlines: Where the workers read how long each run is confirmed.
        background: Where calls are made that may hang; replaced in tests.
        read_boottime_ms: The clock of the deadlines; replaced in tests.

    The callbacks come from the keeper's thread and hold up the pulse: hand on, do not work.
    A run that was lost or has lapsed is not held any more when they are called.
    """

    def __init__(
        self,
        store: KeepsLeases,
        owner: OwnerId,
        lease: LeaseDurations,
        *,
        on_lost: Callable[[str, int], object],
        on_lapsed: Callable[[str, int, int], object],
        deadlines: SharedDeadlines | None = None,
        background: BackgroundCalls | None = None,
        read_boottime_ms: Callable[[], float] = boottime_ms,
    ) -> None:
        self._store = store
        self._owner = owner
        self._lease = lease
        self._on_lost = on_lost
        self._on_lapsed = on_lapsed
        self._deadlines = deadlines
        self._calls: BackgroundCalls = ThreadedCalls() if background is None else background
        self._read_boottime_ms = read_boottime_ms
        self._lock = threading.Lock()
        self._held = HeldRuns(lease)
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self.run, name="runstore-keeper", daemon=True)
        # Of the keeper's thread alone:
        self._last_beat = self._now()
        self._beat_under_way: tuple[Moment, list[Grant]] | None = None
        self._asked: tuple[Moment, Grant] | None = None
        self._failing_since: Moment | None = None
        self._is_late = False

    # --- for any thread ---------------------------------------------------------

    def start(self) -> None:
        """Begin to beat, in a thread and over a database connection of its own."""
        self._thread.start()

    def stop(self) -> None:
        """End the pulse and close its connections. What is held is not given back."""
        self._is_stopping.set()
        self._calls.wake()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def is_alive(self) -> bool:
        """Tell whether the pulse goes on."""
        return self._thread.is_alive()

    def hold(
        self,
        run_id: str,
        fence: int,
        slot: int | None = None,
        *,
        confirmed_at_ms: float | None = None,
    ) -> None:
        """
        Beat for a run from now on, in place of an earlier grant of it.

        Args:
            slot: Where its deadline is published; not used by another held run.
            confirmed_at_ms: ``boottime_ms()`` as read *before* the call that claimed the run,
                from when it is confirmed. By default now, which is too late by the time that
                the claim took.
        """
        grant = Grant(run_id, fence)
        ms = self._read_boottime_ms() if confirmed_at_ms is None else confirmed_at_ms
        with self._lock:
            self._held.hold(grant, slot, Moment(ms, ms))
            self._publish([grant])
        self._calls.wake()

    def drop(self, run_id: str, fence: int | None = None) -> None:
        """Beat no more for a run, or for that grant of it; neither is it reported any more."""
        with self._lock:
            self._held.drop(run_id, fence)

    def held(self) -> tuple[Grant, ...]:
        """List run id and fence of what is held."""
        with self._lock:
            return tuple(self._held)

    def confirmed(self, run_id: str, fence: int) -> bool:
        """Tell whether the run may be acted for: held under this fence, and confirmed by now."""
        with self._lock:
            return self._held.is_confirmed(Grant(run_id, fence), self._now())

    def all_confirmed(self) -> bool:
        """Tell whether nothing that is held awaits a confirmation, so that more may be claimed."""
        with self._lock:
            return self._held.are_all_confirmed(self._now())

    # --- the keeper's thread ----------------------------------------------------

    def run(self) -> None:
        """Beat until ``stop()``; what the thread does."""
        try:
            while not self._is_stopping.is_set():
                now = self._now()
                self._give_up(now)
                self._replace_hanging_beat(now)
                self._beat_if_due(now)
                self._reconfirm_next(now)
                ended = self._calls.wait(self._nap_ms(now))
                if ended is not None:
                    self._take(ended)
        finally:
            self._calls.close(patience_ms=self._lease.heartbeat_interval_ms)

    def _now(self) -> Moment:
        ms = self._read_boottime_ms()
        return Moment(ms, ms)

    def _nap_ms(self, now: Moment) -> float:
        with self._lock:
            nap_ms = self._held.next_deadline_in_ms(now)
        if self._beat_under_way is None:
            nap_ms = min(nap_ms, self._beat_due_in_ms(now))
        return max(0.0, nap_ms)

    def _beat_due_in_ms(self, now: Moment) -> float:
        return self._lease.heartbeat_interval_ms - now.since(self._last_beat)

    def _give_up(self, now: Moment) -> None:
        with self._lock:
            lapsed = self._held.give_up(now)
            self._held.expire(now)
        self._give_up_asking(now, {lapse.grant for lapse in lapsed})
        for lapse in lapsed:
            self._report_lapse(lapse)

    def _give_up_asking(self, now: Moment, lapsed: set[Grant]) -> None:
        if self._asked is None:
            return
        sent, grant = self._asked
        # A grant that was dropped meanwhile does not lapse; its call may hang all the same.
        if grant in lapsed or now.since(sent) >= self._lease.heartbeat_interval_ms:
            self._calls.abandon(_RECONFIRM)
            self._asked = None

    def _replace_hanging_beat(self, now: Moment) -> None:
        if self._beat_under_way is None:
            return
        sent, grants = self._beat_under_way
        if now.since(sent) < self._lease.write_tolerance_ms:
            return
        # Over a dead connection it may hang for hours, and the next one be answered at once.
        logger.warning(
            "run heartbeat hangs; trying another connection",
            extra={"runs": len(grants), "hanging_ms": math.floor(now.since(sent))},
        )
        self._calls.abandon(_BEAT)
        self._beat_under_way = None

    def _beat_if_due(self, now: Moment) -> None:
        late_ms = -self._beat_due_in_ms(now)
        if self._beat_under_way is not None or late_ms < 0:
            return
        self._last_beat = now
        with self._lock:
            grants, runs = self._held.to_beat(), len(self._held)
        self._watch_lateness(late_ms, runs)
        if grants:
            pairs = [(grant.run_id, grant.fence) for grant in grants]
            self._beat_under_way = (now, grants)
            self._calls.start(_BEAT, lambda: self._store.heartbeat_many(self._owner, pairs))

    def _watch_lateness(self, late_ms: float, runs: int) -> None:
        was_late = self._is_late
        self._is_late = late_ms > self._lease.heartbeat_interval_ms
        if runs and self._is_late and not was_late:
            logger.warning(
                "run pulse was late", extra={"runs": runs, "late_ms": math.floor(late_ms)}
            )

    def _reconfirm_next(self, now: Moment) -> None:
        if self._asked is not None:
            return
        with self._lock:
            grant = self._held.next_to_reconfirm()
        if grant is not None:
            self._asked = (now, grant)
            self._calls.start(
                _RECONFIRM,
                lambda: self._store.reconfirm(grant.run_id, self._owner, fence=grant.fence),
            )

    def _take(self, ended: Completion) -> None:
        if ended.lane == _BEAT and self._beat_under_way is not None:
            sent, grants = self._beat_under_way
            self._beat_under_way = None
            if isinstance(ended.value, Mapping):
                self._take_beats(sent, grants, ended.value)
            else:
                self._take_failed_beats(sent, grants, ended.error)
        elif ended.lane == _RECONFIRM and self._asked is not None:
            sent, grant = self._asked
            self._asked = None
            self._take_reconfirmation(sent, grant, ended)

    def _take_beats(
        self, sent: Moment, grants: Sequence[Grant], answers: Mapping[str, object]
    ) -> None:
        now = self._now()
        with self._lock:
            beaten = self._held.beats_answered(sent, grants, answers, now)
            self._publish(beaten.confirmed)
        if self._failing_since is not None:
            outage_ms = math.floor(now.since(self._failing_since))
            self._failing_since = None
            logger.info("run heartbeat write recovered", extra={"outage_ms": outage_ms})
        for grant, unconfirmed_ms in beaten.long_unconfirmed:
            logger.warning(
                "run heartbeat is passed over; its row stays locked",
                extra={"run_id": grant.run_id, "unconfirmed_ms": unconfirmed_ms},
            )
        for grant in beaten.lost:
            self._call(self._on_lost, *grant)

    def _take_failed_beats(
        self, sent: Moment, grants: Sequence[Grant], error: BaseException | None
    ) -> None:
        if self._failing_since is None:
            self._failing_since = sent
            logger.warning(
                "run heartbeat write failed",
                extra={"runs": len(grants), "code": failure_code(error)},
            )

    def _take_reconfirmation(self, sent: Moment, grant: Grant, ended: Completion) -> None:
        now = self._now()
        if isinstance(ended.value, Updated):
            with self._lock:
                is_held = self._held.reconfirmed(grant, sent, now)
                self._publish([grant])
            if is_held:
                logger.info("run lease reconfirmed", extra={"run_id": grant.run_id})
            return
        with self._lock:
            lapse = self._held.not_reconfirmed(grant)
        if lapse is not None:
            self._report_lapse(lapse)

    def _report_lapse(self, lapse: Lapse) -> None:
        logger.warning(
            "run lease lapsed; interrupting owned work",
            extra={"run_id": lapse.grant.run_id, "unconfirmed_ms": lapse.unconfirmed_ms},
        )
        self._call(self._on_lapsed, *lapse.grant, lapse.unconfirmed_ms)

    def _publish(self, grants: Sequence[Grant]) -> None:
        """Tell the workers, under the lock: a slot may be given to another run any time."""
        if self._deadlines is None:
            return
        for grant in grants:
            published = self._held.slot_and_deadline(grant)
            if published is not None:
                slot, until_ms = published
                self._deadlines.publish(slot, *grant, until_ms)

    def _call(self, callback: Callable[..., object], *arguments: str | int) -> None:
        try:
            callback(*arguments)
        except Exception as error:  # noqa: BLE001 - the pulse of the other runs goes on
            logger.error(  # noqa: TRY400 - a traceback shows values of the host
                "run lease callback failed",
                extra={"run_id": arguments[0], "code": failure_code(error)},
            )
