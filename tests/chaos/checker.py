"""
Prove from rows, journal and effects that runs were owned by one process at a time.

``python -m tests.chaos.checker EFFECTS`` over the database of ``DATABASE_URL`` prints what
is wrong and exits with 1. Nothing here trusts the services: it reads tables and a file.
"""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PREFIX = "runstore.ownership."


@dataclass(frozen=True)
class Effect:
    """One line that a handler appended outside the database."""

    run_id: str
    fence: int
    step: str


def read_effects(path: Path) -> list[Effect]:
    """Read the append-only file, oldest first."""
    if not path.exists():
        return []
    lines = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return [Effect(run_id, int(fence), step) for run_id, fence, step in lines]


def faults(runs: Iterable, entries: Iterable, effects: Iterable[Effect]) -> Iterator[str]:
    """
    Name everything that contradicts single ownership.

    Args:
        runs: ``Run`` rows.
        entries: ``JournalEntry`` rows of the companion stream, in sequence order per run.
        effects: In the order in which they happened.
    """
    histories = defaultdict(list)
    for entry in entries:
        histories[entry.run_id].append(entry)
    by_run = defaultdict(list)
    for effect in effects:
        by_run[effect.run_id].append(effect)
    for run in runs:
        history = histories.pop(run.run_id, [])
        yield from (f"{run.run_id}: {fault}" for fault in _run_faults(run, history))
        yield from (
            f"{run.run_id}: {fault}"
            for fault in _effect_faults(run, history, by_run.pop(run.run_id, []))
        )
    yield from (f"{run_id}: facts without a run" for run_id in histories)
    yield from (f"{run_id}: effects without a run" for run_id in by_run)


def _run_faults(run, history) -> Iterator[str]:
    """Replay the facts and hold the row against where they end."""
    if [entry.seq for entry in history] != list(range(len(history))):
        yield "the facts have gaps"
    if run.ownership_seq != len(history):
        yield f"the row counts {run.ownership_seq} facts, the journal has {len(history)}"
    replay = Replay()
    for entry in history:
        what = entry.event_type.removeprefix(PREFIX)
        yield from replay.apply(what, json.loads(entry.payload_json))
    yield from _row_faults(run, replay.granted, replay.claim, replay.owner)


class Replay:
    """Who holds a run, by its facts alone. A holder is a fence with an identity."""

    def __init__(self) -> None:
        self.granted = 0
        self.claim = None
        self.owner = None

    def apply(self, what, payload) -> Iterator[str]:
        """Move on by one fact and name what it contradicts."""
        holder = payload["fence"], tuple(sorted(payload["owner"].items()))
        steps = {
            "claimed": self._grant,
            "stolen": self._steal,
            "activated": self._activate,
            "released": self._release,
            "expired": self._expire,
        }
        if what not in steps:
            yield f"unknown fact {what}"
        else:
            yield from steps[what](holder, payload)

    def _grant(self, holder, _) -> Iterator[str]:
        if self.owner is not None:
            yield f"claimed as {holder[0]} while {self.owner[0]} owned it"
        yield from self._count(holder)

    def _steal(self, holder, payload) -> Iterator[str]:
        yield from _evidence_faults(payload, self.owner)
        yield from self._count(holder)

    def _count(self, holder) -> Iterator[str]:
        if holder[0] != self.granted + 1:
            yield f"grant {holder[0]} follows grant {self.granted}"
        if self.claim is not None:
            yield f"granted {holder[0]} while claim {self.claim[0]} was pending"
        self.granted, self.claim = holder[0], holder

    def _activate(self, holder, _) -> Iterator[str]:
        if self.claim != holder:
            yield f"activated {holder[0]} without its claim"
        self.claim, self.owner = None, holder

    def _release(self, holder, _) -> Iterator[str]:
        if self.owner == holder:
            # The owner gives up everything, a stealer's pending claim included.
            self.owner = self.claim = None
        elif self.claim == holder:
            self.claim = None
        else:
            yield f"{holder[0]} was released by somebody who did not hold it"

    def _expire(self, holder, payload) -> Iterator[str]:
        if self.claim != holder:
            yield f"claim {holder[0]} expired, but it was not there"
        if not payload.get("evidence"):
            yield f"claim {holder[0]} expired without evidence"
        self.claim = None


def _evidence_faults(payload, owner) -> Iterator[str]:
    evidence = payload.get("evidence")
    if not evidence:
        yield f"stolen as {payload['fence']} without evidence"
        return
    if owner is None:
        yield f"stolen as {payload['fence']} from nobody"
    if evidence["last_heartbeat_at_ms"] >= evidence["checked_at_ms"]:
        yield f"stolen as {payload['fence']} from an owner that was beating"


def _row_faults(run, granted, claim, owner) -> Iterator[str]:
    if run.fence != granted:
        yield f"the row's fence is {run.fence}, the last grant was {granted}"
    row_owner = None
    if run.owner_host_id is not None:
        identity = {
            "host_id": run.owner_host_id,
            "nonce": run.owner_nonce,
            "pid": run.owner_pid,
        }
        row_owner = (run.owner_fence, tuple(sorted(identity.items())))
    if row_owner != owner:
        yield f"the row says {row_owner} owns it, the journal says {owner}"
    if (run.claim_host_id is not None) != (claim is not None):
        yield "row and journal disagree about a claim"


def _effect_faults(run, history, effects) -> Iterator[str]:
    """An older fence must be silent once a newer one has acted; each step once per fence."""
    activated = {
        json.loads(entry.payload_json)["fence"]
        for entry in history
        if entry.event_type == f"{PREFIX}activated"
    }
    newest = 0
    seen = set()
    for effect in effects:
        if effect.fence not in activated:
            yield f"an effect under fence {effect.fence}, which was never activated"
        if effect.fence < newest:
            yield f"fence {effect.fence} acted after fence {newest} had"
        newest = max(newest, effect.fence)
        if (effect.fence, effect.step) in seen:
            yield f"step {effect.step} happened twice under fence {effect.fence}"
        seen.add((effect.fence, effect.step))
    if run.status == "completed" and not effects:
        yield "completed without any effect"


def main(effects_path: str) -> int:
    """Check the database that Django's settings name."""
    import django  # noqa: PLC0415 - a script that sets Django up itself

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "testproject.settings")
    django.setup()
    from django_runstore.models import JournalEntry, Run  # noqa: PLC0415 - as above

    runs = list(Run.objects.order_by("run_id"))
    entries = JournalEntry.objects.filter(companion="run-store").order_by("run_id", "seq")
    found = list(faults(runs, entries, read_effects(Path(effects_path))))
    sys.stdout.write(("\n".join(found) or f"{len(runs)} runs, no fault") + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
