"""Words for the log lines of supervisors and workers, kept on one line and free of payload."""

from __future__ import annotations

import logging
from typing import Final

from django_runstore.display_text import printable

_MEASURED: Final = ("runs", "code", "unconfirmed_ms", "late_ms", "hanging_ms", "outage_ms")


def counted(number: int, noun: str) -> str:
    """Say how many: ``1 run``, ``2 runs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class LineFormatter(logging.Formatter):
    """
    Time and message, and what the record knows that its message does not say.

    The messages about leases are fixed texts for programs to look for; which run they speak
    of, and how late something was, is in the fields of the record alone.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03d %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - of the base class
        """Write the line."""
        line = super().formatMessage(record)
        known = record.__dict__
        facts = [f"{name} {known[name]}" for name in _MEASURED if name in known]
        if "run_id" in known:
            run_id = printable(str(known["run_id"]))
            if not record.message.startswith(f"run {run_id}:"):
                facts.insert(0, f"run_id {run_id}")
        return f"{line} ({', '.join(facts)})" if facts else line
