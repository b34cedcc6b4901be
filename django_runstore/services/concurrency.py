"""Who of a claim's candidates may run beside what runs already."""

from collections.abc import Sequence

from django_runstore.db.concurrency import live_runs, lock_keys
from django_runstore.models import Run


class Concurrency:
    """
    The room that the concurrency keys leave, within one claiming transaction.

    Args:
        using: Database alias.

    Attributes:
        closed: Keys under which this transaction claims nothing more: full, or being claimed
            under by somebody else.
    """

    def __init__(self, using: str) -> None:
        self.closed: set[str] = set()
        self._using = using
        self._live: dict[str, int] = {}

    def look_at(self, candidates: Sequence[Run]) -> None:
        """Lock and count the keys of runs that are about to be judged; two statements, or none."""
        keys = {run.concurrency_key for run in candidates if run.concurrency_key}
        new = keys - self._live.keys() - self.closed
        if not new:
            return
        locked = lock_keys(self._using, new)
        self.closed |= new - locked
        counted = live_runs(self._using, locked)
        self._live |= {key: counted.get(key, 0) for key in locked}

    def admits(self, run: Run) -> bool:
        """Tell whether fewer runs than its limit are live under its key."""
        key = run.concurrency_key
        if not key:
            return True
        if key in self.closed:
            return False
        if self._live[key] < run.concurrency_limit:
            return True
        self.closed.add(key)
        return False

    def granted(self, run: Run) -> None:
        """Count a run that this transaction has claimed."""
        if run.concurrency_key:
            self._live[run.concurrency_key] += 1
