"""
Listen for notices, and know whether they arrive.

A listening session can go deaf unseen: its peer is gone without a word, or a pooler has given
it to somebody else. So each listener sends itself a notice now and then, over another session,
that has to come back. Nothing here waits for an answer of the database: whatever does not come
in time ends both sessions, and they are opened anew.
"""

from __future__ import annotations

import logging
import random
import secrets
import selectors
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import psycopg
from django.db import Error as DjangoError
from psycopg import sql
from psycopg.pq import ExecStatus

from django_runstore.db.listening import open_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import HasFileno

_log = logging.getLogger("django_runstore.db")

PROBE_INTERVAL_S: Final = 15.0
"""Pause between a probe that came back and the next one."""

ANSWER_WITHIN_S: Final = 5.0
"""How long the database may take to begin listening, and a probe to come back."""

ANYTHING: Final = ""
"""Heard when notices may have been missed: look at everything."""

_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0


class ProbedListener:
    """
    A session that listens on one channel, and is replaced when a probe does not come back.

    For one thread, which calls ``turn()`` over and over, and ``close()`` at the end.

    Args:
        using: Database alias.
        channel: What to listen on.
        alarm: Ends a turn when it is readable; for other threads.
        probe_interval_s: Pause between two probes; shorter in tests.
        answer_within_s: How long a probe may take; shorter in tests.
        read_s: A clock for intervals; replaced in tests.

    Attributes:
        hears: Whether the last probe came back; None before the first was judged. For any thread.
    """

    def __init__(
        self,
        using: str,
        channel: str,
        alarm: HasFileno,
        *,
        probe_interval_s: float = PROBE_INTERVAL_S,
        answer_within_s: float = ANSWER_WITHIN_S,
        read_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.hears: bool | None = None
        self._using = using
        self._channel = channel
        # A channel of its own: other sessions are not told of these probes.
        self._probe_channel = f"runstore_probe_{secrets.token_hex(8)}"
        self._alarm = alarm
        self._probe_interval_s = probe_interval_s
        self._answer_within_s = answer_within_s
        self._read_s = read_s
        self._session: psycopg.Connection[Any] | None = None
        self._probe: psycopg.Connection[Any] | None = None
        self._is_listening = False
        self._awaits_probe = False
        self._failures = 0
        # When to connect, to send a probe, or to give up waiting for an answer.
        self._due_s = float("-inf")

    def turn(self) -> list[str]:
        """
        Do what is due, wait until something happens, and return the payloads that were heard.

        Returns:
            Nothing when the alarm or a probe ended the wait; ``ANYTHING`` among them when
            notices may have been missed before.
        """
        try:
            self._do_what_is_due()
            self._wait()
            return self._hear()
        except (psycopg.Error, DjangoError, OSError) as error:
            self._fail(type(error).__name__)
            return []

    def close(self) -> None:
        """End the sessions."""
        self._end_probe()
        session, self._session = self._session, None
        self._is_listening = self._awaits_probe = False
        _close(session)

    def _do_what_is_due(self) -> None:
        if self._read_s() < self._due_s:
            return
        if self._session is None:
            self._session = open_session(self._using)
            self._listen(self._session)
        elif self._is_listening and not self._awaits_probe:
            self._end_probe()
            self._probe = open_session(self._using)
            self._awaits_probe = True
            # Without waiting: over a connection that is dead it could wait for ever.
            self._probe.pgconn.send_query_params(
                b"SELECT pg_notify($1, '')", [self._probe_channel.encode()]
            )
        else:
            self._fail("no answer")
            return
        self._due_s = self._read_s() + self._answer_within_s

    def _listen(self, session: psycopg.Connection[Any]) -> None:
        channels = (self._channel, self._probe_channel)
        commands = (sql.SQL("LISTEN {}").format(sql.Identifier(name)) for name in channels)
        session.pgconn.send_query(sql.SQL("; ").join(commands).as_bytes(session))

    def _wait(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._alarm, selectors.EVENT_READ)
            for session in (self._session, self._probe):
                if session is not None:
                    selector.register(session.fileno(), selectors.EVENT_READ)
            selector.select(max(0.0, self._due_s - self._read_s()))

    def _hear(self) -> list[str]:
        if self._session is None:
            return []
        if _has_answered(self._session) and not self._is_listening:
            self._is_listening = True
            self._due_s = float("-inf")
        heard: list[str] = []
        while notice := self._session.pgconn.notifies():
            if notice.relname.decode() == self._probe_channel:
                heard += self._probe_came_back()
            else:
                heard.append(notice.extra.decode())
        # Read to the end before it is closed, or the server logs a connection that was lost.
        if self._probe is not None and _has_answered(self._probe):
            self._end_probe()
        return heard

    def _probe_came_back(self) -> list[str]:
        self._awaits_probe = False
        # Jittered, so that those who were started together do not probe in step.
        pause_s = self._probe_interval_s * random.uniform(0.8, 1.2)  # noqa: S311 - jitter, not a secret
        self._due_s = self._read_s() + pause_s
        was_hearing, self.hears = self.hears, True
        if self._failures:
            self._failures = 0
            _log.info("notices are back", extra=self._facts())
        return [] if was_hearing else [ANYTHING]

    def _fail(self, reason: str) -> None:
        """Note an outage, told once, and put the next attempt off for longer each time."""
        if not self._failures:
            _log.warning(
                "notices do not arrive; polling only", extra={**self._facts(), "error": reason}
            )
        self.hears = False
        self.close()
        longest_s = min(_FIRST_PAUSE_S * 2 ** min(self._failures, 16), _LONGEST_PAUSE_S)
        self._failures += 1
        # Jittered, so that the listeners of a restarted server do not come back as one.
        pause_s = random.uniform(longest_s / 2, longest_s)  # noqa: S311 - jitter, not a secret
        self._due_s = self._read_s() + pause_s

    def _facts(self) -> dict[str, str]:
        return {"alias": self._using, "channel": self._channel}

    def _end_probe(self) -> None:
        probe, self._probe = self._probe, None
        _close(probe)


def _has_answered(session: psycopg.Connection[Any]) -> bool:
    """Take in what has arrived; true when nothing that was sent awaits its answer."""
    session.pgconn.consume_input()
    while not session.pgconn.is_busy():
        result = session.pgconn.get_result()
        if result is None:
            return True
        if result.status == ExecStatus.FATAL_ERROR:
            # As a standby does, which can be listened to by nobody.
            raise psycopg.OperationalError("refused")
    return False


def _close(session: psycopg.Connection[Any] | None) -> None:
    if session is not None:
        with suppress(psycopg.Error, OSError):
            session.close()
