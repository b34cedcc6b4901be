# ruff: noqa: T201 - it tells what happened
"""
Runs under faults for as long as wanted, and the proof that each had one owner at a time.

``python -m tests.chaos.storm --seconds 60 --seed 7`` over the migrated database of
``DATABASE_URL``; ``dev.py chaos`` makes one. It prints what was done and what the checker
says, and exits with 1 when something is wrong.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from itertools import count
from pathlib import Path
from random import Random

import django

django.setup()

from django.db import Error, close_old_connections, connection, transaction  # noqa: E402

from django_runstore.errors import RunPersistenceFailed  # noqa: E402
from django_runstore.models import JournalEntry, Run  # noqa: E402
from django_runstore.services import RunStore  # noqa: E402
from tests.chaos.checker import faults, read_effects  # noqa: E402
from tests.chaos.disturbances import DISTURBANCES, Scene  # noqa: E402
from tests.supervision.processes import SupervisorProcess  # noqa: E402

SUPERVISORS = 3
WORKERS = 2
# How many runs there are to do at any time, so that every fault meets some.
BACKLOG = 150
BATCH = 50
HANDLERS = ("chaos.steps", "chaos.remembered")
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 1.5
# After the last fault: leases, evidence, recoveries and restarts take their time.
SETTLE_S = 180


class Storm:
    """Creates runs, disturbs those who execute them, and waits for the end of all."""

    def __init__(self, folder: Path, seed: int, chosen: list[str]) -> None:
        self.moments = Random(seed)
        self.effects = folder / "effects"
        self.folder = folder
        self.chosen = chosen
        self.done: Counter[str] = Counter()
        self.created = 0
        self.names = count()
        self.scene = Scene(self.start, self.moments)

    def start(self) -> SupervisorProcess:
        environment = os.environ | {"RUNSTORE_TEST_RUNTIME_DIR": str(self.folder / "runtime")}
        log = self.folder / f"supervisor-{next(self.names)}.log"
        return SupervisorProcess(
            environment, log, f"--concurrency={WORKERS}", "--queues=chaos", "--grace=1"
        )

    def blow(self, seconds: float) -> None:
        """Disturb for so long, then wait until everything is settled."""
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                self.scene.refill(SUPERVISORS)
                self.patiently(self.refill_backlog)
                self.disturb()
                time.sleep(self.moments.uniform(SHORTEST_PAUSE_S, LONGEST_PAUSE_S))
            self.scene.calm()
            self.wait_for_the_end()
        finally:
            self.scene.calm()
            for supervisor in self.scene.supervisors:
                supervisor.end()

    def disturb(self) -> None:
        name = self.moments.choice(self.chosen)
        if self.patiently(lambda: DISTURBANCES[name](self.scene)):
            self.done[name] += 1

    def refill_backlog(self) -> None:
        live = Run.objects.live().count()
        if live >= BACKLOG:
            return
        store, handler = RunStore(), self.moments.choice(HANDLERS)
        numbers = range(self.created, self.created + BATCH)
        with transaction.atomic():
            for number in numbers:
                state = f'{{"step": 0, "effects": "{self.effects}"}}'
                store.create(f"run-{number:06}", state, handler=handler, queue="chaos")
        self.created += BATCH

    def wait_for_the_end(self) -> None:
        end = time.monotonic() + SETTLE_S
        while self.patiently(lambda: Run.objects.live().count()) and time.monotonic() < end:
            self.scene.refill(SUPERVISORS)
            time.sleep(0.2)

    def patiently(self, act):
        """Ask a database that is being disturbed too; it is back within a minute."""
        end = time.monotonic() + 60
        while True:
            try:
                return act()
            except (Error, RunPersistenceFailed):
                if time.monotonic() > end:
                    raise
            connection.close()
            time.sleep(0.2)


def keep_commits() -> None:
    """Have a crashed server lose nothing that it confirmed; throw-away ones are in a hurry."""
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        name = connection.ops.quote_name(connection.settings_dict["NAME"])
        cursor.execute(f"ALTER DATABASE {name} SET synchronous_commit = on")
    connection.close()


def verdict(storm: Storm) -> list[str]:
    """Name everything that is wrong now that the storm is over."""
    close_old_connections()
    runs = list(Run.objects.order_by("run_id"))
    entries = JournalEntry.objects.filter(companion="run-store").order_by("run_id", "seq")
    wrong = list(faults(runs, entries, read_effects(storm.effects)))
    if len(runs) != storm.created:
        wrong.append(f"{storm.created} runs were created, {len(runs)} are there")
    wrong += [f"{run.run_id}: left {run.status}" for run in runs if run.finished_at_ms is None]
    return wrong


def summary(storm: Storm) -> str:
    """Say what happened, in numbers."""
    statuses = Counter(Run.objects.values_list("status", flat=True))
    facts = Counter(
        kind.removeprefix("runstore.ownership.")
        for kind in JournalEntry.objects.filter(companion="run-store").values_list(
            "event_type", flat=True
        )
    )
    lost = Counter(
        JournalEntry.objects.filter(
            companion="", event_type__in=["runstore.worker.lost", "runstore.owner.lost"]
        ).values_list("event_type", flat=True)
    )
    effects = sum(1 for _ in storm.effects.open()) if storm.effects.exists() else 0
    return "\n".join(
        f"{title}: {', '.join(f'{number} {name}' for name, number in sorted(counts.items()))}"
        for title, counts in (
            ("runs", statuses),
            ("faults", storm.done),
            ("changes of hands", facts),
            ("losses", lost),
            ("effects", {"lines": effects}),
        )
    )


def main(arguments: list[str]) -> int:
    """Run a storm and print its verdict."""
    parser = argparse.ArgumentParser(prog="tests.chaos.storm")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--faults", default=",".join(DISTURBANCES), help="names, with commas")
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}, {options.seconds:.0f} s on {connection.vendor}", flush=True)
    keep_commits()
    with tempfile.TemporaryDirectory() as folder:
        storm = Storm(Path(folder), options.seed, options.faults.split(","))
        storm.blow(options.seconds)
        wrong = verdict(storm)
        print(summary(storm))
        print("\n".join(wrong) if wrong else f"{storm.created} runs, no fault")
        if wrong:
            for log in sorted(storm.folder.glob("*.log")):
                print(f"--- {log.name}\n{log.read_text()[-4_000:]}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
