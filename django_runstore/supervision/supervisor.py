"""A supervisor: claims runs, owns them, pulses them, and has workers execute them."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django_runstore import __version__, conf
from django_runstore.display_text import printable
from django_runstore.handlers import registry
from django_runstore.liveness import OwnerLock
from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.services.supervisors import SupervisorDescription, SupervisorRegister
from django_runstore.supervision.announcements import counted
from django_runstore.supervision.crew import Crew
from django_runstore.supervision.executions import Executions
from django_runstore.supervision.lease_keeper import LeaseKeeper
from django_runstore.supervision.loop import EndOptions, ExitStatus, Loop
from django_runstore.supervision.ownership_news import OwnershipNews
from django_runstore.supervision.presence import Presence
from django_runstore.supervision.probe_file import ProbeFile
from django_runstore.supervision.protocol import Hello
from django_runstore.supervision.recycling import RecycleRule
from django_runstore.supervision.rounds import Rounds
from django_runstore.supervision.settlement import Settler
from django_runstore.supervision.shared_deadline import SharedDeadlines
from django_runstore.supervision.shared_settings import describe_settings
from django_runstore.supervision.signals import StopSignals
from django_runstore.supervision.stalls import Stalls
from django_runstore.supervision.sweeper import Sweeper
from django_runstore.supervision.wake_ups import WakeUps
from django_runstore.supervision.worker_process import WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

logger = logging.getLogger("django_runstore.supervision")

LEAVE_MS: Final = 5_000
"""How long workers may take to end after the last run was settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorOptions:
    """
    What a supervisor is to do.

    Attributes:
        concurrency: How many workers there are, and so how many runs at once.
        queues: Only runs of these queues; None for all.
        grace_ms: How long runs may take to come to a safe point after a stop signal.
        drain: End when nothing is claimable any more.
        once: Look for claimable runs once, execute what was found, and end.
        probe_file: Touched while the supervisor is well; None for none.
    """

    using: str = "default"
    concurrency: int = 1
    queues: tuple[str, ...] | None = None
    grace_ms: int = field(default_factory=lambda: conf.current().stop_grace_ms)
    drain: bool = False
    once: bool = False
    probe_file: Path | None = None


