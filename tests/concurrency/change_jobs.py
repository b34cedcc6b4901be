"""What the processes of the tests of changes do; run by ``tests.concurrency.jobs``."""

import random
import time
from contextlib import suppress
from typing import Any

from django.db import connection, transaction

from django_runstore import RunStore


class RolledBackOnPurposeError(Exception):
    """Ends a transaction whose changes nobody may see."""


def change_for_a_while(number: int, seconds: float, shared: list[str]) -> dict[str, Any]:
    """
    Create, change and delete runs in transactions that stay open for a random moment.

    Gives the change that each committed transaction left of each run, with the time of the
    commit on the machine's clock, and the revisions that were rolled back.
    """
    chance = random.Random(number)
    committed: list[tuple[str, int, bool, float]] = []
    undone: list[tuple[str, int]] = []
    store, end, made = RunStore(), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        made += 1
        changed: dict[str, tuple[int, bool]] = {}
        names = [f"{number}-{made}", f"{number}-{made // 3}", *chance.sample(shared, 1)]
        with suppress(RolledBackOnPurposeError):
            with transaction.atomic():
                # Locked in the order of their names, as the package does.
                for run_id in sorted(set(names)):
                    changed[run_id] = change(store, chance, run_id, keep=run_id in shared)
                time.sleep(chance.uniform(0, 0.02))
                if chance.random() < 0.3:
                    undone += [(run_id, revision) for run_id, (revision, _) in changed.items()]
                    raise RolledBackOnPurposeError
            at = time.monotonic()
            committed += [(run_id, *left, at) for run_id, left in changed.items()]
    return {"committed": committed, "undone": undone}


def change(store: RunStore, chance: random.Random, run_id: str, *, keep: bool) -> tuple[int, bool]:
    """Change one run in one way or another; give its revision, and whether it is deleted."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM runstore_run WHERE run_id = %s", [run_id])
        if cursor.fetchone() is None:
            store.create(run_id, "{}")
        elif not keep and chance.random() < 0.4:
            cursor.execute("DELETE FROM runstore_run WHERE run_id = %s", [run_id])
            cursor.execute(
                "SELECT revision FROM runstore_run_tombstone WHERE run_id = %s", [run_id]
            )
            return int(cursor.fetchone()[0]), True
        else:
            cursor.execute(
                "UPDATE runstore_run SET priority = priority + 1 WHERE run_id = %s", [run_id]
            )
        cursor.execute("SELECT revision FROM runstore_run WHERE run_id = %s", [run_id])
        return int(cursor.fetchone()[0]), False


def follow_for_a_while(after: str, seconds: float) -> dict[str, Any]:
    """Follow the changes in small pages, as fast as they come; give them in order."""
    store, end, seen, pages = RunStore(), time.monotonic() + seconds, [], 0
    while time.monotonic() < end:
        page = store.changes(after, limit=7)
        after, pages = page.cursor, pages + bool(page.changes)
        seen += [(change.run_id, change.revision, change.deleted) for change in page.changes]
    return {"seen": seen, "cursor": after, "pages": pages}
