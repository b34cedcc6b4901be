"""Show the runs while they run: a picture that repaints itself, or plain lines in a pipe."""

import json
import sys
import time
from typing import TextIO

from django_runstore.models import Run

BAR = 24
PLAIN_EVERY_S = 2.0
_UP = "\x1b[{}F"
_CLEAR_BELOW = "\x1b[0J"


class Display:
    """Print what is going on. ``note`` lines stay; the picture below them is repainted."""

    def __init__(self, names: dict[int, str], total: int, out: TextIO = sys.stdout) -> None:
        self._names = names
        self._total = total
        self._out = out
        self._live = out.isatty()
        self._painted = 0
        self._last_plain = 0.0
        self._began = time.monotonic()

    def note(self, text: str) -> None:
        """Print a line that stays."""
        self._erase()
        self._out.write(f"{self._clock()}  {text}\n")
        self._out.flush()

    def show(self, queue: str) -> None:
        """Paint the state of all runs of a queue."""
        runs = list(Run.objects.filter(queue=queue).defer("state_json", "result_json"))
        done = sum(run.status == "completed" for run in runs)
        if self._live:
            self._paint(runs, done)
        elif time.monotonic() - self._last_plain >= PLAIN_EVERY_S:
            self._last_plain = time.monotonic()
            running = "; ".join(self._line(run) for run in runs if run.status == "running")
            self._out.write(f"{self._clock()}  {done}/{self._total} runs done; {running}\n")
            self._out.flush()

    def close(self) -> None:
        """Leave the last picture standing."""
        self._painted = 0

    def _clock(self) -> str:
        return f"{time.monotonic() - self._began:6.1f} s"

    def _paint(self, runs: list[Run], done: int) -> None:
        filled = BAR * done // max(self._total, 1)
        lines = [f"  [{'#' * filled}{'.' * (BAR - filled)}] {done} of {self._total} runs done"]
        lines += [f"    {self._line(run)}" for run in runs if run.status == "running"]
        self._erase()
        self._out.write("\n".join(lines) + "\n")
        self._out.flush()
        self._painted = len(lines)

    def _line(self, run: Run) -> str:
        share = run.run_id.split("/", 1)[-1]
        owner = self._names.get(run.owner_pid or 0, f"pid {run.owner_pid}")
        done = json.loads(run.progress_json)["message"] if run.progress_json else "begun"
        return f"{share} by {owner}, fence {run.owner_fence}: {done}"

    def _erase(self) -> None:
        if self._painted:
            self._out.write(_UP.format(self._painted) + _CLEAR_BELOW)
            self._painted = 0
