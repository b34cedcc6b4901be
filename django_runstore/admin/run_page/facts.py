"""Ownership facts as values: who had the run, under which fence, and why it changed hands."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_runstore.admin.evidence_words import grounds, kind_in_words, observed_pairs, silence
from django_runstore.admin.wording import moment, shown_text
from django_runstore.models import JournalEntry
from django_runstore.owners import OwnerId
from django_runstore.services.facts import EVENT_PREFIX

CHANGES: Final[Mapping[str, Promise]] = {
    "claimed": gettext_lazy("claimed"),
    "activated": gettext_lazy("became the owner"),
    "released": gettext_lazy("gave it up"),
    "stolen": gettext_lazy("took it over"),
    "expired": gettext_lazy("claim cleared"),
}


@dataclass(frozen=True, slots=True)
class FactEvidence:
    """What a takeover was based on, as the fact says it."""

    kind: str
    observer: OwnerId | None
    observed: Sequence[tuple[str, str]]
    checked_at_ms: int | None
    last_heartbeat_at_ms: int | None


@dataclass(frozen=True, slots=True)
class HandOver:
    """
    One change of hands.

    Attributes:
        change: ``claimed``, ``activated``, ``released``, ``stolen`` or ``expired``; whatever
            another tool wrote otherwise.
        displaced: From whom it was taken, as far as the history that was read tells.
    """

    seq: int
    at_ms: int
    change: str
    holder: OwnerId | None
    fence: int | None
    evidence: FactEvidence | None = None
    displaced: OwnerId | None = None

    @property
    def moment(self) -> str:
        """When it was, in the time zone in force."""
        return moment(self.at_ms)

    @property
    def change_in_words(self) -> str:
        """What happened, to stand beside who did it."""
        return str(CHANGES[self.change]) if self.change in CHANGES else shown_text(self.change)

    @property
    def holder_name(self) -> str:
        """Who it is about, on one line."""
        return "-" if self.holder is None else shown_text(self.holder.describe())

    @property
    def observer_name(self) -> str:
        """Who saw that the other was gone."""
        if self.evidence is None or self.evidence.observer is None:
            return ""
        return shown_text(self.evidence.observer.describe())

    @property
    def kind_in_words(self) -> str:
        """The kind of the evidence, in words."""
        return "" if self.evidence is None else kind_in_words(self.evidence.kind)

    @property
    def reason(self) -> str:
        """Why it changed hands, in a sentence; empty where nobody lost anything."""
        evidence = self.evidence
        if evidence is None:
            return ""
        gone = self.holder if self.change == "expired" else self.displaced
        values = {"holder": self.holder_name, "grounds": grounds(evidence.kind, gone)}
        if self.change == "stolen":
            said = _("taken over by %(holder)s because %(grounds)s") % values
        elif self.change == "expired":
            said = _("claim of %(holder)s cleared because %(grounds)s") % values
        else:
            said = values["grounds"]
        gap = silence(evidence.checked_at_ms, evidence.last_heartbeat_at_ms)
        return said if gap is None else f"{said}; {gap}"


def hand_overs(entries: Iterable[JournalEntry]) -> list[HandOver]:
    """
    Read facts in ascending order, and tell each takeover from whom it took.

    What another tool wrote into the journal may be anything; it is shown as far as it goes.
    """
    found: list[HandOver] = []
    owner: OwnerId | None = None
    for entry in entries:
        fact = _read(entry)
        if fact.change == "stolen":
            fact = replace(fact, displaced=owner)
        elif fact.change == "activated":
            owner = fact.holder
        elif fact.change == "released" and fact.holder == owner:
            owner = None
        found.append(fact)
    return found


def _read(entry: JournalEntry) -> HandOver:
    payload = _mapping(entry.payload_json)
    return HandOver(
        entry.seq,
        entry.emitted_at_ms,
        entry.event_type.removeprefix(EVENT_PREFIX),
        _identity(payload.get("owner")),
        _integer(payload.get("fence")),
        _evidence(payload.get("evidence")),
    )


def _evidence(value: object) -> FactEvidence | None:
    if not isinstance(value, dict):
        return None
    observed = value.get("observed")
    return FactEvidence(
        str(value.get("kind", "")),
        _identity(value.get("observer")),
        tuple(observed_pairs(observed if isinstance(observed, dict) else None)),
        _integer(value.get("checked_at_ms")),
        _integer(value.get("last_heartbeat_at_ms")),
    )


def _identity(value: object) -> OwnerId | None:
    if not isinstance(value, dict):
        return None
    host_id, nonce = value.get("host_id"), value.get("nonce")
    pid = _integer(value.get("pid"))
    if not isinstance(host_id, str) or not isinstance(nonce, str) or pid is None:
        return None
    return OwnerId(host_id, pid, nonce)


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _mapping(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
