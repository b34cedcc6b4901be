"""``manage.py corpus_demo``: index the standard library while a supervisor is killed."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, transaction

from django_runstore import conf
from django_runstore.models import Run
from django_runstore.querysets import RunQuerySet
from testproject.corpus.display import Display
from testproject.corpus.files import library_root, shares
from testproject.corpus.ownership import broken_orders, facts_of, story, takeovers
from testproject.corpus.reads import overlapping_reads, reads_per_file
from testproject.corpus.report import add_up, differences, render
from testproject.corpus.runs import BATCH, index, new_state
from testproject.corpus.supervisors import SupervisorUnderShow

LONGEST_S: Final = 240
LOOK_EVERY_S: Final = 0.2
CHECKPOINTS_BEFORE_KILL: Final = 3


class Command(BaseCommand):
    """Everything it prints as true is checked; the exit status says whether all of it was."""

    help = "Index the Python standard library with two supervisors and kill one of them."
    requires_system_checks = "__all__"

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the demonstration."""
        del args, options
        call_command("migrate", verbosity=0)
        folder = Path(tempfile.mkdtemp(prefix="runstore-demo-"))
        try:
            failures = Demonstration(folder, self.stdout.write).run()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if failures:
            raise CommandError("these claims are false:\n  " + "\n  ".join(failures))


