"""What a sweeper remembers: since when it has seen which stale row unchanged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django_runstore.supervision.stale_rows import StaleRow


@dataclass(slots=True)
class Sighting:
    """
    A stale row and when it was first seen like this.

    Attributes:
        since_ms: On the sweeper's own monotonic clock.
        is_examined: Whether its holder was looked for since.
        said: What was logged about it last, so that it is said once.
    """

    row: StaleRow
    since_ms: float
    is_examined: bool = False
    said: str = ""


class Window:
    """
    The part of the stale rows that is being watched: at most ``size`` of them.

    It stays where it is until every row that was in it at first has been examined, and
    moves on then. So the memory is bounded, and neither a page full of rows that cannot be
    taken nor one in which rows come and go hides the others.

    Attributes:
        after: The run id that the window begins behind.
        has_been_round: Whether it has come to the end since somebody set this back.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.after = ""
        self.has_been_round = False
        self._seen: dict[str, Sighting] = {}
        self._here_since_ms = math.inf
        self._looked_at_ms = 0.0

    def look(self, rows: Iterable[StaleRow], began_ms: float, ended_ms: float) -> None:
        """
        Take in what was read just now; a row that moved, or is gone, is forgotten.

        Args:
            rows: The first ``size`` stale rows behind ``after``.
            began_ms: Before the read, ``ended_ms`` after it. Time spent waiting for the
                read proves nothing about the rows, so it is never counted.
        """
        seen: dict[str, Sighting] = {}
        for row in rows:
            known = self._seen.get(row.run_id)
            is_same = known is not None and known.row == row
            seen[row.run_id] = known if known and is_same else Sighting(row, ended_ms)
        self._seen = seen
        self._looked_at_ms = began_ms
        self._here_since_ms = min(self._here_since_ms, ended_ms)

    def sightings(self) -> list[Sighting]:
        """List what is in the window, by run id."""
        return list(self._seen.values())

    def unchanged_ms(self, sighting: Sighting) -> float:
        """Tell for how long the row was seen like this at both ends."""
        return self._looked_at_ms - sighting.since_ms

    def move_on(self) -> None:
        """Go to the rows behind this window, or back to the first, once it is done with."""
        if any(
            not sighting.is_examined and sighting.since_ms <= self._here_since_ms
            for sighting in self._seen.values()
        ):
            return
        if len(self._seen) >= self.size:
            self._go(max(self._seen))
        else:
            self.has_been_round = True
            if self.after:
                self._go("")

    def forget(self) -> None:
        """Begin anew with every row: what was seen before proves nothing any more."""
        self._seen = {}
        self._here_since_ms = math.inf

    def _go(self, after: str) -> None:
        self.after = after
        self.forget()
