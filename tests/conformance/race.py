"""Real races: threads with connections of their own, let loose at one moment."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from django.db import connection, connections, transaction

from django_runstore.models import Run

DEADLINE_SECONDS = 60


def race(*contenders: Callable[[], Any]) -> list[Any]:
    """Call every contender at the same moment on its own connection; give their answers."""
    start = threading.Barrier(len(contenders))

    def contend(contender: Callable[[], Any]) -> Any:
        try:
            connection.ensure_connection()
            start.wait(DEADLINE_SECONDS)
            return contender()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(contenders)) as pool:
        futures = [pool.submit(contend, contender) for contender in contenders]
        return [future.result(DEADLINE_SECONDS) for future in futures]


@contextmanager
def elsewhere_locked(*run_ids: str):
    """Hold the rows' locks on another connection for the length of the block."""
    locked, release = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                rows = Run.unguarded.select_for_update().filter(pk__in=run_ids)
                assert len(rows) == len(run_ids)
                locked.set()
                assert release.wait(DEADLINE_SECONDS)
        finally:
            locked.set()
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        holder = pool.submit(hold)
        try:
            assert locked.wait(DEADLINE_SECONDS)
            yield
        finally:
            release.set()
            holder.result(DEADLINE_SECONDS)
