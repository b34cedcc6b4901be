"""
The runs a supervisor owns, and how long each is confirmed: decisions without threads or I/O.

The group form of ``pulse_machine``, with one difference: a beat that turns out to have been
written while its run is being reconfirmed is a confirmation too, and ends the matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from django_runstore.outcomes import FenceLost, NotFound, Unconfirmed, Updated
from django_runstore.supervision.lease_watch import LeaseWatch, Moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from django_runstore.durations import LeaseDurations

_LONG_PART_OF_STALE_AFTER: Final = 3


class Grant(NamedTuple):
    """One ownership of one run. The same run may come back later under another fence."""

    run_id: str
    fence: int


class Lapse(NamedTuple):
    """An ownership that could not be confirmed in time."""

    grant: Grant
    unconfirmed_ms: int


@dataclass(frozen=True, slots=True)
class Beaten:
    """What a group heartbeat came to."""

    confirmed: tuple[Grant, ...]
    lost: tuple[Grant, ...]
    long_unconfirmed: tuple[Lapse, ...]
    """Passed over for so long by now that somebody should know; told once each."""


@dataclass(slots=True)
class _Held:
    grant: Grant
    slot: int | None
    watch: LeaseWatch
    overdue_since: Moment | None = None
    unconfirmed_ms: int = 0
    is_asked: bool = False
    is_long_unconfirmed: bool = False

    def confirm(self, sent: Moment, now: Moment) -> None:
        self.watch.confirm(sent)
        self.is_long_unconfirmed = False
        if not self.watch.is_overdue(now):
            self.overdue_since = None
            self.is_asked = False


class HeldRuns:
    """Which runs are held, by run id. Its owner sees to it that one thread uses it at a time."""

    def __init__(self, lease: LeaseDurations) -> None:
        self._lease = lease
        self._runs: dict[str, _Held] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Grant]:
        return iter([held.grant for held in self._runs.values()])

    def hold(self, grant: Grant, slot: int | None, confirmed: Moment) -> None:
        """Begin to watch an ownership, in place of an earlier one of the same run."""
        self._runs[grant.run_id] = _Held(grant, slot, LeaseWatch(self._lease, confirmed))

    def drop(self, run_id: str, fence: int | None = None) -> None:
        """Watch no more; nothing happens when the run, or that grant of it, is not held."""
        held = self._runs.get(run_id)
        if held is not None and fence in {None, held.grant.fence}:
            del self._runs[run_id]

    def is_confirmed(self, grant: Grant, now: Moment) -> bool:
        """Tell whether this very grant is held and within its write tolerance."""
        held = self._find(grant)
        return held is not None and not held.watch.is_overdue(now)

    def are_all_confirmed(self, now: Moment) -> bool:
        """Tell whether nothing that is held awaits a confirmation."""
        return not any(held.watch.is_overdue(now) for held in self._runs.values())

    def slot_and_deadline(self, grant: Grant) -> tuple[int, float] | None:
        """Tell where and until when the grant counts as confirmed; None without a slot."""
        held = self._find(grant)
        if held is None or held.slot is None:
            return None
        confirmed_at_ms = held.watch.last_confirmed.boottime_ms
        return held.slot, confirmed_at_ms + self._lease.write_tolerance_ms

    def expire(self, now: Moment) -> None:
        """Put aside what has used up its tolerance: it is reconfirmed and not beaten for."""
        for held in self._runs.values():
            if held.overdue_since is None and held.watch.is_overdue(now):
                held.overdue_since = now
                held.unconfirmed_ms = held.watch.unconfirmed_ms(now)

    def to_beat(self) -> list[Grant]:
        """List what a beat is to be sent for."""
        return [held.grant for held in self._runs.values() if held.overdue_since is None]

    def next_to_reconfirm(self) -> Grant | None:
        """Name a grant to ask for, each once."""
        for held in self._runs.values():
            if held.overdue_since is not None and not held.is_asked:
                held.is_asked = True
                return held.grant
        return None

    def beats_answered(
        self, sent: Moment, grants: Iterable[Grant], answers: Mapping[str, object], now: Moment
    ) -> Beaten:
        """
        Take the answers of a group heartbeat, and forget what was lost.

        Answers about grants that are not held any more say nothing.
        """
        confirmed, lost, long_unconfirmed = [], [], []
        for grant in grants:
            held = self._find(grant)
            if held is None:
                continue
            match answers.get(grant.run_id, Unconfirmed()):
                case Updated():
                    held.confirm(sent, now)
                    confirmed.append(grant)
                case FenceLost() | NotFound():
                    del self._runs[grant.run_id]
                    lost.append(grant)
                case _:
                    if self._is_news(held, now):
                        long_unconfirmed.append(Lapse(grant, held.watch.unconfirmed_ms(now)))
        return Beaten(tuple(confirmed), tuple(lost), tuple(long_unconfirmed))

    def reconfirmed(self, grant: Grant, sent: Moment, now: Moment) -> bool:
        """Take a reconfirmation as granted; False when the grant is not held any more."""
        held = self._find(grant)
        if held is None:
            return False
        # A stop during the call may have used up the tolerance again: then it is asked anew.
        held.overdue_since = None
        held.is_asked = False
        held.confirm(sent, now)
        return True

    def not_reconfirmed(self, grant: Grant) -> Lapse | None:
        """Take a reconfirmation as refused or failed, and forget the run."""
        held = self._find(grant)
        if held is None or held.overdue_since is None:
            return None
        del self._runs[grant.run_id]
        return Lapse(grant, held.unconfirmed_ms)

    def give_up(self, now: Moment) -> list[Lapse]:
        """Forget what was not reconfirmed within one interval."""
        lapsed = [
            Lapse(held.grant, held.unconfirmed_ms)
            for held in self._runs.values()
            if held.overdue_since is not None and self._patience_ms(held.overdue_since, now) <= 0
        ]
        for lapse in lapsed:
            del self._runs[lapse.grant.run_id]
        return lapsed

    def next_deadline_in_ms(self, now: Moment) -> float:
        """Tell in how many milliseconds something has to be decided, at most an interval."""
        deadlines = [
            held.watch.remaining_ms(now)
            if held.overdue_since is None
            else self._patience_ms(held.overdue_since, now)
            for held in self._runs.values()
        ]
        return max(0.0, min([self._lease.heartbeat_interval_ms, *deadlines]))

    def _find(self, grant: Grant) -> _Held | None:
        held = self._runs.get(grant.run_id)
        return held if held is not None and held.grant == grant else None

    def _patience_ms(self, overdue_since: Moment, now: Moment) -> float:
        return self._lease.heartbeat_interval_ms - now.since(overdue_since)

    def _is_news(self, held: _Held, now: Moment) -> bool:
        long_ms = self._lease.stale_after_ms / _LONG_PART_OF_STALE_AFTER
        is_long = held.watch.unconfirmed_ms(now) > long_ms
        is_news = is_long and not held.is_long_unconfirmed
        held.is_long_unconfirmed = is_long
        return is_news
