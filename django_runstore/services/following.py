"""Follow what changes: revisions, tombstones and a cursor. Spec: run-store 12, departure D5."""

import re
from dataclasses import dataclass
from typing import Final

from django.db import connections

from django_runstore.db.change_statements import (
    FoundChange,
    FoundChanges,
    read_changes,
    read_identity,
    read_revision,
)
from django_runstore.db.restamping import restamp
from django_runstore.db.revision_tables import new_identity
from django_runstore.db.triggers import wrong_triggers
from django_runstore.durable import MAX_SAFE_INTEGER, durable_text
from django_runstore.errors import CursorExpired, RunPersistenceFailed
from django_runstore.metrics import tallies
from django_runstore.models import Run
from django_runstore.services import arguments, door
from django_runstore.services.core import StoreCore
from django_runstore.services.twin import twin
from django_runstore.snapshots import ChangePage, RotatedIdentity, RunChange

LARGEST_PAGE: Final = 10_000

_LARGEST_XID: Final = 2**63 - 1
_CURSOR: Final = re.compile(r"([0-9a-f]{32})\.(0|[1-9][0-9]{0,18})\.(0|[1-9][0-9]{0,15})")
_LOCK_TIMEOUT_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Position:
    """How far a follower has come, in the database of one identity."""

    identity: str
    xid: int
    revision: int

    def __str__(self) -> str:
        return f"{self.identity}.{self.xid}.{self.revision}"


class Following(StoreCore):
    """
    Every change of a run, by whomever and by raw SQL too, has a number and can be followed.

    A revision says that a run changed, not how: several changes become the latest one.
    Heartbeats and progress are no changes.
    """

    @door.operation(tallies.uncounted)
    def changes(self, after: str | None = None, limit: int = 1_000) -> ChangePage:
        """
        Return the runs that have changed since a cursor, in one statement.

        Keep the page's ``cursor`` and pass it with the next call. Every change that is
        committed comes to a follower sooner or later, as the change itself or as a later one
        of the same run, in whatever order the writers commit; none that was rolled back does.
        The pages before the first cursor are all runs and all tombstones there are.

        On PostgreSQL a change is withheld until every writing transaction that began earlier,
        in any database of the server, has ended; a transaction that has written itself sees
        none of its own changes. On SQLite there is one writer, and a transaction sees its own:
        keep a cursor from there with what it commits, or not at all.

        Args:
            after: The cursor of the page before; ``None`` to begin.
            limit: 1 to 10,000.

        Raises:
            InvalidRun: ``after`` is no cursor (field ``after``), or ``limit`` none.
            CursorExpired: start over with ``after=None``; the database is not the one it was.
            RunPersistenceFailed: the database failed, or has lost its identity.
        """
        operation = "changes"
        start = None if after is None else _position(operation, after)
        most = arguments.limit(operation, limit, LARGEST_PAGE)
        xid, revision = (0, 0) if start is None else (start.xid, start.revision)
        # One more than asked for tells whether there is more.
        found = self._typed(operation, lambda: read_changes(self.using, xid, revision, most + 1))
        if found is None:
            raise _no_identity(operation)
        _refuse_expired(operation, start, found)
        page = found.changes[:most]
        reached = _reached(page) or (xid, revision)
        return ChangePage(
            tuple(
                RunChange(change.run_id, change.revision, change.deleted)
                for change in page
                if not change.is_superseded
            ),
            str(_Position(found.identity, *reached)),
            len(found.changes) > most,
        )

    @door.operation(tallies.uncounted)
    def identity(self) -> str:
        """
        Return the identity of the database: 32 hexadecimal digits. Spec: run-store 2.3.

        Copied with backups; ``rotate_identity`` makes a restored database another one.
        """
        operation = "identity"
        found = self._typed(operation, lambda: read_identity(self.using))
        if found is None:
            raise _no_identity(operation)
        return found

    @door.operation(tallies.uncounted)
    def revision(self) -> int:
        """
        Return the number of the latest change.

        On SQLite exactly as many as there have been changes. On PostgreSQL the last number
        that was handed out: there are gaps, and its transaction may still be running or have
        been rolled back.
        """
        operation = "revision"
        found = self._typed(operation, lambda: read_revision(self.using))
        if found is None:
            raise _no_identity(operation)
        return found

    @door.operation(tallies.uncounted)
    def rotate_identity(self) -> RotatedIdentity:
        """
        Give the database a new identity and every run and tombstone a new revision.

        For a database that was restored, copied or promoted with a loss, before anything
        writes to it: followers learn by ``CursorExpired`` that they have to start over, and
        rows stamped by another PostgreSQL server are stamped by this one. One transaction;
        writers wait for it, and on PostgreSQL it gives up as ``busy`` when earlier writers do
        not end within ten seconds.

        Raises:
            RunPersistenceFailed: the database failed, or its triggers are not as the
                migration made them (``detail["stage"]`` is ``triggers``); nothing changed.
        """
        operation = "rotate_identity"
        identity = new_identity()

        def body() -> RotatedIdentity:
            if wrong_triggers(connections[self.using], Run):
                raise RunPersistenceFailed(
                    operation,
                    "the triggers of the run table are not as the migration made them; "
                    "see manage.py check --database",
                    {"stage": "triggers"},
                )
            runs, tombstones = restamp(self.using, identity, _LOCK_TIMEOUT_MS)
            return RotatedIdentity(identity, runs, tombstones)

        # Tried once: whoever rotates is there to decide what to stop.
        return self._write(operation, body, attempts=1)

    achanges = twin(changes)
    aidentity = twin(identity)
    arevision = twin(revision)
    arotate_identity = twin(rotate_identity)


def _position(operation: str, after: object) -> _Position:
    text = durable_text(after)
    match = None if text is None else _CURSOR.fullmatch(text)
    if match is not None:
        position = _Position(match[1], int(match[2]), int(match[3]))
        if position.xid <= _LARGEST_XID and position.revision <= MAX_SAFE_INTEGER:
            return position
    return arguments.refuse(operation, "after", "must be the cursor of an earlier page")


def _refuse_expired(operation: str, start: _Position | None, found: FoundChanges) -> None:
    if start is None:
        return
    reason = None
    if start.identity != found.identity:
        reason = "identity"
    elif found.is_ahead:
        reason = "ahead"
    if reason is not None:
        raise CursorExpired(
            operation,
            "the cursor is of another identity or history of this database; start over with "
            "after=None",
            {"field": "after", "reason": reason},
        )


def _reached(page: tuple[FoundChange, ...]) -> tuple[int, int] | None:
    return (page[-1].xid, page[-1].revision) if page else None


def _no_identity(operation: str) -> RunPersistenceFailed:
    return RunPersistenceFailed(
        operation,
        "the database has lost its identity; run manage.py runstore_rotate_identity",
        {"stage": "identity"},
    )
