"""
Read the changes of runs in the order in which they can be followed, and stamp them anew.

Written as SQL: one statement has to see runs, tombstones, the identity and, on PostgreSQL,
how far everything is committed, in one and the same snapshot.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db import connections

from django_runstore.db.backends import has_one_writer


@dataclass(frozen=True, slots=True)
class FoundChange:
    """
    The latest change of one run.

    Attributes:
        xid: The transaction that made it; 0 on SQLite.
        is_superseded: A tombstone whose id lives again.
    """

    run_id: str
    xid: int
    revision: int
    deleted: bool
    is_superseded: bool


@dataclass(frozen=True, slots=True)
class FoundChanges:
    """
    What one statement saw.

    Attributes:
        identity: Of the database.
        is_ahead: The position asked for lies beyond all that this database has written.
    """

    identity: str
    is_ahead: bool
    changes: tuple[FoundChange, ...]


# Transactions below the snapshot's xmin have all ended: what they committed is in the snapshot,
# and nothing can join them. One still running may have drawn a lower revision than others that
# have committed, and a reader who had gone past it would never come back for it. Rows are
# therefore read by transaction first. Whether a tombstone's id lives again is asked after the
# limit, and not with EXISTS: the planner could make of either a look at the whole table.
_POSTGRESQL: Final = """
SELECT i.identity,
       %(xid)s >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint
           AND current_setting('transaction_isolation') = 'read committed',
       c.run_id, c.revision_xid, c.revision, c.deleted,
       c.deleted AND (SELECT true FROM runstore_run AS r WHERE r.run_id = c.run_id)
  FROM runstore_store_identity AS i
  LEFT JOIN LATERAL (
       (SELECT run_id, revision_xid, revision, false AS deleted FROM runstore_run
         WHERE (revision_xid, revision) > (%(xid)s, %(revision)s)
           AND revision_xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
         ORDER BY revision_xid, revision LIMIT %(limit)s)
       UNION ALL
       (SELECT run_id, revision_xid, revision, true FROM runstore_run_tombstone
         WHERE (revision_xid, revision) > (%(xid)s, %(revision)s)
           AND revision_xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
         ORDER BY revision_xid, revision LIMIT %(limit)s)
       ORDER BY revision_xid, revision LIMIT %(limit)s
  ) AS c ON true
 WHERE i.id = 1
 ORDER BY c.revision_xid, c.revision
"""

# One writer at a time: revisions are committed in the order in which they were drawn.
_SQLITE: Final = """
SELECT i.identity, %(revision)s > i.revision, c.run_id, 0, c.revision, c.deleted, 0
  FROM runstore_store_identity AS i
  LEFT JOIN (
       SELECT run_id, revision, deleted FROM (
           SELECT * FROM (
               SELECT run_id, revision, 0 AS deleted FROM runstore_run
                WHERE revision_xid = 0 AND revision > %(revision)s
                ORDER BY revision LIMIT %(limit)s)
           UNION ALL
           SELECT * FROM (
               SELECT run_id, revision, 1 AS deleted FROM runstore_run_tombstone
                WHERE revision > %(revision)s
                ORDER BY revision LIMIT %(limit)s)
       ) ORDER BY revision LIMIT %(limit)s
  ) AS c ON true
 WHERE i.id = 1
 ORDER BY c.revision
"""


_AHEAD_POSTGRESQL: Final = """
SELECT EXISTS (SELECT FROM runstore_run WHERE revision_xid >= b.next)
    OR EXISTS (SELECT FROM runstore_run_tombstone WHERE revision_xid >= b.next)
  FROM (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next) AS b
"""
_AHEAD_SQLITE: Final = """
SELECT EXISTS (SELECT 1 FROM runstore_run WHERE revision_xid = 0 AND revision > i.revision)
    OR EXISTS (SELECT 1 FROM runstore_run_tombstone WHERE revision > i.revision)
  FROM runstore_store_identity AS i WHERE i.id = 1
"""


def read_changes(using: str, xid: int, revision: int, limit: int) -> FoundChanges | None:
    """
    Read at most ``limit`` changes after a position, in one statement.

    Returns:
        ``None`` when the database has lost its identity.
    """
    statement = _SQLITE if has_one_writer(using) else _POSTGRESQL
    rows = _fetch(using, statement, {"xid": xid, "revision": revision, "limit": limit})
    if not rows:
        return None
    identity, is_ahead = rows[0][:2]
    return FoundChanges(
        identity,
        bool(is_ahead),
        tuple(
            FoundChange(run_id, at_xid, at_revision, bool(deleted), bool(superseded))
            for _, _, run_id, at_xid, at_revision, deleted, superseded in rows
            if run_id is not None
        ),
    )


def read_identity(using: str) -> str | None:
    """Read the identity of the database; ``None`` when it has lost it."""
    rows = _fetch(using, "SELECT identity FROM runstore_store_identity WHERE id = 1", {})
    return rows[0][0] if rows else None


def read_revision(using: str) -> int | None:
    """
    Read the latest revision: exact on SQLite, the last number handed out on PostgreSQL.

    Returns:
        ``None`` when the database has lost its counter.
    """
    if has_one_writer(using):
        rows = _fetch(using, "SELECT revision FROM runstore_store_identity WHERE id = 1", {})
    else:
        rows = _fetch(
            using,
            "SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END "
            "FROM runstore_revision",
            {},
        )
    return rows[0][0] if rows else None


def is_stamped_ahead(using: str) -> bool:
    """
    Tell whether there are runs or tombstones from beyond all that this database has written.

    So it is after a restore into another PostgreSQL server: no follower would see them.
    """
    statement = _AHEAD_SQLITE if has_one_writer(using) else _AHEAD_POSTGRESQL
    return any(bool(ahead) for (ahead,) in _fetch(using, statement, {}))


def _fetch(using: str, statement: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with connections[using].cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())
