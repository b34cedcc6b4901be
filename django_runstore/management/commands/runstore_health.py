"""``manage.py runstore_health``: whether runs are being looked after."""

from __future__ import annotations

import json
import math
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, connections
from django.db import Error as DjangoError

from django_runstore.db.waiting_queues import MOST_COUNTED
from django_runstore.display_text import printable
from django_runstore.errors import RunStoreError
from django_runstore.supervision.announcements import counted
from django_runstore.supervision.health import Health, examine
from django_runstore.supervision.settlement import failure_name

if TYPE_CHECKING:
    from django_runstore.supervision.health import HealthReport, QueueHealth, SupervisorHealth

_VERDICTS: Final = {
    Health.HEALTHY: "Healthy.",
    Health.NO_SUPERVISOR: "No supervisor is at work.",
    Health.WAITING_TOO_LONG: "A run has waited for too long.",
    Health.POLLING_ONLY: "A supervisor is told nothing by the database and only polls.",
}


class Command(BaseCommand):
    """
    Look once, say what was found, and exit with the verdict.

    0: healthy. 1: the database did not answer. 3: no supervisor is at work. 4: a run has been
    claimable for longer than ``--max-wait``. 5: a supervisor only polls.
    """

    help = (
        "Tells whether supervisors are at work and how long runs have been waiting. Exit status: "
        "0 healthy, 1 the database failed, 3 no supervisor at work, 4 a run has waited for longer "
        "than --max-wait, 5 a supervisor is not woken by the database and only polls."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--json", action="store_true", help="Print the report as JSON.")
        parser.add_argument(
            "--max-wait",
            type=_seconds,
            default=math.inf,
            metavar="SECONDS",
            help="How long a run may have been claimable. By default for ever.",
        )
        parser.add_argument(
            "--database",
            default=DEFAULT_DB_ALIAS,
            choices=tuple(connections),
            help="The database with the runs. By default 'default'.",
        )

    def handle(self, **options: Any) -> None:
        """Look and tell."""
        database = options["database"]
        try:
            report = examine(database, longest_wait_ms=options["max_wait"] * 1000)
        except (RunStoreError, DjangoError, OSError) as error:
            # The class alone: drivers quote rows and connection strings.
            message = f"The database {database!r} failed ({failure_name(error)})."
            raise CommandError(message) from None
        if options["json"]:
            self.stdout.write(json.dumps({"database": database, **report.as_json()}, indent=2))
        elif options["verbosity"]:
            self._print(report)
        if report.health:
            raise SystemExit(int(report.health))

    def _print(self, report: HealthReport) -> None:
        for supervisor in report.supervisors:
            self.stdout.write(f"supervisor {_supervisor(supervisor)}")
        for queue in report.queues:
            self.stdout.write(f"queue {_queue(queue)}")
        self.stdout.write(_VERDICTS[report.health])


def _supervisor(each: SupervisorHealth) -> str:
    states = [
        "silent" if each.is_silent else "pulsing",
        *(["draining"] if each.is_draining else []),
        *(["polling only"] if each.hears_notices is False else []),
    ]
    return f"{printable(each.name)}: {', '.join(states)}, {each.pulsed_ago_ms / 1000:.0f} s ago"


def _queue(queue: QueueHealth) -> str:
    more = " or more" if queue.due >= MOST_COUNTED else ""
    waited = f"the oldest for {queue.oldest_waits_ms / 1000:.0f} s"
    return f"{printable(queue.name)}: {counted(queue.due, 'run')}{more} waiting, {waited}"


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < math.inf:
        raise ArgumentTypeError("must be 0 or more seconds")
    return seconds
