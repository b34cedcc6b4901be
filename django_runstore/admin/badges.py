"""A status as a badge: its word, and a shape that tells it apart where colours do not."""

from collections.abc import Mapping
from typing import Final

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from django_runstore.states import RunStatus

# Drawn with attributes and not with styles, which a strict content security policy refuses.
_SHAPES: Final[Mapping[RunStatus, str]] = {
    RunStatus.PENDING: '<circle cx="8" cy="8" r="6" fill="none" stroke-dasharray="3 2.3"/>',
    RunStatus.RUNNING: '<path d="M4 2.5v11l9-5.5z" fill="currentColor"/>',
    RunStatus.SUSPENDED: '<path d="M5 3v10M11 3v10" fill="none" stroke-width="3"/>',
    RunStatus.COMPLETED: '<path d="M2.5 8.5l4 4 7-9" fill="none"/>',
    RunStatus.FAILED: '<path d="M3 3l10 10M13 3L3 13" fill="none"/>',
    RunStatus.CANCELLED: '<circle cx="8" cy="8" r="6" fill="none"/><path d="M3.8 12.2l8.4-8.4"/>',
}
_WARNING: Final = '<path d="M8 2l6.5 12h-13z" fill="none"/><path d="M8 6.5v3.5M8 11.5v1"/>'


def status_badge(status: str) -> SafeString:
    """Show a status; one that is not known keeps its word and has no shape."""
    if status not in RunStatus.values:
        return format_html('<span class="runstore-badge">{}</span>', status)
    known = RunStatus(status)
    return format_html(
        '<span class="runstore-badge runstore-badge--{}">{}<span>{}</span></span>',
        known.value,
        _drawn(_SHAPES[known]),
        known.label,
    )


def attention_mark(text: str) -> SafeString:
    """Show that something needs a look, in words as well as by a sign."""
    return format_html(
        '<span class="runstore-badge runstore-badge--attention">{}<span>{}</span></span>',
        _drawn(_WARNING),
        text,
    )


def _drawn(shape: str) -> SafeString:
    return mark_safe(  # noqa: S308 - one of the drawings above
        '<svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true" focusable="false" '
        f'stroke="currentColor" stroke-width="2">{shape}</svg>'
    )
