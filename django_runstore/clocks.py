"""
Clocks: where the store reads the time, and which clock a database gets.

Leases compare stamps that several hosts wrote, so on a server database everybody reads
the server's time. Nothing measures a *duration* with these clocks: an interval inside one
process is a difference of two ``boottime_ms()`` readings.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, runtime_checkable

from django.core.signals import setting_changed
from django.db import OperationalError
from django.utils.module_loading import import_string

from django_runstore import conf
from django_runstore.server_time import ServerReading, has_server_time, read_server_time

logger = logging.getLogger(__name__)

RESAMPLE_AFTER_MS: Final = 30_000
"""How long a sample of the database's time is carried before the next one is taken."""

SLOW_ROUND_TRIP_MS: Final = 1_000
"""A round trip longer than this tells too little: the reading may be off by half of it."""

RETRY_SAMPLE_AFTER_MS: Final = 1_000
"""Pause after a sample that failed or was too slow, while the last good one is carried on."""

FIRST_SAMPLE_ATTEMPTS: Final = 3

ServerReader: TypeAlias = Callable[[str, Callable[[], float]], ServerReading]
"""Asks the server behind an alias, timing the question by the clock it is given."""


@runtime_checkable
class Clock(Protocol):
    """Anything that tells the time the leases are measured by."""

    def now_ms(self) -> float:
        """Read the time in milliseconds since the Unix epoch; fractions are allowed."""
        ...


@runtime_checkable
class TakeoverBlockingClock(Clock, Protocol):
    """A clock that can tell that it was wrong a moment ago."""

    def takeovers_blocked(self) -> bool:
        """Tell whether nothing should be judged stale by this clock for now."""
        ...


class ClockUnavailable(OperationalError):  # noqa: N818 - says what happened, as Django's own do
    """The database's time could not be sampled even once, so there is nothing to go on."""


class SystemClock:
    """The time of this machine. It can be stepped, also backwards."""

    def __init__(self, using: str | None = None) -> None:
        """Take the alias every configured clock is given; the system's time is the same for all."""

    def now_ms(self) -> float:
        """Read the time in milliseconds since the Unix epoch."""
        return time.time_ns() / 1_000_000


def boottime_ms() -> float:
    """
    Read a clock that only runs forward, also while the machine sleeps, in milliseconds.

    For differences only. ``CLOCK_MONOTONIC`` stands still during suspend on Linux, so an
    owner that slept for an hour would believe its lease to be fresh; macOS counts sleep in
    its ``CLOCK_MONOTONIC``. Where neither exists, sleep goes unnoticed.
    """
    return _read_boottime() * 1000


def clock_for(using: str) -> Clock:
    """
    Return the clock of a database alias, one per alias and process.

    It is what ``RUNSTORE["CLOCK"]`` names: a clock, or something that makes one when called
    with the alias. By default the database's own time, or the system's on SQLite.

    Raises:
        ImproperlyConfigured: ``RUNSTORE`` has problems.
        ImportError: the dotted path leads nowhere.
    """
    with _clocks_lock:
        clock = _clocks.get(using)
        if clock is None:
            clock = _clocks[using] = _make_clock(using)
        for disguise in _disguises:
            clock = disguise(clock)
        return clock


@contextmanager
def disguised_clocks(disguise: Callable[[Clock], Clock]) -> Iterator[None]:
    """
    Inside the block, have ``clock_for()`` answer with ``disguise(clock)``; for tests.

    It stays in place while settings are overridden inside the block, and costs a running
    system nothing.
    """
    with _clocks_lock:
        _disguises.append(disguise)
    try:
        yield
    finally:
        with _clocks_lock:
            _disguises.remove(disguise)


def takeovers_blocked(clock: Clock) -> bool:
    """Tell whether ``clock`` asks this process to take nothing over for now."""
    return isinstance(clock, TakeoverBlockingClock) and clock.takeovers_blocked()


@dataclass(frozen=True, slots=True)
class _Sample:
    server_ms: float
    """The server's time in the middle of the round trip."""

    taken_at_ms: float
    """The same moment on the clock that carries it."""

    def carried_to(self, carried_ms: float) -> float:
        return self.server_ms + (carried_ms - self.taken_at_ms)


