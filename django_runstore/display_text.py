"""Show text that others chose: on one line, bounded, whatever it holds."""

from typing import Final

_LONGEST: Final = 80


def printable(text: str) -> str:
    """Show an id or a name: escaped where it would break the line, cut where it is long."""
    shown = text if text.isprintable() else ascii(text)[1:-1]
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
