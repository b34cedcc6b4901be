"""``manage.py runstore_sweep``: take back, once, what dead owners left."""

from __future__ import annotations

import json
import time
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, connections
from django.db import Error as DjangoError

from django_runstore.display_text import printable
from django_runstore.errors import RunStoreError
from django_runstore.owners import OwnerId
from django_runstore.supervision.announcements import counted
from django_runstore.supervision.settlement import failure_name
from django_runstore.supervision.sweep_report import SweepAnswer, SweepReport
from django_runstore.supervision.sweeper import INTERVALS_UNCHANGED, Sweeper

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django_runstore.supervision.sweep_report import SweptRun

_MARGIN_MS: Final = 10
"""Waited on top, so that a timer that is a little early does not cost another round."""


class ExitStatus(IntEnum):
    """How the command ends; 1 and 2 are Django's own, for errors and bad arguments."""

    DONE = 0
    CANNOT_SWEEP = 1
    NEEDS_A_PERSON = 3
    INTERRUPTED = 130


class Command(BaseCommand):
    """
    Sweep until every stale row has had its turn, print the report, and exit.

    0: done, also when nothing was stale and when stale rows were left to owners that may
    live. 1: the database failed, or its time has just jumped; sweep again later. 3: there
    are rows that a person has to see to; they are named. 130: interrupted.
    """

    help = (
        "Looks once for claims that nobody activated and for running runs whose owner is stale, "
        "and puts back what is provably dead. It observes, waits for two heartbeat intervals, and "
        "acts on what has not moved; so it takes a moment when anything is stale, and none when "
        "nothing is. Exit status: 0 done, 1 could not sweep, 3 some rows need a person."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="Only say what would be done. It observes and waits all the same.",
        )
        parser.add_argument("--json", action="store_true", help="Print the report as JSON.")
        parser.add_argument(
            "--database",
            default=DEFAULT_DB_ALIAS,
            choices=tuple(connections),
            help="The database with the runs. By default 'default'.",
        )

    def handle(self, **options: Any) -> None:
        """Sweep and report."""
        database, dry_run = options["database"], options["dry_run"]
        is_quiet = options["json"] or not options["verbosity"]
        sweeper = Sweeper(database, OwnerId.for_this_process(), dry_run=dry_run)
        found: list[SweptRun] = []
        try:
            for report in self._sweeps(sweeper, is_quiet=is_quiet):
                found += [run for run in report.runs if run.answer != SweepAnswer.WATCHED]
        except (RunStoreError, DjangoError, OSError) as error:
            # The class alone: drivers quote rows and connection strings.
            message = f"The database {database!r} failed while sweeping ({failure_name(error)})."
            raise CommandError(message, returncode=ExitStatus.CANNOT_SWEEP) from None
        except KeyboardInterrupt:
            self.stderr.write("Interrupted; what is not reported above was left as it is.")
            raise SystemExit(ExitStatus.INTERRUPTED) from None
        whole = SweepReport(tuple(found), dry_run=dry_run)
        if options["json"]:
            self.stdout.write(json.dumps({"database": database, **whole.as_json()}, indent=2))
        elif options["verbosity"]:
            self._print(whole)
        if whole.needs_a_person:
            raise SystemExit(ExitStatus.NEEDS_A_PERSON)

    def _sweeps(self, sweeper: Sweeper, *, is_quiet: bool) -> Iterator[SweepReport]:
        """Sweep until every stale row has had its turn."""
        while True:
            report = sweeper.sweep_once()
            if report.takeovers_blocked:
                message = (
                    "The time of the database has just jumped, so nothing can be told from old "
                    "stamps. Sweep again later."
                )
                raise CommandError(message, returncode=ExitStatus.CANNOT_SWEEP)
            yield report
            if not report.has_more:
                return
            wait_ms = sweeper.patience_ms + _MARGIN_MS
            if not is_quiet:
                self.stdout.write(
                    f"{counted(len(report.runs), 'stale row')}; watching for {wait_ms / 1000:.1f} s"
                    f" ({INTERVALS_UNCHANGED} heartbeat intervals) whether their holders beat."
                )
                self.stdout.flush()
            time.sleep(wait_ms / 1000)

    def _print(self, report: SweepReport) -> None:
        mark = "(dry run) " if report.dry_run else ""
        for swept in report.runs:
            self.stdout.write(f"{mark}{printable(swept.run_id)}: {swept.describe()}")
        if not report.runs:
            self.stdout.write("Nothing is stale.")
            return
        counts = ", ".join(
            f"{number} {answer.replace('_', ' ')}" for answer, number in report.counts().items()
        )
        heading = "Dry run, nothing was written. Would have been" if report.dry_run else "Done"
        self.stdout.write(f"{heading}: {counts}.")