class Supervisor:
    """
    Own runs and have them executed, until a signal or the options end it.

    It executes no handler itself, so that nothing can keep it from pulsing. SIGTERM or
    SIGINT drains: nothing more is claimed, and runs get ``grace_ms`` to come to a safe
    point, from which another process goes on. A second signal stops them at once.

    Example:
        >>> Supervisor(SupervisorOptions(concurrency=4, drain=True)).run()
        <ExitStatus.DONE: 0>

    Args:
        options: What to do.
        worker_command: What to execute instead of a worker, in tests.
    """

    def __init__(
        self, options: SupervisorOptions, *, worker_command: Sequence[str] | None = None
    ) -> None:
        self._options = options
        self._worker_command = worker_command

    def run(self) -> ExitStatus:
        """
        Supervise until it is over. Call it in the main thread of the process.

        Raises:
            UnsharableSettingsError: workers could not use a database of this process.
            OSError: the runtime folder or the probe file cannot be used.
        """
        settings = describe_settings()
        owner = OwnerId.for_this_process(announces_lock=True)
        using, lease = self._options.using, conf.current().lease
        store = RunStore(using=using)
        with ExitStack() as cleanup:
            lock = cleanup.enter_context(OwnerLock.acquire(owner))
            signals = cleanup.enter_context(StopSignals())
            deadlines = cleanup.enter_context(SharedDeadlines(self._options.concurrency))
            hello = self._greeting(owner, settings, deadlines, lock)
            crew = Crew(
                self._options.concurrency,
                lambda: WorkerProcess.start(hello, self._worker_command),
                signals,
                lease.stale_after_ms,
            )
            cleanup.callback(crew.close)
            news = OwnershipNews(signals.wake)
            keeper = LeaseKeeper(
                store,
                owner,
                lease,
                on_lost=news.lost,
                on_lapsed=news.lapsed,
                deadlines=deadlines,
            )

            def is_well() -> bool:
                return keeper.is_alive() and keeper.all_confirmed()

            settler = Settler(store, owner)
            executions = Executions(crew, keeper, settler, recycle=_recycle_rule())
            sweeper = Sweeper(using, owner, store.clock, lease)
            rounds = Rounds(
                store,
                owner,
                self._options.queues,
                executions=executions,
                keeper=keeper,
                settler=settler,
                sweep=sweeper.sweep_once,
            )
            on_turn = self._probing(cleanup, is_well)
            wake_ups = WakeUps(using, self._options.queues, signals.wake)
            cleanup.callback(wake_ups.stop)
            presence = Presence(
                SupervisorRegister(using),
                owner,
                self._description(),
                is_pulsing=is_well,
                hears_notices=lambda: wake_ups.hears,
            )
            ends = EndOptions(
                grace_ms=self._options.grace_ms, drain=self._options.drain, once=self._options.once
            )
            loop = Loop(
                ends,
                crew=crew,
                executions=executions,
                keeper=keeper,
                settler=settler,
                rounds=rounds,
                stalls=Stalls(store, owner, executions, conf.current().stop_grace_ms),
                signals=signals,
                news=news,
                wake_ups=wake_ups,
                lock=lock,
                on_stopping=presence.drain,
                on_turn=on_turn,
            )
            self._announce(owner)
            keeper.start()
            cleanup.callback(keeper.stop)
            presence.start()
            cleanup.callback(presence.stop)
            wake_ups.start()
            # Before the pulse ends: whatever happens, no handler works on without it.
            cleanup.callback(crew.kill_all)
            status = loop.run()
            crew.leave(LEAVE_MS, spared=executions.places_with_outcomes())
            if not keeper.held() and not len(settler):
                lock.discard()
        logger.info("stopped: %s", _summary(executions.counts))
        return status

    def _probing(self, cleanup: ExitStack, is_well: Callable[[], bool]) -> Callable[[], object]:
        """Make the probe file, if there is to be one, and give what keeps it young."""
        if self._options.probe_file is None:
            return lambda: None
        probe = ProbeFile(self._options.probe_file, is_well)
        probe.create()
        cleanup.callback(probe.remove)
        return probe.turn

    def _greeting(
        self,
        owner: OwnerId,
        settings: dict[str, Any],
        deadlines: SharedDeadlines,
        lock: OwnerLock,
    ) -> Hello:
        return Hello(
            supervisor_pid=os.getpid(),
            using=self._options.using,
            settings=settings,
            owner=asdict(owner),
            sys_path=list(sys.path),
            python_path=os.environ.get("PYTHONPATH"),
            deadline_fd=deadlines.fileno(),
            lock_fd=lock.fileno(),
        )

    def _description(self) -> SupervisorDescription:
        options = self._options
        return SupervisorDescription(
            version=__version__, queues=options.queues, capacity=options.concurrency
        )

    def _announce(self, owner: OwnerId) -> None:
        queues = self._options.queues
        logger.info(
            "supervisor %s: %s, %s, database %s, %s",
            owner.describe(),
            counted(self._options.concurrency, "worker"),
            "all queues" if queues is None else f"queues {', '.join(map(printable, queues))}",
            self._options.using,
            counted(len(registry.names()), "handler"),
        )


def _recycle_rule() -> RecycleRule:
    settings = conf.current()
    return RecycleRule(settings.worker_max_runs, settings.worker_max_memory_mib)


def _summary(counts: Mapping[str, int]) -> str:
    named = {"suspended": "put back"}
    parts = [f"{number} {named.get(result, result)}" for result, number in counts.items()]
    return ", ".join(parts) or "no runs"
