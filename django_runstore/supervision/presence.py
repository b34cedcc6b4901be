"""Shows people that a supervisor is there, from a thread that nothing waits for."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from django.db import Error as DjangoError
from django.db import connections

from django_runstore import conf
from django_runstore.db.failures import describe

if TYPE_CHECKING:
    from collections.abc import Callable

    from django_runstore.owners import OwnerId
    from django_runstore.services.supervisors import SupervisorDescription, SupervisorRegister

logger = logging.getLogger("django_runstore.supervision")

INTERVAL_MS: Final = 10_000
"""How often a supervisor says that it is there."""

LEAVE_WITHIN_MS: Final = 2_000
"""How long its end waits for its row to go."""

_DATABASE_ERRORS: Final = (DjangoError, OSError)


def silent_before_ms(now_ms: int) -> int:
    """
    Give the time of the last word after which a supervisor no longer counts as at work.

    Late by what it takes to notice a dead one anyway, and by the pause between two words.
    """
    return now_ms - conf.current().lease.stale_after_ms - INTERVAL_MS


class Presence:
    """
    Keeps the row of one supervisor, from ``start()`` to ``stop()``.

    It neither delays nor fails anything: a database that is slow or away costs a line in the
    log, and the row is written again when it answers.

    Args:
        is_pulsing: Tells whether the leases are being kept; while they are not, nothing is
            said, so that the row of a supervisor in trouble grows old.
        hears_notices: Tells whether notices arrive; None where there are none.
        interval_ms: How often it is said; shorter in tests.
    """

    def __init__(
        self,
        register: SupervisorRegister,
        owner: OwnerId,
        description: SupervisorDescription,
        *,
        is_pulsing: Callable[[], bool],
        hears_notices: Callable[[], bool | None] = lambda: None,
        interval_ms: int = INTERVAL_MS,
    ) -> None:
        self._register = register
        self._owner = owner
        self._description = description
        self._is_pulsing = is_pulsing
        self._hears_notices = hears_notices
        self._interval_s = interval_ms / 1000
        self._is_draining = False
        self._is_stopping = False
        self._news = threading.Event()
        self._thread = threading.Thread(target=self._run, name="runstore-presence", daemon=True)
        # Of the thread alone:
        self._has_entered = False
        self._has_failed = False

    def start(self) -> None:
        """Enter the register, and say every interval that the supervisor is there."""
        self._thread.start()

    def drain(self) -> None:
        """Say soon that nothing more is claimed."""
        self._is_draining = True
        self._news.set()

    def stop(self) -> None:
        """Leave the register; returns after ``LEAVE_WITHIN_MS`` at the latest."""
        self._is_stopping = True
        self._news.set()
        if self._thread.is_alive():
            self._thread.join(LEAVE_WITHIN_MS / 1000)

    def _run(self) -> None:
        while not self._is_stopping:
            if self._is_pulsing():
                self._attempt(self._say)
            self._news.wait(self._interval_s)
            self._news.clear()
        self._attempt(lambda: self._register.leave(self._owner))

    def _say(self) -> None:
        if self._has_entered:
            self._has_entered = self._touch()
        if not self._has_entered:
            self._register.enter(self._owner, self._description)
            self._has_entered = True
            if self._is_draining:
                self._touch()

    def _touch(self) -> bool:
        return self._register.touch(
            self._owner, is_draining=self._is_draining, hears_notices=self._hears_notices()
        )

    def _attempt(self, write: Callable[[], object]) -> None:
        try:
            write()
        except _DATABASE_ERRORS as error:
            if not self._has_failed:
                logger.warning("this supervisor could not be listed", extra=describe(error))
            self._has_failed = True
        except Exception as error:  # noqa: BLE001 - what breaks here must end nothing else
            if not self._has_failed:
                # The class alone: nobody knows what its words quote.
                logger.error("listing this supervisor broke: %s", type(error).__name__)  # noqa: TRY400
            self._has_failed = True
        else:
            self._has_failed = False
        finally:
            # Idle until the next time, which a connection need not be open for.
            connections.close_all()
