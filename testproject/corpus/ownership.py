"""Read the journal: who owned each run, and on what evidence it changed hands."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django_runstore.models import JournalEntry


@dataclass(frozen=True, slots=True)
class Fact:
    """One ownership fact, decoded."""

    run_id: str
    what: str
    at_ms: int
    payload: dict[str, Any]

    @property
    def fence(self) -> int:
        """The grant it speaks of."""
        return int(self.payload["fence"])

    @property
    def pid(self) -> int:
        """The process id of the owner it names."""
        return int(self.payload["owner"]["pid"])


def facts_of(run_ids: Iterable[str]) -> dict[str, list[Fact]]:
    """Give every run's ownership facts in order."""
    found: dict[str, list[Fact]] = {run_id: [] for run_id in run_ids}
    entries = JournalEntry.objects.filter(run_id__in=found, companion="run-store")
    for entry in entries.order_by("run_id", "seq"):
        what = entry.event_type.rsplit(".", 1)[-1]
        payload = json.loads(entry.payload_json)
        found[entry.run_id].append(Fact(entry.run_id, what, entry.emitted_at_ms, payload))
    return found


def takeovers(facts: Iterable[Fact]) -> list[Fact]:
    """Pick the facts that took a run from somebody."""
    return [fact for fact in facts if fact.what == "stolen"]


def story(facts: Iterable[Fact], names: dict[int, str]) -> str:
    """Tell the owners of one run on one line."""
    steps: list[str] = []
    taken = 0  # the fence of a takeover, which only puts the run back
    for fact in facts:
        who = names.get(fact.pid, f"pid {fact.pid}")
        if fact.what == "stolen":
            taken = fact.fence
            steps.append(f"taken back by {who} (fence {taken}): {evidence_in_words(fact)}")
        elif fact.what == "activated" and fact.fence != taken:
            steps.append(f"{who} (fence {fact.fence})")
    return " -> ".join(steps)


def evidence_in_words(fact: Fact) -> str:
    """Say what a takeover was based on."""
    evidence = fact.payload["evidence"]
    silence_s = (evidence["checked_at_ms"] - evidence["last_heartbeat_at_ms"]) / 1000
    observed = evidence["observed"] or {}
    grounds = [f"silent for {silence_s:.1f} s"]
    if observed.get("process") == "gone":
        grounds.append(f"process {observed['pid']} no longer exists")
    if observed.get("lock") == "free":
        grounds.append("no worker of it is left")
    return f"{', '.join(grounds)} [{evidence['kind']}]"


def broken_orders(facts: dict[str, list[Fact]]) -> Iterator[str]:
    """
    Name every run whose facts do not show one owner at a time.

    Fences rise with every grant, and a run is activated again only after it was released
    by its owner or stolen from it.
    """
    for run_id, history in facts.items():
        holder: int | None = None
        last_grant = 0
        for fact in history:
            if fact.what in {"claimed", "stolen"}:
                if fact.fence != last_grant + 1:
                    yield f"{run_id}: grant {fact.fence} follows grant {last_grant}"
                last_grant = fact.fence
                if fact.what == "claimed" and holder is not None:
                    yield f"{run_id}: claimed while fence {holder} held it"
                holder = None
            elif fact.what == "activated":
                holder = fact.fence
            elif fact.what == "released" and holder == fact.fence:
                holder = None
        if holder is not None:
            yield f"{run_id}: fence {holder} was never released"
