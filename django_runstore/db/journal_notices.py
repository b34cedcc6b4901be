"""
Tell whoever follows a stream that there is something to read.

A hint and no more: polling is what finds every entry. Sent at commit, for events that were
emitted and for nothing else, since NOTIFY takes a lock of the whole cluster at commit.
"""

import hashlib
from typing import Final

from django.db import connections

from django_runstore.db.backends import sends_notices

CHANNEL: Final = "runstore_journal"


def announce(using: str, run_id: str, companion: str) -> None:
    """Send the notice of a stream with this transaction, if and when it commits."""
    if not sends_notices(using):
        return
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, notice_of(run_id, companion)])


def notice_of(run_id: str, companion: str) -> str:
    """Name a stream in a notice, which is too short for an id of any length."""
    return hashlib.sha256(f"{len(run_id)}:{run_id}{companion}".encode()).hexdigest()
