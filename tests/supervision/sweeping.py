"""The actors of the sweeper's tests: dead and living owners, and time turned by hand."""

import json
import subprocess
import sys
from dataclasses import dataclass, field

from django_runstore import OwnerId, conf
from django_runstore.models import JournalEntry, Run
from django_runstore.outcomes import Activated
from django_runstore.process_identity import host_scope
from django_runstore.services import RunStore
from django_runstore.supervision.sweeper import Sweeper
from django_runstore.testing import FakeClock
from django_runstore.testing.factories import RunFactory

INTERVAL = 1_000
STALE_AFTER = 30_000
START = 1_000_000_000

LEASE = {
    "HEARTBEAT_INTERVAL_MS": INTERVAL,
    "STALE_AFTER_MS": STALE_AFTER,
    "SKEW_ALLOWANCE_MS": 10_000,
}


def gone_pid() -> int:
    """The pid of a process that has been reaped."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def dead_owner(number: int = 1) -> OwnerId:
    """An owner on this host whose process is gone."""
    return OwnerId(host_scope(), gone_pid(), f"t{number}-0123456789abcdef")


@dataclass
class Scene:
    """A store, the clock of its stamps, and the clock that the sweeper watches by."""

    clock: FakeClock = field(default_factory=lambda: FakeClock(START))
    monotonic: FakeClock = field(default_factory=lambda: FakeClock(0))
    observer: OwnerId = field(default_factory=OwnerId.for_this_process)
    dead: OwnerId = field(default_factory=dead_owner)

    def __post_init__(self) -> None:
        self.store = RunStore(clock=self.clock)
        self.living = OwnerId.for_this_process()

    def sweeper(self, **options) -> Sweeper:
        options.setdefault("clock", self.clock)
        observer = options.pop("observer", self.observer)
        return Sweeper("default", observer, read_ms=self.monotonic.now_ms, **options)

    def running(self, owner: OwnerId | None = None, **options) -> Run:
        """A run whose owner beat for the last time just now."""
        options = {"running": True, "owner": owner or self.dead, "clock": self.clock} | options
        return RunFactory(**options)

    def claimed(self, claimant: OwnerId | None = None, **options) -> Run:
        return RunFactory(claimed=True, owner=claimant or self.dead, clock=self.clock, **options)

    def pass_time(self, ms: float) -> None:
        self.clock.advance(ms)
        self.monotonic.advance(ms)

    def go_stale(self) -> None:
        """Until what was stamped now is stale by a millisecond."""
        self.pass_time(STALE_AFTER + 1)

    def watch_and_act(self, sweeper: Sweeper | None = None, **options):
        """Sweep, wait for two intervals, and sweep again; the second report."""
        sweeper = sweeper or self.sweeper(**options)
        sweeper.sweep_once()
        self.pass_time(2 * INTERVAL)
        return sweeper.sweep_once()

    def own(self, run_id: str, owner: OwnerId) -> int:
        """Have a run claimed and owned; the fence."""
        owned = self.store.claim_and_own(run_id, self.store.get(run_id), owner)
        assert isinstance(owned, Activated)
        return owned.fence


def short_lease(**more) -> dict[str, object]:
    return {"LEASE": LEASE, "MAX_RECOVERIES": conf.RunstoreSettings().max_recoveries, **more}


def answers(report) -> dict[str, str]:
    return {swept.run_id: str(swept.answer) for swept in report.runs}


def reasons(report) -> dict[str, str]:
    return {swept.run_id: swept.reason for swept in report.runs}


def facts(run_id: str) -> list[str]:
    entries = JournalEntry.objects.filter(run_id=run_id, companion="run-store").order_by("seq")
    return [entry.event_type.rpartition(".")[2] for entry in entries]


def last_payload(run_id: str, event_type: str) -> dict[str, object]:
    entries = JournalEntry.objects.filter(run_id=run_id, event_type=event_type).order_by("seq")
    return json.loads(entries.last().payload_json)


def everything() -> tuple[list, list]:
    """Every column of every row there is."""
    return list(Run.objects.order_by("pk").values()), list(
        JournalEntry.objects.order_by("pk").values()
    )
