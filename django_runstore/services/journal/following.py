"""Follow a stream: what is there, and then what is committed. Spec: run-store 8.7 stream."""

import random
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import closing
from typing import Final

from asgiref.sync import sync_to_async
from django.db import connections

from django_runstore.db.boundary import is_nested
from django_runstore.db.journal_notices import CHANNEL, notice_of
from django_runstore.db.listening import Listener
from django_runstore.events import EntryPage, EntryRecord
from django_runstore.models import JournalEntry
from django_runstore.services.journal import arguments
from django_runstore.services.journal.reading import DEFAULT_PAGE, Reading
from django_runstore.services.journal.streams import Reader, Stream, reading
from django_runstore.services.twin import joins_a_block

POLL_INTERVAL_MS: Final = 1_000

_OPERATION: Final = "follow"


class Following(Reading):
    """
    Polling is what finds every entry; notices make the wait for the next one short.

    The entries of a stream become visible in the order of their sequence, so that what was
    committed behind a cursor is never found before it.
    """

    def follow(
        self,
        run_id: str,
        after: int | None = None,
        *,
        event_types: Sequence[str] | None = None,
        companion: str = "",
        page_size: int = DEFAULT_PAGE,
        poll_interval_ms: int = POLL_INTERVAL_MS,
    ) -> Generator[EntryRecord, None, None]:
        """
        Yield the entries of a stream after a cursor, then each one soon after its commit.

        Without end: close the generator, or leave it, to stop. To be used outside atomic
        blocks, in which there is no telling yet what will be committed.

        Args:
            after: The sequence to go on after; ``None`` begins at the start.
            event_types: Only these exact types, 1 to 64 of them; ``None`` for all.
            page_size: Entries read at once, 1 to 10,000.
            poll_interval_ms: The longest time between two looks. On PostgreSQL an event that
                was emitted ends the wait; ownership facts, notes and SQLite are polled for.

        Raises:
            InvalidEvent: an argument breaks the contract; raised by the call itself.
            RuntimeError: used inside an atomic block.
            Compacted, JournalDecodeFailed, ReadFailed: as ``entries``. Follow again from the
                last entry once the cause is gone.
        """
        trail = self._trail(run_id, after, event_types, companion, page_size, poll_interval_ms)
        return self._follow(trail)

    def afollow(
        self,
        run_id: str,
        after: int | None = None,
        *,
        event_types: Sequence[str] | None = None,
        companion: str = "",
        page_size: int = DEFAULT_PAGE,
        poll_interval_ms: int = POLL_INTERVAL_MS,
    ) -> AsyncGenerator[EntryRecord, None]:
        """
        Async twin of ``follow``. Wrap it in ``contextlib.aclosing`` to stop at once.

        Waiting holds no thread.
        """
        trail = self._trail(run_id, after, event_types, companion, page_size, poll_interval_ms)
        return self._afollow(trail)

    def _trail(
        self,
        run_id: object,
        after: object,
        event_types: object,
        companion: object,
        page_size: object,
        poll_interval_ms: object,
    ) -> "_Trail":
        return _Trail(
            self,
            self._stream(_OPERATION, run_id, companion),
            arguments.cursor(_OPERATION, after),
            arguments.event_types(_OPERATION, event_types),
            arguments.page_size(_OPERATION, page_size),
            arguments.positive(_OPERATION, poll_interval_ms, "poll_interval_ms"),
        )

    def _follow(self, trail: "_Trail") -> Generator[EntryRecord, None, None]:
        with reading(trail.reader), closing(trail.listener()) as listener:
            while True:
                page = trail.look()
                for entry in page.entries:
                    trail.reader.after = entry.seq
                    yield entry
                if not page.has_more:
                    trail.skip()
                    listener.pause(trail.wait_seconds())

    async def _afollow(self, trail: "_Trail") -> AsyncGenerator[EntryRecord, None]:
        look = sync_to_async(trail.look, thread_sensitive=True)
        with reading(trail.reader), closing(trail.listener()) as listener:
            while True:
                page = await look()
                for entry in page.entries:
                    trail.reader.after = entry.seq
                    yield entry
                if not page.has_more:
                    trail.skip()
                    await listener.apause(trail.wait_seconds())

    def _look(
        self, reader: Reader, stream: Stream, types: tuple[str, ...] | None, most: int
    ) -> tuple[EntryPage, int]:
        """Read the next page, and how far the stream is known to hold nothing else."""
        self._refuse_inside_a_block()
        seen = -1
        if types is not None:
            # Before the page: all up to here is visible by now, wanted or not.
            seen = self._read(_OPERATION, lambda: self._end(stream))
        return self._page(_OPERATION, stream, reader.after, types, most), seen

    def _end(self, stream: Stream) -> int:
        entries = JournalEntry.objects.using(self.using).filter(**stream.named).order_by("-seq")
        return next(iter(entries.values_list("seq", flat=True)[:1]), -1)

    def _refuse_inside_a_block(self) -> None:
        raw = is_nested(self.using) and not connections[self.using].in_atomic_block
        if raw or joins_a_block(self.using):
            message = (
                "Journal.follow was used inside a transaction, which shows what may never be "
                "committed or hides what is; use it outside"
            )
            raise RuntimeError(message)


class _Trail:
    """Where a consumer is in its stream, and how it goes on."""

    def __init__(
        self,
        journal: Following,
        stream: Stream,
        after: int,
        types: tuple[str, ...] | None,
        page_size: int,
        poll_interval_ms: int,
    ) -> None:
        self._journal = journal
        self._stream = stream
        self._types = types
        self._page_size = page_size
        self._poll_interval_ms = poll_interval_ms
        self._seen = -1
        self.reader = Reader(journal.using, stream, after)

    def listener(self) -> Listener:
        notice = notice_of(self._stream.run_id, self._stream.companion)
        return Listener(self._journal.using, CHANNEL, lambda payload: payload == notice)

    def look(self) -> EntryPage:
        page, self._seen = self._journal._look(  # noqa: SLF001 - one thing in two classes
            self.reader, self._stream, self._types, self._page_size
        )
        return page

    def skip(self) -> None:
        """Pass over entries of other types, so that they are not read again and again."""
        self.reader.after = max(self.reader.after, self._seen)

    def wait_seconds(self) -> float:
        """Jittered, so that readers that began together do not poll as one."""
        longest = self._poll_interval_ms / 1_000
        return random.uniform(longest / 2, longest)  # noqa: S311 - jitter, not a secret
