"""Words for the log lines of supervisors and workers, kept on one line and free of payload."""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 80


def printable(text: str) -> str:
    """Show an id or a name: escaped where it would break the line, cut where it is long."""
    shown = text if text.isprintable() else ascii(text)[1:-1]
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def counted(number: int, noun: str) -> str:
    """Say how many: ``1 run``, ``2 runs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
