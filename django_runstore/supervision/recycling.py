"""When a worker has done enough: handlers leak memory and leave things behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class RecycleRule:
    """
    After what a worker is replaced, always between two runs.

    Attributes:
        most_runs: How many runs it executes; None for any number.
        most_mib: Above how much resident memory, in MiB; None for any. Asked after each run,
            where the system tells.
    """

    most_runs: int | None = None
    most_mib: int | None = None

    def reason(self, runs: int, resident_bytes: Callable[[], int | None]) -> str | None:
        """
        Say in words why a worker is to be replaced; None while it is not.

        Args:
            runs: How many it has executed.
            resident_bytes: Asks for its memory; None where the system does not tell.
        """
        if self.most_runs is not None and runs >= self.most_runs:
            return f"it has executed {runs} of {self.most_runs} runs"
        held = None if self.most_mib is None else resident_bytes()
        if held is not None and self.most_mib is not None and held > self.most_mib * MIB:
            return f"it holds {held // MIB} MiB, more than {self.most_mib}"
        return None
