"""``manage.py runstore_rotate_identity``: make a restored database one of its own."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, connections

from django_runstore.errors import RunStoreError
from django_runstore.services import RunStore
from django_runstore.supervision.announcements import counted


class Command(BaseCommand):
    """Rotate, print what was stamped anew, and exit: 0 done, 1 the database failed."""

    help = (
        "Gives the database a new identity and every run and tombstone a new revision, in one "
        "transaction. Run it after a restore, on a copy, or after a failover that lost "
        "transactions, before anything writes there. Whoever follows the changes of runs is then "
        "told to start over. Exit status: 0 done, 1 not done, nothing was changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--json", action="store_true", help="Print the result as JSON.")
        parser.add_argument(
            "--database",
            default=DEFAULT_DB_ALIAS,
            choices=tuple(connections),
            help="The database with the runs. By default 'default'.",
        )

    def handle(self, **options: Any) -> None:
        """Rotate and report."""
        database = options["database"]
        try:
            rotated = RunStore(database).rotate_identity()
        except RunStoreError as error:
            raise CommandError(_explain(error, database)) from None
        if options["json"]:
            self.stdout.write(json.dumps({"database": database, **asdict(rotated)}, indent=2))
        elif options["verbosity"]:
            self.stdout.write(
                f"The identity of {database!r} is now {rotated.identity}; stamped anew: "
                f"{counted(rotated.runs, 'run')}, {counted(rotated.tombstones, 'tombstone')}."
            )


def _explain(error: RunStoreError, database: str) -> str:
    if error.detail.get("cause") == "busy":
        return (
            f"Writers kept the database {database!r} busy, so nothing was changed. Stop the "
            f"supervisors and try again."
        )
    return f"Nothing was changed in {database!r}: {error}"
