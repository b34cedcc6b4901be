"""Evidence and doubts as people read them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_runstore.admin.wording import duration, shown_text
from django_runstore.evidence import EvidenceKind, LivenessEvidence
from django_runstore.owners import OwnerId
from django_runstore.supervision.doubts import Doubt

_KINDS: Final[Mapping[str, Promise]] = {
    EvidenceKind.SAME_HOST_PID_DEAD: gettext_lazy("process gone, seen on its own host"),
    EvidenceKind.CROSS_HOST_UNREACHABLE_STALE: gettext_lazy("lease expired on another host"),
    EvidenceKind.LEASE_EXPIRED: gettext_lazy("lease expired"),
}


def kind_in_words(kind: str) -> str:
    """Name a kind of evidence; one that another tool wrote stands as it is."""
    return str(_KINDS[kind]) if kind in _KINDS else shown_text(kind)


def grounds(kind: str, holder: OwnerId | None) -> str:
    """
    Say what is held against an owner, to go on after "because".

    Args:
        holder: Who the evidence speaks of, when that is known.
    """
    process = _("its process")
    if holder is not None:
        process = _("process %(pid)s on %(host)s") % {"pid": holder.pid, "host": holder.host_name}
    match kind:
        case EvidenceKind.SAME_HOST_PID_DEAD:
            return _("%(process)s no longer exists") % {"process": process}
        case EvidenceKind.CROSS_HOST_UNREACHABLE_STALE:
            return _("the lease of %(process)s expired, and that host cannot be looked into") % {
                "process": process
            }
        case EvidenceKind.LEASE_EXPIRED:
            return _("the lease of %(process)s expired") % {"process": process}
        case _:
            return shown_text(kind)


def silence(checked_at_ms: object, stamp_ms: object) -> str | None:
    """Say how long before the check the last heartbeat was, if both are known."""
    if not isinstance(checked_at_ms, int) or not isinstance(stamp_ms, int):
        return None
    lasted = duration(max(0, checked_at_ms - stamp_ms))
    return _("last heartbeat %(duration)s before") % {"duration": lasted}


def observed_pairs(observed: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Spell what was seen: names and values, safe to show."""
    for key, value in (observed or {}).items():
        yield shown_text(str(key)), shown_text(str(value))


def evidence_in_words(evidence: LivenessEvidence) -> str:
    """Say on one line what speaks against an owner, and what that rests on."""
    said = grounds(str(evidence.kind), evidence.expected_owner)
    pairs = ", ".join(f"{key} {value}" for key, value in observed_pairs(evidence.observed))
    if not pairs:
        return said
    return _("%(grounds)s (observed: %(pairs)s)") % {"grounds": said, "pairs": pairs}


def doubt_in_words(doubt: Doubt) -> str:
    """Say why somebody is not taken for dead."""
    return shown_text(_(doubt.words) % doubt.details)