class Demonstration:
    """One demonstration, from submitting the runs to proving what came out."""

    def __init__(self, folder: Path, say: Callable[[str], object]) -> None:
        self._folder = folder
        self._say = say
        self._root = library_root()
        self._shares = shares(self._root)
        self._queue = f"corpus-{time.strftime('%Y%m%d-%H%M%S')}"
        self._reads = folder / "reads.log"
        self._names: dict[int, str] = {}
        self._display = Display(self._names, len(self._shares))

    def run(self) -> list[str]:
        """Give the claims that turned out false; empty when all is well."""
        self._introduce()
        self._submit()
        out = self._folder / "reference.json"
        reference = subprocess.Popen(  # noqa: S603 - this project's own module
            [sys.executable, "-m", "testproject.corpus.reference", str(out)],
            cwd=settings.BASE_DIR,
        )
        supervisors = [self._start("supervisor A"), self._start("supervisor B")]
        try:
            self._watch(supervisors)
            self._display.note("waiting for the uninterrupted count to finish")
            reference.wait(LONGEST_S)
        finally:
            for supervisor in supervisors:
                supervisor.stop()
            reference.kill()
            reference.wait()
        return self._prove(json.loads(out.read_text(encoding="utf-8")))

    def _introduce(self) -> None:
        lease = conf.current().lease
        self._say(f"Indexing {self._root}")
        self._say(
            f"  {sum(len(share.files) for share in self._shares):,} files in "
            f"{len(self._shares)} runs, on {connection.vendor}"
        )
        self._say(
            f"  short leases for this demonstration: a heartbeat every "
            f"{lease.heartbeat_interval_ms} ms, stale after {lease.stale_after_ms} ms "
            "(the defaults are 1,000 and 30,000)\n"
        )

    def _submit(self) -> None:
        with transaction.atomic():
            for order, share in enumerate(self._shares):
                index.submit(
                    new_state(self._root, share.files, self._reads),
                    run_id=f"{self._queue}/{share.name}",
                    queue=self._queue,
                    priority=-order,
                )

    def _start(self, name: str) -> SupervisorUnderShow:
        supervisor = SupervisorUnderShow.start(name, self._queue, self._folder)
        self._names[supervisor.pid] = name
        self._display.note(f"{name} started, pid {supervisor.pid}")
        return supervisor

    def _runs(self) -> RunQuerySet:
        return Run.objects.filter(queue=self._queue)

    def _watch(self, supervisors: list[SupervisorUnderShow]) -> None:
        """Kill one supervisor in the middle, and wait until every run is settled."""
        deadline = time.monotonic() + LONGEST_S
        killed = shown = 0
        while self._runs().live().exists():
            if time.monotonic() > deadline:
                raise CommandError(f"the runs did not settle within {LONGEST_S} s")
            if not any(supervisor.is_up for supervisor in supervisors):
                raise CommandError("no supervisor is left:\n" + supervisors[-1].log.read_text())
            if not killed:
                killed = self._kill_when_ripe(supervisors)
            shown = self._show_takeovers(shown)
            self._display.show(self._queue)
            time.sleep(LOOK_EVERY_S)
        self._show_takeovers(shown)
        self._display.show(self._queue)
        self._display.close()

    def _kill_when_ripe(self, supervisors: list[SupervisorUnderShow]) -> int:
        """Kill the owner of the longest run once that run has saved a few checkpoints."""
        longest = self._runs().get(run_id=f"{self._queue}/{self._shares[0].name}")
        done = json.loads(longest.state_json)["done"]
        if longest.owner_pid is None or done < CHECKPOINTS_BEFORE_KILL * BATCH:
            return 0
        victim = next((one for one in supervisors if one.pid == longest.owner_pid), None)
        if victim is None:
            return 0
        held = self._runs().filter(status="running", owner_pid=victim.pid).count()
        victim.kill()
        self._display.note(
            f"kill -9 {victim.pid} ({victim.name}), which owned {held} running "
            f"run{'' if held == 1 else 's'}; {self._shares[0].name} had read {done} files"
        )
        return 1

    def _show_takeovers(self, shown: int) -> int:
        facts = facts_of(self._runs().values_list("run_id", flat=True))
        taken = [fact for history in facts.values() for fact in takeovers(history)]
        taken.sort(key=lambda fact: fact.at_ms)
        for fact in taken[shown:]:
            self._display.note(f"{fact.run_id.split('/', 1)[1]}: {story([fact], self._names)}")
        return len(taken)

    def _prove(self, reference: dict[str, Any]) -> list[str]:
        runs = list(self._runs().order_by("run_id"))
        facts = facts_of(run.run_id for run in runs)
        self._say("\nOwners of every run, in order:")
        for run in runs:
            share = run.run_id.split("/", 1)[1]
            self._say(f"  {share:<16} {story(facts[run.run_id], self._names)}")
        unfinished = [run for run in runs if run.status != "completed"]
        if unfinished:
            return [f"{run.run_id} is {run.status}: {run.error_json}" for run in unfinished]
        report = add_up(json.loads(run.result_json) for run in runs)
        self._say("\nReport:")
        for line in render(report):
            self._say(line)
        return self._judge(report, reference, facts)

    def _judge(
        self, report: dict[str, Any], reference: dict[str, Any], facts: dict[str, list[Any]]
    ) -> list[str]:
        """Check and print every claim."""
        reads = reads_per_file(self._reads)
        twice = sum(count > 1 for count in reads.values())
        taken = [fact for history in facts.values() for fact in takeovers(history)]
        claims = {
            "the totals equal the uninterrupted count of one process by other code": differences(
                report, reference, self._root
            ),
            "every file was read": _unless(len(reads) == report["files"], f"{len(reads)} were"),
            "one owner at a time, by the journal": list(broken_orders(facts)),
            "no owner read on after its successor had begun": overlapping_reads(self._reads),
            f"{len(taken)} takeovers after the kill, each with its evidence": _unless(
                bool(taken) and all(fact.payload.get("evidence") for fact in taken),
                "none, or without evidence",
            ),
            f"{twice} of {len(reads):,} files were read twice because of the kill, "
            f"at most {BATCH} for each takeover": _unless(
                twice <= BATCH * len(taken), f"{twice} files"
            ),
        }
        self._say("\nChecked:")
        for claim, faults in claims.items():
            self._say(f"  {'true ' if not faults else 'FALSE'}  {claim}")
        self._say("\nLook at the runs in the admin: python3 dev.py serve")
        return [f"{claim}: {'; '.join(faults)}" for claim, faults in claims.items() if faults]


def _unless(holds: bool, fault: str) -> list[str]:  # noqa: FBT001 - reads as a sentence
    return [] if holds else [fault]
