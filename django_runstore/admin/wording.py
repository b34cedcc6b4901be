"""Owners, moments and JSON as people read them."""

import re
from datetime import UTC, datetime
from typing import Final

from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from django_runstore.display_text import printable
from django_runstore.models import Run
from django_runstore.owners import OwnerId

_LAST_MS_OF_9999: Final = 253_402_300_799_999
_SECONDS: Final = 120
_MINUTES: Final = 120
_HOURS: Final = 48
_LONGEST_BRIEF: Final = 32
_NOTHING: Final = "-"
_UNSAFE: Final = re.compile(
    # Controls but tab and line feed, surrogates, line separators, and every mark by which a
    # text could show itself in another order than it has.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def owner_identity(run: Run) -> OwnerId | None:
    """Give the owner of a run; exactly the running ones have one."""
    return _identity(run.owner_host_id, run.owner_pid, run.owner_nonce)


def claimant_identity(run: Run) -> OwnerId | None:
    """Give who has reserved a run."""
    return _identity(run.claim_host_id, run.claim_pid, run.claim_nonce)


def owner_of(run: Run) -> str:
    """Name the owner on one line."""
    return _described(owner_identity(run))


def claimant_of(run: Run) -> str:
    """Name who has reserved the run."""
    return _described(claimant_identity(run))


def _identity(host_id: str | None, pid: int | None, nonce: str | None) -> OwnerId | None:
    if host_id is None or pid is None or nonce is None:
        return None
    return OwnerId(host_id, pid, nonce)


def _described(holder: OwnerId | None) -> str:
    return _NOTHING if holder is None else holder.describe()


def brief(text: str) -> str:
    """Show an id or a name so that it leaves room for the other columns of a list."""
    shown = printable(text)
    return shown if len(shown) <= _LONGEST_BRIEF else f"{shown[: _LONGEST_BRIEF - 1]}…"


def moment(ms: int | None) -> str:
    """Write a time of the store in the time zone in force."""
    if ms is None:
        return _NOTHING
    if not 0 <= ms <= _LAST_MS_OF_9999:
        return f"{ms} ms"
    return f"{date_format(local_time(ms), 'Y-m-d H:i:s')}.{ms % 1000:03}"


def time_of_day(ms: int | None, now_ms: int) -> SafeString | str:
    """Write a time of the store to the second, without the date of today; all of it is behind."""
    if ms is None or not 0 <= ms <= _LAST_MS_OF_9999:
        return moment(ms)
    local = local_time(ms)
    is_today = local.date() == local_time(now_ms).date()
    return format_html(
        '<time datetime="{}" title="{} {}">{}</time>',
        local.isoformat(timespec="milliseconds"),
        moment(ms),
        local.tzname() or "",
        date_format(local, "H:i:s" if is_today else "Y-m-d H:i:s"),
    )


def local_time(ms: int) -> datetime:
    """Give a time of the store, from 1970 to the end of year 9999, in the time zone in force."""
    at = datetime.fromtimestamp(ms // 1000, tz=UTC).replace(microsecond=ms % 1000 * 1000)
    try:
        return timezone.localtime(at)
    except OverflowError:
        # The last hours of year 9999, where a time zone leads past what Python can hold.
        return at


def duration(ms: int) -> str:
    """Say how long, in the unit that fits."""
    seconds = ms / 1000
    if seconds < _SECONDS:
        return _("%(number)s s") % {"number": number_format(seconds, 1)}
    if seconds < _MINUTES * 60:
        return _("%(number)d min") % {"number": seconds // 60}
    if seconds < _HOURS * 3600:
        return _("%(number)d h") % {"number": seconds // 3600}
    return _("%(number)d days") % {"number": seconds // 86_400}


def age(stamp_ms: int | None, now_ms: float) -> str:
    """Say how long ago a time of the store was."""
    if stamp_ms is None:
        return _NOTHING
    return _("%(duration)s ago") % {"duration": duration(max(0, int(now_ms) - stamp_ms))}


def shown_text(text: str) -> str:
    """Escape what a page cannot carry, or would show as something else than it is."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