class DatabaseClock:
    """
    The time of the database server, sampled now and then and carried in between.

    It never goes back: after the server's clock was set back it stands still until it has
    caught up. It never waits for a resample that another thread is taking. On a database
    without a server it is the system's time.

    Args:
        using: The database alias.
        read_server: Asks the server for its time; replaced in tests.
        read_carrier_ms: The clock that carries a sample; replaced in tests.
    """

    def __init__(
        self,
        using: str = "default",
        *,
        read_server: ServerReader | None = None,
        read_carrier_ms: Callable[[], float] = boottime_ms,
    ) -> None:
        self._using = using
        self._read_server = read_server
        self._read_carrier_ms = read_carrier_ms
        self._sample: _Sample | None = None
        self._last_told_ms = float("-inf")
        self._sample_due_at_ms = float("-inf")
        self._blocked_until_ms = float("-inf")
        self._process = 0
        self._renew_locks()

    def __repr__(self) -> str:
        """Name the database, not what was sampled."""
        return f"{type(self).__name__}({self._using!r})"

    def now_ms(self) -> float:
        """
        Read the server's time in milliseconds since the Unix epoch.

        Raises:
            django.db.Error: nothing could be sampled yet, and now it failed again. Later
                failures are logged, and the last sample is carried on.
        """
        if self._read_server is None and not has_server_time(self._using):
            return SystemClock().now_ms()
        if self._process != os.getpid():
            # Another thread may have held a lock while this process was forked.
            self._renew_locks()
        self._sample_if_due()
        with self._state_lock:
            assert self._sample is not None  # noqa: S101 - the first sample is there or has raised
            now = self._sample.carried_to(self._read_carrier_ms())
            self._last_told_ms = max(self._last_told_ms, now)
            return self._last_told_ms

    def takeovers_blocked(self) -> bool:
        """
        Tell whether the server's time has jumped less than one stale-after ago.

        After a failover to a server with another clock every stamp looks too old or too
        new. Owners get one full stale-after to stamp their rows by the new time. And while
        this clock stands still, because the server's was set back, it is ahead of what live
        owners stamp by: then too every stamp looks old.
        """
        carrier_ms = self._read_carrier_ms()
        if carrier_ms < self._blocked_until_ms:
            return True
        with self._state_lock:
            if self._sample is None:
                return False
            ahead_ms = self._last_told_ms - self._sample.carried_to(carrier_ms)
        return ahead_ms > conf.current().lease.skew_allowance_ms

    def _renew_locks(self) -> None:
        self._process = os.getpid()
        self._state_lock = threading.Lock()
        self._sampling_lock = threading.Lock()

    def _sample_if_due(self) -> None:
        if self._sample is not None:
            if self._read_carrier_ms() < self._sample_due_at_ms:
                return
            # Whoever comes second carries on with what there is: a pulse must not wait
            # behind a resample that hangs on a dead network.
            if self._sampling_lock.acquire(blocking=False):
                try:
                    self._resample(self._sample)
                finally:
                    self._sampling_lock.release()
            return
        with self._sampling_lock:
            if self._sample is None:
                self._adopt(self._take_first_sample())

    def _take_first_sample(self) -> _Sample:
        for _ in range(FIRST_SAMPLE_ATTEMPTS):
            sample = self._take_sample()
            if sample is not None:
                return sample
        message = (
            f"The database {self._using!r} took longer than {SLOW_ROUND_TRIP_MS} ms to tell the "
            f"time, {FIRST_SAMPLE_ATTEMPTS} times in a row."
        )
        raise ClockUnavailable(message)

    def _resample(self, previous: _Sample) -> None:
        # The next attempt is due later whatever becomes of this one.
        self._sample_due_at_ms = self._read_carrier_ms() + RETRY_SAMPLE_AFTER_MS
        try:
            sample = self._take_sample()
        except Exception as error:  # noqa: BLE001 - drivers, wrappers and async guards all raise here
            # The class alone: drivers put connection strings into their messages.
            logger.warning(
                "database time could not be sampled; carrying the last sample on",
                extra={"using": self._using, "error": type(error).__name__},
            )
            return
        if sample is None:
            logger.warning(
                "database time came too slowly; carrying the last sample on",
                extra={"using": self._using},
            )
            return
        moved_ms = sample.server_ms - previous.carried_to(sample.taken_at_ms)
        lease = conf.current().lease
        if abs(moved_ms) > lease.skew_allowance_ms:
            self._blocked_until_ms = sample.taken_at_ms + lease.stale_after_ms
            logger.warning(
                "database time jumped; this process takes nothing over for one stale-after",
                extra={"using": self._using, "moved_ms": round(moved_ms)},
            )
        self._adopt(sample)

    def _adopt(self, sample: _Sample) -> None:
        with self._state_lock:
            self._sample = sample
            self._sample_due_at_ms = sample.taken_at_ms + RESAMPLE_AFTER_MS

    def _take_sample(self) -> _Sample | None:
        """Sample once; None when the round trip was too slow to be worth anything."""
        read_server = self._read_server or read_server_time
        reading = read_server(self._using, self._read_carrier_ms)
        if reading.round_trip_ms > SLOW_ROUND_TRIP_MS:
            return None
        return _Sample(reading.server_ms, reading.midpoint_ms)


def _boottime_reader() -> Callable[[], float]:
    for name in ("CLOCK_BOOTTIME", "CLOCK_MONOTONIC"):
        clock_id = getattr(time, name, None)
        if clock_id is not None:
            return lambda: time.clock_gettime(clock_id)
    return time.monotonic


_read_boottime: Final = _boottime_reader()
_clocks: Final[dict[str, Clock]] = {}
_clocks_lock: Final = threading.Lock()
_disguises: Final[list[Callable[[Clock], Clock]]] = []


def _make_clock(using: str) -> Clock:
    path = conf.current().clock
    if path is None:
        return DatabaseClock(using) if has_server_time(using) else SystemClock(using)
    named = import_string(path)
    if not isinstance(named, type) and isinstance(named, Clock):
        return named
    made: Clock = named(using)
    return made


def _forget_clocks(*, setting: str, **_: object) -> None:
    if setting in {conf.SETTING, "DATABASES"}:
        with _clocks_lock:
            _clocks.clear()


setting_changed.connect(_forget_clocks, dispatch_uid="django_runstore.clocks")
