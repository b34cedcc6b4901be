"""What the specification says happens to attempts: run-store 5.2 and 5.3, and D7."""

import json
from dataclasses import dataclass
from typing import Any

from tests.verification.reference_rows import Answer, By, Run

IN_PROGRESS = "running"
ABSENT = "absent"

Key = tuple[str, str, int]


@dataclass
class Attempt:
    """One attempt; a value is in its canonical spelling, or absent."""

    state: str
    started: int
    meta: str
    finished: int | None = None
    heartbeat: int | None = None
    checkpoint: str = ABSENT
    error: str = ABSENT
    outcome: str = ABSENT

    def replace(self, values: dict[str, str]) -> None:
        """What is absent is kept."""
        for name, value in values.items():
            if value != ABSENT:
                setattr(self, name, value)


def canonical(value: Any) -> str:
    """Spell a JSON value so that equal texts mean the same: 1 is 1.0 and not true."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _plain(member) for key, member in value.items()}
        case list():
            return [_plain(member) for member in value]
        case _:
            return value


class AttemptReference:
    """The operations; whether the fence holds is asked of the run's row alone."""

    def __init__(self, runs: dict[str, Run]) -> None:
        self.attempts: dict[Key, Attempt] = {}
        self._runs = runs

    def _holds(self, run_id: str, by: By) -> bool:
        run = self._runs.get(run_id)
        return run is not None and run.is_owned(by)

    def put(self, key: Key, attempt: Attempt, by: By, *, upserts: bool) -> Answer:
        stored = self.attempts.get(key)
        if not self._holds(key[0], by):
            return ("fence_lost",) if key[0] in self._runs else ("run_missing",)
        if stored is None:
            self.attempts[key] = attempt
            return ("inserted",)
        if upserts and stored.state == IN_PROGRESS:
            self.attempts[key] = attempt
            return ("upserted",)
        return ("existing_same",) if stored == attempt else ("conflict",)

    def _hinders(self, key: Key, by: By) -> Answer | None:
        stored = self.attempts.get(key)
        if stored is None:
            return ("not_found",)
        if not self._holds(key[0], by):
            return ("fence_lost",)
        return None if stored.state == IN_PROGRESS else ("state_changed",)

    def heartbeat(self, key: Key, by: By, now: int, checkpoint: str) -> Answer:
        if hindered := self._hinders(key, by):
            return hindered
        stored = self.attempts[key]
        stored.heartbeat = now if stored.heartbeat is None else max(stored.heartbeat, now)
        stored.replace({"checkpoint": checkpoint})
        return ("updated",)

    def finish(self, key: Key, by: By, state: str, finished: int, values: dict[str, str]) -> Answer:
        if hindered := self._hinders(key, by):
            return hindered
        stored = self.attempts[key]
        stored.state, stored.finished = state, finished
        stored.replace(values)
        return ("finished",)

    def patch(self, key: Key, by: By, values: dict[str, str]) -> Answer:
        hindered = self._hinders(key, by)
        if hindered not in (None, ("state_changed",)):
            return hindered
        self.attempts[key].replace(values)
        return ("patched",)
