"""
What the specification says happens to runs: plain values, no database, nothing of the package.

Written from run-store 1, 3, 4, 8.4 and 12 and from the departures D1, D4, D9 and D12, section
by section, so that it can disagree with the services. An answer is a tuple that begins with
the outcome's code. Owners, snapshots and evidence are tuples too.
"""

from tests.verification.reference_rows import (
    CLAIMABLE,
    TERMINAL,
    Answer,
    At,
    By,
    Evidence,
    Owner,
    Run,
    Snapshot,
    is_stale,
    matches_evidence,
)

INVALID: Answer = ("invalid_run",)
NOT_FOUND: Answer = ("not_found",)
FENCE_LOST: Answer = ("fence_lost",)
CLAIM_LOST: Answer = ("claim_lost",)
CHANGED: Answer = ("snapshot_changed",)


class Reference:
    """The operations, one method each."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}

    def create(self, run_id: str, state: str, clock: int) -> Answer:
        if run_id in self.runs:
            return ("constraint",)
        self.runs[run_id] = Run(clock, clock, state)
        return ("created",)

    # --- 4.1 --------------------------------------------------------------------------------

    @staticmethod
    def _loss(run: Run | None, now: int) -> Answer:
        if run is None:
            return NOT_FOUND
        if run.claim is not None:
            return ("already_claimed",)
        fresh = run.heartbeat is not None and not is_stale(run.heartbeat, now)
        return ("heartbeat_fresh",) if fresh else CHANGED

    # --- 4.3 claim to steal -----------------------------------------------------------------

    def claim(self, run_id: str, expected: Snapshot, claimant: Owner, at: At) -> Answer:
        if at.is_invalid:
            return INVALID
        run = self.runs.get(run_id)
        if run is None or run.snapshot != expected or run.claim is not None:
            return self._loss(run, at.now)
        if run.status not in CLAIMABLE:
            return self._loss(run, at.now)
        return self._reserve(run, claimant, at.now, "claimed")

    def _reserve(self, run: Run, claimant: Owner, now: int, what: str) -> Answer:
        run.fence += 1
        run.claim, run.claimed = claimant, now
        run.note(what, claimant, now, run.fence)
        return "claimed", now, run.fence

    def _install(self, run: Run, owner: Owner, granted: int, stamp: int) -> Answer:
        run.status, run.owner, run.heartbeat = "running", owner, stamp
        run.owner_fence = run.fence
        run.started = stamp if run.started is None else run.started
        run.finished = None
        run.unclaim()
        run.note("activated", owner, granted, run.fence)
        return "activated", run.fence

    def claim_and_own(
        self, run_id: str, expected: Snapshot, owner: Owner, at: At, evidence: Evidence | None
    ) -> Answer:
        if at.is_invalid:
            return INVALID
        now, run = at.now, self.runs.get(run_id)
        held_by = expected[1]
        displaces = held_by not in (None, owner)
        if displaces and not (evidence and matches_evidence(held_by, owner, now, evidence)):
            loss, unchanged = self._loss(run, now), run is not None and run.snapshot == expected
            return ("evidence_required",) if unchanged and loss == CHANGED else loss
        takes = run is not None and run.snapshot == expected and run.claim is None
        if run is None or not takes or run.status not in (*CLAIMABLE, "running"):
            return self._loss(run, now)
        if run.heartbeat is not None and not is_stale(run.heartbeat, now):
            return self._loss(run, now)
        if run.owner == owner:
            run.note("released", owner, None, run.owner_fence)
        self._reserve(run, owner, now, "stolen" if displaces else "claimed")
        return self._install(run, owner, now, now)

    def activate(self, run_id: str, by: By, token: int, expected: Snapshot, clock: int) -> Answer:
        run = self.runs.get(run_id)
        if run is None or not run.is_claimed(by, token):
            return CLAIM_LOST
        if run.snapshot != expected:
            run.unclaim()
            run.note("released", by.owner, token, run.fence)
            return CHANGED
        return self._install(run, by.owner, token, clock)

    def abandon_claim(self, run_id: str, by: By, token: int) -> Answer:
        run = self.runs.get(run_id)
        if run is None or not run.is_claimed(by, token):
            return CLAIM_LOST
        run.unclaim()
        run.note("released", by.owner, token, run.fence)
        return ("abandoned",)

    def recover_claim(
        self, run_id: str, of: By, token: int, observer: Owner, at: At, evidence: Evidence
    ) -> Answer:
        if at.is_invalid:
            return INVALID
        if not matches_evidence(of.owner, observer, at.now, evidence):
            return ("liveness_unconfirmed",)
        run = self.runs.get(run_id)
        if run is None:
            return NOT_FOUND
        if not run.is_claimed(of, token):
            return ("claim_changed",)
        if not is_stale(token, at.now):
            return ("claim_fresh",)
        run.unclaim()
        run.note("expired", of.owner, token, run.fence)
        return ("recovered",)

    def steal(
        self, run_id: str, expected: Snapshot, claimant: Owner, at: At, evidence: Evidence
    ) -> Answer:
        if at.is_invalid:
            return INVALID
        now, held_by = at.now, expected[1]
        if held_by is None or not matches_evidence(held_by, claimant, now, evidence):
            return ("liveness_unconfirmed",)
        run = self.runs.get(run_id)
        if run is None or run.snapshot != expected or run.claim is not None:
            return self._loss(run, now)
        assert run.heartbeat is not None
        if not is_stale(run.heartbeat, now):
            return self._loss(run, now)
        return self._reserve(run, claimant, now, "stolen")

    # --- 4.3 heartbeat, reconfirm, transition_owned -----------------------------------------

    def heartbeat(self, run_id: str, by: By, at: At, *, strict: bool = False) -> Answer:
        """``strict`` is reconfirm: lost as soon as anybody has claimed the run."""
        if at.is_invalid:
            return INVALID
        run = self.runs.get(run_id)
        if run is None:
            return NOT_FOUND
        if not run.is_owned(by) or (strict and run.claim is not None):
            return FENCE_LOST
        assert run.heartbeat is not None
        run.heartbeat = max(run.heartbeat, at.now)
        return ("updated",)

    def transition(
        self,
        run_id: str,
        by: By,
        to_status: str,
        clock: int,
        state: str | None = None,
        guard: str | None = None,
    ) -> Answer:
        run = self.runs.get(run_id)
        if run is None:
            return NOT_FOUND
        if not run.is_owned(by):
            return FENCE_LOST
        if guard is not None and (guard == "present") != (run.cancel is not None):
            return ("guard_failed",)
        run.status = to_status
        run.state = run.state if state is None else state
        run.finished = clock if to_status in TERMINAL else None
        if to_status != "running":
            run.note("released", by.owner, None, run.owner_fence)
            run.disown()
            run.unclaim()
        if to_status == "suspended":
            run.available = clock
        return ("transitioned",)

    # --- 4.3 cancelling, 12 acknowledging and waiting ---------------------------------------

    def request_cancel(self, run_id: str, now: int) -> Answer:
        run = self.runs.get(run_id)
        if run is None:
            return NOT_FOUND
        if run.status in TERMINAL:
            return "terminal", run.status
        if run.cancel is not None:
            return "already_requested", run.cancel
        run.cancel = now
        return "cancel_requested", now

    def acknowledge_cancel(self, run_id: str, by: By, now: int) -> Answer:
        run = self.runs.get(run_id)
        if run is None or not run.is_owned(by) or run.cancel is None:
            return (False,)
        run.acknowledged = run.acknowledged or (now, by.owner)
        return (True,)

    def park(self, run_id: str, by: By, reason: str, wake_at: int | None) -> Answer:
        run = self.runs.get(run_id)
        if run is None:
            return NOT_FOUND
        if not run.is_owned(by):
            return FENCE_LOST
        run.waiting = reason, wake_at
        return ("parked",)

    def wake(self, run_id: str, clock: int) -> Answer:
        run = self.runs.get(run_id)
        if run is None:
            return NOT_FOUND
        if run.waiting is None or run.status in TERMINAL:
            return ("not_waiting",)
        run.waiting = None
        if run.status == "suspended":
            run.available = clock if run.available is None else min(run.available, clock)
        return ("woken",)

    # --- design 4 and 5: claim_many ---------------------------------------------------------

    def claim_many(self, owner: Owner, limit: int, at: At) -> Answer:
        if at.is_invalid:
            return INVALID
        now = at.now
        due = sorted(
            (run.available, run_id)
            for run_id, run in self.runs.items()
            if run.status in CLAIMABLE
            and run.claim is None
            and run.available is not None
            and run.available <= now
        )
        taken = []
        for _, run_id in due[:limit]:
            run = self.runs[run_id]
            self._reserve(run, owner, now, "claimed")
            self._install(run, owner, now, now)
            run.waiting = None
            taken.append((run_id, run.fence))
        return tuple(taken)

    # --- 8.3 and 8.4: the journal's fenced append -------------------------------------------

    def emit(self, run_id: str, by: By, source: str, number: int | None, content: str) -> Answer:
        run = self.runs.get(run_id)
        if run is None or not run.is_owned(by):
            return FENCE_LOST
        known = {event[:2]: seq for seq, event in enumerate(run.events)}
        if number is None:
            number = 1 + max((n for name, n in known if name == source), default=-1)
        elif (source, number) in known:
            seq = known[source, number]
            same = run.events[seq][2] == content
            return ("duplicate", seq, number) if same else ("idempotency_conflict",)
        run.events.append((source, number, content))
        return "accepted", len(run.events) - 1, number
