"""
Wait for a notice of the database, or for some time, whichever comes first.

Notices make waiting short and nothing more. Where they do not come - on SQLite, behind a
pooler that hands the session to others, over a connection that is dead on one side only -
every wait lasts as long as was asked, and whoever waits then looks for itself.
"""

import asyncio
import contextlib
import logging
import random
import selectors
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import psycopg
from django.db import Error as DjangoError
from django.db import connections
from psycopg import sql

from django_runstore.db.backends import sends_notices

_log = logging.getLogger("django_runstore.db")

_FIRST_PAUSE_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 60.0

# Where the settings say nothing: a dead peer is found in about a minute, and nobody waits
# for a host that does not answer longer than for a few polls.
_DEFAULTS: Final = {
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}


def open_session(using: str) -> psycopg.Connection[Any]:
    """
    Open a bare session, never Django's, with the parameters of the alias.

    In autocommit, since a session in a transaction is told nothing, and without prepared
    statements, which poolers lose.

    Raises:
        psycopg.Error, django.db.Error, OSError: no session; within seconds, unless the
            settings name another ``connect_timeout``.
    """
    parameters = connections[using].get_connection_params()
    for name in ("context", "cursor_factory"):
        parameters.pop(name, None)
    parameters |= {"autocommit": True, "prepare_threshold": None}
    return psycopg.connect(**_DEFAULTS | parameters)


class Listener:
    """
    A session of its own that listens on one channel; connects when it is first waited on.

    Args:
        using: Database alias.
        channel: What to listen on.
        wanted: Tells by its payload whether a notice ends a wait; by default every one does.
    """

    def __init__(
        self, using: str, channel: str, wanted: Callable[[str], bool] = lambda _: True
    ) -> None:
        self._using = using
        self._channel = channel
        self._wanted = wanted
        self._connection: psycopg.Connection[Any] | None = None
        self._closed = threading.Event()
        self._failures = 0
        self._next_attempt = float("-inf")

    @property
    def listening(self) -> bool:
        """Whether notices are expected; without, waits last as long as was asked."""
        return self._connection is not None

    def pause(self, seconds: float) -> None:
        """Wait for ``seconds``, or until a notice may have come."""
        deadline = time.monotonic() + seconds
        if self.listening or not self._connect():
            while self._is_quiet() and (left := deadline - time.monotonic()) > 0:
                self._wait_readable(left)

    async def apause(self, seconds: float) -> None:
        """Wait as ``pause`` does, without holding a thread."""
        deadline = time.monotonic() + seconds
        # Connecting takes a while and is done in a thread; waiting is the loop's.
        if self.listening or not await asyncio.to_thread(self._connect):
            while self._is_quiet() and (left := deadline - time.monotonic()) > 0:
                await self._await_readable(left)

    def close(self) -> None:
        """End the session; further waits last as long as is asked."""
        self._closed.set()
        self._disconnect()

    def _connect(self) -> bool:
        """Begin to listen; true when it just began, and something may have come before."""
        if self._closed.is_set() or not sends_notices(self._using):
            return False
        if time.monotonic() < self._next_attempt:
            return False
        try:
            connection = open_session(self._using)
            connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        except (psycopg.Error, DjangoError, OSError) as error:
            self._fail(error)
            return False
        if self._failures:
            _log.info("notices are back", extra={"alias": self._using, "channel": self._channel})
        self._connection, self._failures = connection, 0
        if self._closed.is_set():
            # Meanwhile, by whoever no longer waits for the thread this runs in.
            self._disconnect()
        return True

    def _fail(self, error: Exception) -> None:
        """Note an outage, told once, and put the next attempt off for longer each time."""
        if not self._failures:
            _log.warning(
                "notices cannot be listened for; polling only",
                extra={
                    "alias": self._using,
                    "channel": self._channel,
                    "error": type(error).__name__,
                },
            )
        longest = min(_FIRST_PAUSE_SECONDS * 2**self._failures, _LONGEST_PAUSE_SECONDS)
        self._failures += 1
        # Jittered, so that the waiters of a restarted server do not come back as one.
        self._next_attempt = time.monotonic() + random.uniform(longest / 2, longest)  # noqa: S311 - jitter, not a secret
        self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error, OSError):
                connection.close()

    def _is_quiet(self) -> bool:
        """Take in what has arrived; false when some of it is wanted."""
        if self._connection is None:
            return True
        quiet = True
        try:
            session = self._connection.pgconn
            session.consume_input()
            while notice := session.notifies():
                quiet = quiet and not self._wanted(notice.extra.decode())
        except (psycopg.Error, OSError) as error:
            self._fail(error)
        return quiet

    def _wait_readable(self, seconds: float) -> None:
        if self._connection is None:
            time.sleep(seconds)
            return
        with selectors.DefaultSelector() as selector:
            selector.register(self._connection.fileno(), selectors.EVENT_READ)
            selector.select(seconds)

    async def _await_readable(self, seconds: float) -> None:
        if self._connection is None:
            await asyncio.sleep(seconds)
            return
        loop, readable = asyncio.get_running_loop(), asyncio.Event()
        descriptor = self._connection.fileno()
        loop.add_reader(descriptor, readable.set)
        try:
            async with asyncio.timeout(seconds):
                await readable.wait()
        except TimeoutError:
            pass
        finally:
            loop.remove_reader(descriptor)
