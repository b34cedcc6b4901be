"""A file that stays young while a supervisor is well, for those who restart what is not."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from django_runstore.supervision.pauses import Timer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

logger = logging.getLogger("django_runstore.supervision")

TOUCH_EVERY_MS: Final = 1_000
"""How often it is touched at most."""


class ProbeFile:
    """
    Touched while the loop turns and the leases at hand are confirmed; gone at the end.

    A database that is away for longer than the write tolerance does not make it grow old for
    ever: the runs are stopped then, nothing is held, and a restart would mend nothing.

    Args:
        path: Where; its folder has to exist, and be one where nobody else can write.
        is_well: Tells whether the leases are kept.
    """

    def __init__(self, path: Path, is_well: Callable[[], bool]) -> None:
        self._path = path
        self._is_well = is_well
        self._timer = Timer(TOUCH_EVERY_MS)
        self._has_failed = False

    def create(self) -> None:
        """
        Make the file, or its time now.

        Raises:
            OSError: it cannot be written.
        """
        self._path.touch()

    def turn(self) -> None:
        """Touch it, if it is time and all is well; a failure costs a line in the log."""
        if self._timer.remaining_ms() > 0 or not self._is_well():
            return
        self._timer.restart()
        try:
            self.create()
        except OSError as error:
            if not self._has_failed:
                logger.warning("the probe file could not be touched: %s", error.strerror)
            self._has_failed = True
        else:
            self._has_failed = False

    def remove(self) -> None:
        """Take it away; whoever looks for a young file finds none."""
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            logger.warning("the probe file could not be removed: %s", error.strerror)
