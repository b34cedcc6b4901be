"""
Runs that beat and do not advance.

A heartbeat says that the supervisor lives and the worker has not died, and nothing about the
work. A handler that declares ``no_progress_after_ms`` is held to its progress as well.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from django.db import Error as DjangoError

from django_runstore import conf
from django_runstore.clocks import boottime_ms
from django_runstore.db.boundary import drop_lost_connection
from django_runstore.db.lock_wait import bounded_lock_wait
from django_runstore.display_text import printable
from django_runstore.errors import StoreError
from django_runstore.events import JournalEvent
from django_runstore.handlers import registry
from django_runstore.services import Journal
from django_runstore.supervision.execution import KILL_AFTER_MS, NO_PROGRESS
from django_runstore.supervision.owned_rows import progressed_at_ms
from django_runstore.supervision.settlement import failure_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from django_runstore.handlers import Handler
    from django_runstore.owners import OwnerId
    from django_runstore.services import RunStore
    from django_runstore.supervision.execution import Execution
    from django_runstore.supervision.executions import Executions

logger = logging.getLogger("django_runstore.supervision")

SOURCE: Final = "supervisor"
STALLED: Final = "runstore.run.no_progress"

RETRY_MS: Final = 5_000
"""How long after a failure of the database progress is looked for again."""


@dataclass(slots=True)
class _Watched:
    """
    An execution whose handler has declared how long it may go without progress.

    Attributes:
        look_at_ms: When it may have gone on for too long, by the clock for intervals.
        flagged_at_ms: The progress after which a stall was told of; None for none yet.
    """

    execution: Execution
    handler: Handler
    limit_ms: int
    look_at_ms: float
    flagged_at_ms: int | None = None


@dataclass(slots=True)
class Stalls:
    """
    Finds executions without progress, tells of each stall once, and stops those that are to be.

    The database is asked only when an execution may have gone without progress for too long,
    so one that advances costs a statement per ``no_progress_after_ms``.

    Args:
        store: Where the runs are.
        owner: Who owns them.
        executions: What is under way.
        stop_grace_ms: How long a run that is stopped may take to come to a safe point.
        read_ms: A clock for intervals; replaced in tests.
    """

    store: RunStore
    owner: OwnerId
    executions: Executions
    stop_grace_ms: int
    read_ms: Callable[[], float] = boottime_ms
    _watched: dict[tuple[str, int], _Watched] = field(default_factory=dict)

    def next_look_in_ms(self) -> float:
        """Tell when progress is to be looked for; infinite when nothing is watched."""
        self._follow()
        looks = [each.look_at_ms for each in self._watched.values()]
        return max(0.0, min(looks) - self.read_ms()) if looks else math.inf

    def look(self) -> None:
        """Look at what may have gone without progress for too long; no error gets out."""
        self._follow()
        now_ms = self.read_ms()
        due = [each for each in self._watched.values() if each.look_at_ms <= now_ms]
        if not due:
            return
        try:
            self._judge(due)
        except (StoreError, DjangoError, OSError) as error:
            logger.warning("progress could not be looked for (%s)", failure_name(error))
            drop_lost_connection(self.store.using)
            for each in due:
                each.look_at_ms = now_ms + RETRY_MS

    def _follow(self) -> None:
        """Watch what has begun, and forget what is over or about to stop."""
        under_way = {
            execution.key: execution
            for execution in self.executions.under_way()
            if execution.stopping is None
        }
        self._watched = {key: each for key, each in self._watched.items() if key in under_way}
        for key in under_way.keys() - self._watched.keys():
            execution = under_way[key]
            handler = registry.get(execution.handler)
            if handler is not None and handler.no_progress_after_ms is not None:
                limit_ms = handler.no_progress_after_ms
                look_at_ms = execution.begun_at_ms + limit_ms
                self._watched[key] = _Watched(execution, handler, limit_ms, look_at_ms)

    def _judge(self, due: Iterable[_Watched]) -> None:
        run_ids = [each.execution.run_id for each in due]
        with bounded_lock_wait(self.store.using, _lock_wait_ms()):
            progress = progressed_at_ms(self.store.using, run_ids)
        now_ms = math.floor(self.store.clock.now_ms())
        for each in due:
            claimed_at_ms = each.execution.claimed_at_ms
            # What an earlier execution has done is no progress of this one.
            last_ms = max(progress.get(each.execution.run_id) or 0, claimed_at_ms)
            quiet_ms = now_ms - last_ms
            if quiet_ms < each.limit_ms:
                each.look_at_ms = self.read_ms() + each.limit_ms - quiet_ms
                continue
            each.look_at_ms = self.read_ms() + each.limit_ms
            # Before it is written down, which a locked row can delay.
            if each.handler.on_no_progress == "stop":
                self.executions.stop(
                    each.execution,
                    NO_PROGRESS,
                    grace_ms=self.stop_grace_ms,
                    kill_after_ms=KILL_AFTER_MS,
                )
            if each.flagged_at_ms != last_ms:
                self._tell(each, quiet_ms)
                each.flagged_at_ms = last_ms

    def _tell(self, each: _Watched, quiet_ms: int) -> None:
        execution = each.execution
        logger.warning(
            "run %s: no progress for %.1f s",
            printable(execution.run_id),
            quiet_ms / 1000,
            extra={**execution.facts, "quiet_ms": quiet_ms},
        )
        event = JournalEvent(
            execution.run_id,
            SOURCE,
            STALLED,
            {
                "quiet_ms": quiet_ms,
                "no_progress_after_ms": each.limit_ms,
                "then": each.handler.on_no_progress,
            },
        )
        journal = Journal(self.store.using, self.store.clock, self.store.arbiter)
        with bounded_lock_wait(self.store.using, _lock_wait_ms()):
            journal.emit_durable(event, self.owner, fence=execution.fence)


def _lock_wait_ms() -> int:
    """Say how long a lock may be waited for: a supervisor has signals to answer."""
    return conf.current().lease.heartbeat_interval_ms
