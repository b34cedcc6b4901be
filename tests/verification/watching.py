"""
What must hold whatever the reference says: one owner, rising fences, ends that stay.

The reference could share a misunderstanding with the services. These few rules only look
at what was answered and at the tables.
"""

import json
from collections import defaultdict
from typing import Any

from django_runstore import models
from django_runstore.models import JournalEntry, Run
from tests.verification.reference_attempts import ABSENT, Attempt, Key, canonical
from tests.verification.reference_rows import TERMINAL, Answer, By, Owner

# Answers after which nothing may have changed. Not snapshot_changed: a late activation
# gives its claim back.
LOSSES = {
    *("invalid_run", "not_found", "constraint", "already_claimed", "heartbeat_fresh"),
    *("evidence_required", "liveness_unconfirmed", "claim_lost", "claim_fresh", "claim_changed"),
    *("fence_lost", "guard_failed", "already_requested", "terminal", "not_waiting"),
    *("duplicate", "idempotency_conflict", "conflict", "run_missing", "state_changed", False),
}
OWNED_WRITES = {
    *("updated", "transitioned", "parked", "accepted", True),
    *("inserted", "upserted", "existing_same", "finished", "patched"),
}

COLUMNS = {
    "status": "status",
    "created": "created_at_ms",
    "started": "started_at_ms",
    "finished": "finished_at_ms",
    "available": "available_at_ms",
    "heartbeat": "heartbeat_at_ms",
    "owner_fence": "owner_fence",
    "claimed": "claimed_at_ms",
    "fence": "fence",
    "cancel": "cancel_requested_at_ms",
    "state": "state_json",
}


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """A row in the words of the reference."""
    acknowledged = json.loads(row["cancel_acknowledgement_json"] or "null")
    waiting = row["waiting_reason"] and (row["waiting_reason"], row["waiting_wake_at_ms"])
    return {
        **{name: row[column] for name, column in COLUMNS.items()},
        "owner": _identity(row, "owner"),
        "claim": _identity(row, "claim"),
        "acknowledged": acknowledged
        and (acknowledged["observed_at_ms"], tuple(acknowledged["owner"].values())),
        "waiting": waiting,
    }


def _identity(row: dict[str, Any], role: str) -> Owner | None:
    host_id, pid, nonce = (row[f"{role}_{part}"] for part in ("host_id", "pid", "nonce"))
    return None if host_id is None else (host_id, pid, nonce)


def shown_attempt(row: models.Attempt) -> Attempt:
    """An attempt in the words of the reference."""
    values = {
        name: ABSENT if text is None else canonical(json.loads(text))
        for name in ("meta", "checkpoint", "error", "outcome")
        for text in [getattr(row, f"{name}_json")]
    }
    return Attempt(
        row.state,
        row.started_at_ms,
        **values,
        finished=row.finished_at_ms,
        heartbeat=row.heartbeat_at_ms,
    )


class Tables:
    """What the tables hold; entries are read once, for nothing changes or deletes them here."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.facts: defaultdict[str, list[Any]] = defaultdict(list)
        self.events: defaultdict[str, list[Any]] = defaultdict(list)
        self.attempts: dict[Key, Attempt] = {}
        self._read_up_to = 0

    def read(self) -> None:
        """Read every column of every row, and the entries that have come."""
        self.rows = {row["run_id"]: dict(row) for row in Run.objects.order_by("run_id").values()}
        self.attempts = {
            (row.run_id, row.step_key_digest, row.attempt): shown_attempt(row)
            for row in models.Attempt.objects.all()
        }
        new = JournalEntry.objects.filter(pk__gt=self._read_up_to)
        for entry in new.order_by("run_id", "companion", "seq"):
            self._read_up_to = max(self._read_up_to, entry.pk)
            payload = json.loads(entry.payload_json)
            if entry.companion == "run-store":
                name = entry.event_type.removeprefix("runstore.ownership.")
                owner = tuple(payload["owner"][part] for part in ("host_id", "pid", "nonce"))
                fact = (name, owner, payload["granted_at_ms"], payload["fence"])
                self.facts[entry.run_id].append(fact)
            else:
                self.events[entry.run_id].append((entry.source_id, entry.source_seq, payload))


class Watch:
    """Follows who was told that it owns what, from the answers alone."""

    def __init__(self) -> None:
        self._holders: dict[str, tuple[Owner, int]] = {}
        self._fences: dict[str, int] = {}
        self._ended: dict[str, dict[str, Any]] = {}

    def saw(
        self,
        answer: Answer,
        run: str,
        by: By | None,
        before: dict[str, dict[str, Any]],
        after: dict[str, dict[str, Any]],
    ) -> None:
        """Judge one answer and what it has done to the rows."""
        code = answer[0] if answer else None
        if code in LOSSES:
            assert after == before, f"{code} changed a row"
        if code in {"claimed", "activated"}:
            self.granted(run, answer[-1], claims=code == "claimed")
        if code == "activated":
            assert by is not None
            self._holders[run] = (by.owner, answer[-1])
        if code in OWNED_WRITES:
            assert by is not None
            self.wrote(run, by, after)
        for run_id, row in after.items():
            if row["status"] in TERMINAL:
                assert self._ended.setdefault(run_id, row) == row, f"{run_id} had ended"

    def granted(self, run: str, fence: int, *, claims: bool) -> None:
        """See that a grant has a higher number than any before; an activation spends the last."""
        last = self._fences.get(run, 0)
        assert fence > last or (fence == last and not claims), f"{run}: fence {fence} after {last}"
        self._fences[run] = fence

    def took(self, run: str, owner: Owner, fence: int) -> None:
        """Follow a run that was claimed and activated as one of many."""
        self.granted(run, fence, claims=True)
        self._holders[run] = (owner, fence)

    def wrote(self, run: str, by: By, after: dict[str, dict[str, Any]]) -> None:
        """See that a write was the holder's, under its own grant or under none named."""
        assert run in self._holders, f"{by} wrote to {run}, which nobody holds"
        owner, fence = self._holders[run]
        assert by.owner == owner, f"{by} wrote to {run}, which is {owner}'s"
        assert by.fence in (None, fence), f"{by} wrote to {run}, which was granted as {fence}"
        if after[run]["status"] != "running":
            del self._holders[run]

    def ends(self, facts: dict[str, list[Any]], after: dict[str, dict[str, Any]]) -> None:
        """See that the facts are the grants: each number once, in order, and the row's last."""
        for run_id, row in after.items():
            grants = [fact[3] for fact in facts.get(run_id, []) if fact[0] in {"claimed", "stolen"}]
            assert grants == list(range(1, row["fence"] + 1)), f"{run_id}: {grants}"
