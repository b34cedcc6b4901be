"""
Tell supervisors that there is something to do, so that they need not wait for their next poll.

A hint and no more: polling is what finds every run and every request. Sent with the transaction
that changed the row, if and when it commits, and only where somebody can act at once, since
NOTIFY takes a lock of the whole cluster at commit. Beats never send one.
"""

from collections.abc import Iterable
from typing import Final

from django.db import connections

from django_runstore.db.backends import sends_notices

CHANNEL: Final = "runstore_runs"
"""One for all runs of a database: PostgreSQL keeps the channels of its databases apart."""

CANCEL_REQUESTED: Final = "cancel"
"""The payload of a notice that somebody asked a run to stop; which one, the rows tell."""

_CLAIMABLE: Final = "claim:"


def announce_claimable(using: str, queues: Iterable[str]) -> None:
    """Say that in each of ``queues`` a run can be claimed once this transaction commits."""
    _send(using, [f"{_CLAIMABLE}{queue}" for queue in sorted(set(queues))])


def announce_cancel_request(using: str) -> None:
    """Say that a run was asked to stop once this transaction commits."""
    _send(using, [CANCEL_REQUESTED])


def claimable_queue(payload: str) -> str | None:
    """Name the queue that a notice is about; None when it is about something else."""
    return payload.removeprefix(_CLAIMABLE) if payload.startswith(_CLAIMABLE) else None


def _send(using: str, payloads: list[str]) -> None:
    if not payloads or not sends_notices(using):
        return
    # Equal ones of a transaction are delivered once; a queue has at most 512 bytes, and a
    # payload may have 8,000.
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT pg_notify(%s, payload) FROM unnest(%s::text[]) AS payload",
            [CHANNEL, payloads],
        )
