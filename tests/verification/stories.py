"""What takes several steps, and would hardly come about by chance."""

import hypothesis.strategies as st
from hypothesis.stateful import rule

from tests.verification.machine import RunStoreMachine, guards, kinds, owners, runs, statuses

# Around the moment from which on a stamp is stale.
edges = st.sampled_from([29_999, 30_000, 30_001])


class Stories(RunStoreMachine):
    """Each is told by the rules for its steps, and can be interrupted by none."""

    @rule(run=runs, who=owners)
    def take(self, run: str, who: str) -> None:
        self.claim_and_own(run, who, 0, None, None, False)

    @rule(run=runs, to=statuses)
    def move_on(self, run: str, to: str) -> None:
        self.transition(run, "holder", to, None, None, "mine")

    @rule(run=runs, who=owners, kind=kinds, ahead=st.sampled_from([None, 0]))
    def take_over(self, run: str, who: str, kind: str, ahead: int | None) -> None:
        self.take(run, "a")
        self.steal(run, who, 0, ahead, kind, True)
        self.activate(run, who, 0, 0, "mine")

    @rule(run=runs, who=owners, strict=st.booleans())
    def be_stolen_from_and_beat(self, run: str, who: str, strict: bool) -> None:
        self.steal(run, who, 0, None, "fits", True)
        self.beat(run, "holder", None, "mine", strict)
        self.activate(run, who, 1, 0, "mine")

    @rule(run=runs, who=owners, to=statuses)
    def be_stolen_from_and_move_on(self, run: str, who: str, to: str) -> None:
        self.steal(run, who, 0, None, "fits", True)
        self.move_on(run, to)

    @rule(run=runs, who=owners, by=owners)
    def leave_a_claim_behind(self, run: str, who: str, by: str) -> None:
        self.claim(run, who, 0, None)
        self.recover_claim(run, by, "claimant", None, "fits", "mine", True)

    @rule(run=runs, who=owners)
    def claim_anew(self, run: str, who: str) -> None:
        self.claim(run, who, 0, None)
        self.abandon_claim(run, who, 0, "mine")
        self.claim(run, who, 0, None)
        self.activate(run, who, 0, 0, "old")

    @rule(run=runs, who=owners, by=owners, edge=edges)
    def come_at_the_edge(self, run: str, who: str, by: str, edge: int) -> None:
        """Judge the stamp, or the claim, at the very moment at which it may have grown stale."""
        self.take(run, who)
        row = self.model.runs.get(run)
        stamp = row and (row.heartbeat if row.claim is None else row.claimed)
        if stamp is None:
            return
        due_in = stamp + edge - self.clock(by)
        self.time_passes(max(0, due_in))
        ahead = stamp + edge - self.clock(by)
        self.recover_claim(run, by, "claimant", ahead, "fits", "none", False)
        self.steal(run, by, 0, ahead, "lease", False)

    @rule(run=runs, ahead=st.sampled_from([-1, -5_000]), strict=st.booleans())
    def beat_late(self, run: str, ahead: int, strict: bool) -> None:
        self.beat(run, "holder", 0, "mine", strict)
        self.beat(run, "holder", ahead, "mine", strict)

    @rule(run=runs, by=owners, guard=guards)
    def be_asked_to_stop(self, run: str, by: str, guard: str | None) -> None:
        self.take(run, by)
        self.request_cancel(run, by, None)
        self.transition(run, "holder", "running", None, guard, "mine")
        for _ in range(2):
            self.acknowledge_cancel(run, "holder", None, "mine")
            self.time_passes(1)
