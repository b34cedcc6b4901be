"""The ownership facts of a run as a table: who had it, since when, and why it changed hands."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_runstore.admin.tables import table_of_newest
from django_runstore.admin.wording import duration, moment, shown_text
from django_runstore.evidence import EvidenceKind
from django_runstore.models import JournalEntry
from django_runstore.owners import OwnerId
from django_runstore.services.facts import COMPANION, EVENT_PREFIX

MOST_FACTS: Final = 100

_CHANGES: Final[Mapping[str, Promise]] = {
    "claimed": gettext_lazy("claimed"),
    "activated": gettext_lazy("became the owner"),
    "released": gettext_lazy("gave it up"),
    "stolen": gettext_lazy("took it over"),
    "expired": gettext_lazy("claim cleared"),
}
_GROUNDS: Final[Mapping[str, Promise]] = {
    EvidenceKind.SAME_HOST_PID_DEAD: gettext_lazy("its process no longer exists"),
    EvidenceKind.CROSS_HOST_UNREACHABLE_STALE: gettext_lazy(
        "its lease expired on a host that cannot be looked into"
    ),
    EvidenceKind.LEASE_EXPIRED: gettext_lazy("its lease expired"),
}
_TAKINGS: Final[Mapping[str, Promise]] = {
    "stolen": gettext_lazy("taken over because %(grounds)s"),
    "expired": gettext_lazy("claim cleared because %(grounds)s"),
}


def ownership_table(run_id: str, using: str) -> SafeString | str:
    """Show the newest ``MOST_FACTS`` facts, the newest first."""
    facts = JournalEntry.objects.using(using).filter(run_id=run_id, companion=COMPANION)
    newest = list(facts.order_by("-seq")[: MOST_FACTS + 1])
    if not newest:
        return _("Nobody has claimed it yet.")
    headings = (_("When"), _("What"), _("Who"), _("Fence"), _("Evidence"), _("In words"))
    return table_of_newest(newest, MOST_FACTS, headings, _row)


def _row(fact: JournalEntry) -> tuple[str, ...]:
    name = fact.event_type.removeprefix(EVENT_PREFIX)
    payload = _mapping(fact.payload_json)
    evidence = payload.get("evidence")
    kind, words = "", ""
    if isinstance(evidence, dict):
        kind = str(evidence.get("kind", ""))
        words = "; ".join(_evidence_in_words(name, kind, evidence))
    return (
        moment(fact.emitted_at_ms),
        str(_CHANGES.get(name, shown_text(name))),
        _identity(payload.get("owner")),
        _fence(payload.get("fence")),
        shown_text(kind),
        shown_text(words),
    )


def _evidence_in_words(name: str, kind: str, evidence: Mapping[str, Any]) -> Iterator[str]:
    observed = evidence.get("observed")
    seen = observed if isinstance(observed, dict) else {}
    grounds = _grounds(kind, seen.get("pid"))
    yield _TAKINGS[name] % {"grounds": grounds} if name in _TAKINGS else grounds
    checked, beaten = evidence.get("checked_at_ms"), evidence.get("last_heartbeat_at_ms")
    if isinstance(checked, int) and isinstance(beaten, int):
        silence = duration(max(0, checked - beaten))
        yield _("last heartbeat %(duration)s before") % {"duration": silence}
    if observer := _identity(evidence.get("observer")):
        yield _("seen by %(observer)s") % {"observer": observer}
    if seen:
        pairs = ", ".join(f"{key} {value}" for key, value in seen.items())
        yield _("observed: %(pairs)s") % {"pairs": pairs}


def _grounds(kind: str, pid: object) -> str:
    if kind == EvidenceKind.SAME_HOST_PID_DEAD and isinstance(pid, int):
        return _("process %(pid)s no longer exists") % {"pid": pid}
    return str(_GROUNDS.get(kind, kind))


def _fence(value: object) -> str:
    return str(value) if isinstance(value, int) else ""


def _identity(value: object) -> str:
    if not isinstance(value, dict):
        return ""
    host_id, pid, nonce = (value.get(part) for part in ("host_id", "pid", "nonce"))
    if not isinstance(host_id, str) or not isinstance(pid, int) or not isinstance(nonce, str):
        return ""
    return shown_text(OwnerId(host_id, pid, nonce).describe())


def _mapping(text: str) -> Mapping[str, Any]:
    """Read a payload; what another tool wrote there may be anything."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
