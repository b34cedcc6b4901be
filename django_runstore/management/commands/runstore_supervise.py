"""``manage.py runstore_supervise``: claim runs, own them, and have workers execute them."""

from __future__ import annotations

import logging
import os
from argparse import ArgumentTypeError
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, connections

from django_runstore.supervision.announcements import LineFormatter
from django_runstore.supervision.shared_settings import UnsharableSettingsError
from django_runstore.supervision.supervisor import Supervisor, SupervisorOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

LOGGER: Final = "django_runstore"
MOST_WORKERS: Final = 500


class Command(BaseCommand):
    """
    Parse, supervise, and end with its exit status.

    0 when it was stopped or found nothing left to do; 1 or 2 for unusable arguments or
    settings; 3 when the workers could not start (``--drain``, ``--once``); 4 when the
    database did not take what was to be settled; 70 when the pulse broke.
    """

    help = (
        "Claims runs and executes them in worker processes until it is stopped. SIGTERM or "
        "SIGINT lets runs come to a safe point and puts them back; a second one stops at once."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--concurrency",
            type=_workers,
            default=_processors(),
            metavar="N",
            help="How many workers, each executing one run at a time. By default one per "
            "processor that this process may use.",
        )
        parser.add_argument(
            "--queues",
            type=_names,
            metavar="A,B",
            help="Claim runs of these queues only. By default of all.",
        )
        ends = parser.add_mutually_exclusive_group()
        ends.add_argument(
            "--drain", action="store_true", help="End when no run is claimable or executing."
        )
        ends.add_argument(
            "--once",
            action="store_true",
            help="Claim once, at most one run per worker, execute what was claimed, and end.",
        )
        parser.add_argument(
            "--grace",
            type=_seconds,
            metavar="SECONDS",
            help="How long runs may take to come to a safe point after a stop signal. By "
            "default RUNSTORE['STOP_GRACE_MS'].",
        )
        parser.add_argument(
            "--probe-file",
            type=Path,
            metavar="PATH",
            help="Touch this file about once per second while all is well, and remove it at the "
            "end, for a liveness probe that looks at its age.",
        )
        parser.add_argument(
            "--database",
            default=DEFAULT_DB_ALIAS,
            choices=tuple(connections),
            help="The database with the runs. By default 'default'.",
        )

    def handle(self, **options: Any) -> None:
        """Supervise, and print what happens unless the project's logging does."""
        chosen: dict[str, Any] = {
            "using": options["database"],
            "concurrency": options["concurrency"],
            "queues": options["queues"],
            "drain": options["drain"],
            "once": options["once"],
            "probe_file": options["probe_file"],
        }
        if options["grace"] is not None:
            chosen["grace_ms"] = options["grace"]
        with self._log_lines(options["verbosity"]):
            try:
                status = Supervisor(SupervisorOptions(**chosen)).run()
            except UnsharableSettingsError as error:
                raise CommandError(str(error)) from error
            except OSError as error:
                message = f"The runtime folder, the probe file or the system refused: {error}"
                raise CommandError(message) from error
        if status:
            raise SystemExit(int(status))

    @contextmanager
    def _log_lines(self, verbosity: int) -> Iterator[None]:
        """Print this package's log records, unless the project has a handler for them."""
        logger = logging.getLogger(LOGGER)
        if logger.hasHandlers() or not verbosity:
            yield
            return
        # What handlers print goes to standard error, so this stays readable.
        handler = logging.StreamHandler(self.stdout)
        handler.terminator = ""  # the wrapper ends its lines itself
        handler.setFormatter(LineFormatter())
        level = logger.level
        logger.addHandler(handler)
        if level == logging.NOTSET:
            logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _workers(text: str) -> int:
    number = int(text)
    if not 1 <= number <= MOST_WORKERS:
        message = f"must be from 1 to {MOST_WORKERS}"
        raise ArgumentTypeError(message)
    return number


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ArgumentTypeError("names no queue")
    return names


def _seconds(text: str) -> int:
    milliseconds = float(text) * 1000
    if not 0 <= milliseconds < float("inf"):
        raise ArgumentTypeError("must be 0 or more seconds")
    return round(milliseconds)
