"""The services in random interleavings, compared with the reference after every step."""

import math
from collections import defaultdict
from typing import Any

import hypothesis.strategies as st
from django.db import transaction
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from django_runstore import Journal, LivenessEvidence, RunSnapshot, TransitionGuard
from django_runstore.arbiters import DatabaseArbiter
from django_runstore.services import RunStore
from django_runstore.snapshots import Waiting
from django_runstore.testing import FakeClock
from tests.conformance.world import A, B, C
from tests.verification import watching
from tests.verification.reference import Reference
from tests.verification.reference_rows import TERMINAL, Answer, At, By
from tests.verification.spelling import as_owner, as_snapshot, plain, said

OWNERS = {"a": A, "b": B, "c": C}
RUNS = ("r1", "r2", "r3")

owners = st.sampled_from(sorted(OWNERS))
# Whoever holds the run, mostly; otherwise little would ever succeed.
holders = st.sampled_from(["holder"] * 4 + sorted(OWNERS))
claimants = st.sampled_from(["claimant"] * 4 + sorted(OWNERS))
runs = st.sampled_from(["r1"] * 4 + ["r2"] * 3 + ["r3"])
# From the true time; two of the clocks may be further apart than the allowance.
skews = st.sampled_from([0, 0, 0, -9_000, -3_000, 7_000, 10_000, 25_000])
# Whether everything that was stamped has grown old by now, whoever's clock it is judged by.
waits = st.booleans()
# Mostly what is right; sometimes what is old, and sometimes what never was.
picks = st.sampled_from([0, 0, 0, 0, 1, 2, 9])
# How far a reading lies from the owner's own clock; None leaves it out (D12).
readings = st.sampled_from([None] * 4 + [0] * 4 + [-1, -5_000, 9_999, 10_000, 10_001])
fences = st.sampled_from(["mine"] * 5 + ["none", "old", "bogus"])
kinds = st.sampled_from(["fits"] * 6 + ["lease", "lease", "late", "unfitting", "of another"])
guards = st.sampled_from([None, None, "absent", "present"])
statuses = st.sampled_from(["running"] * 6 + ["suspended"] * 6 + [*TERMINAL])
BEGINNING = 1_000_000.5


class RunStoreMachine(RuleBasedStateMachine):
    """Two owners on one host and one on another, each with a clock of its own."""

    make_arbiter: Any = DatabaseArbiter

    def __init__(self) -> None:
        super().__init__()
        self.block = transaction.atomic()
        self.block.__enter__()
        arbiter = type(self).make_arbiter()
        self.clocks = {who: FakeClock(BEGINNING) for who in OWNERS}
        self.stores = {
            who: RunStore(clock=clock, arbiter=arbiter) for who, clock in self.clocks.items()
        }
        self.journals = {
            who: Journal(clock=clock, arbiter=arbiter) for who, clock in self.clocks.items()
        }
        self.model = Reference()
        self.watch = watching.Watch()
        self.tables = watching.Tables()
        self.true_ms = BEGINNING
        self.history: defaultdict[str, list[Any]] = defaultdict(lambda: [("pending", None, None)])
        self.grants: defaultdict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.block.__exit__(None, None, None)

    # --- what a step is made of -------------------------------------------------------------

    def agree(self, expected: Answer, call: Any, run: str = "", by: By | None = None) -> Answer:
        """Call the service, and see that it answers as the reference has."""
        before = self.tables.rows
        answer = said(call)
        assert answer == expected, f"the services say {answer}, the reference {expected}"
        self.tables.read()
        self.watch.saw(answer, run, by, before, self.tables.rows)
        return answer

    def actor(self, run: str, role: str) -> str:
        """Who acts: somebody, or whoever holds (or has claimed) the run."""
        row = self.model.runs.get(run)
        held = row and {"holder": row.owner, "claimant": row.claim}.get(role)
        names = {plain(owner): name for name, owner in OWNERS.items()}
        return role if role in OWNERS else names[held or plain(A)]

    def everything_grows_old(self) -> None:
        """Let more time pass than any skew could hide."""
        self.time_passes(100_000)

    def clock(self, who: str) -> int:
        return math.floor(self.clocks[who].now_ms())

    def at(self, who: str, ahead: int | None) -> tuple[At, int | None]:
        """The reading for the reference, and the argument for the service."""
        clock = self.clock(who)
        given = None if ahead is None else clock + ahead
        return At(clock if given is None else given, clock), given

    def expected(self, run: str, pick: int) -> tuple[Any, RunSnapshot]:
        """What the run looks like now, or did some looks ago."""
        seen = self.history[run][-1 - min(pick, len(self.history[run]) - 1)]
        return seen, as_snapshot(seen)

    def by(self, who: str, run: str, mode: str) -> By:
        granted = [fence for _, fence in self.grants[who, run]] or [0]
        fence = {"mine": granted[-1], "none": None, "old": granted[0], "bogus": 99}[mode]
        return By(plain(OWNERS[who]), fence)

    def token(self, who: str, run: str, pick: int) -> int:
        """When the owner's last claim was granted, or an earlier one, or none ever."""
        granted = [at for at, _ in self.grants[who, run]]
        return granted[-1 - pick] if pick < len(granted) else self.clock(who) + pick

    def evidence(self, kind: str, about: Any, who: str, now: int) -> tuple[Any, LivenessEvidence]:
        about = about or plain(B)
        same_host = about[0] == OWNERS[who].host_id
        fitting = {True: "same-host-pid-dead", False: "cross-host-unreachable-stale"}
        subject = plain(C if about == plain(A) else A) if kind == "of another" else about
        checked = now - 1 if kind == "late" else now
        name = "lease-expired" if kind == "lease" else fitting[same_host ^ (kind == "unfitting")]
        return (subject, checked, name), LivenessEvidence(as_owner(subject), checked, name)

    def granted(self, who: str, run: str, answer: Answer, now: int) -> None:
        """Remember a grant, as its owner would."""
        if answer[0] == "claimed":
            self.grants[who, run].append((answer[1], answer[2]))
        elif answer[0] == "activated" and answer[1] not in [f for _, f in self.grants[who, run]]:
            self.grants[who, run].append((now, answer[1]))

    # --- time -------------------------------------------------------------------------------

    @initialize(skews=st.tuples(skews, skews, skews))
    def begin(self, skews: tuple[int, ...]) -> None:
        for who, skew in zip(OWNERS, skews, strict=True):
            self.a_clock_is_set(who, skew)
        for run in RUNS[:2]:
            self.create(run, "a")

    @rule(ms=st.sampled_from([0.5, 1, 1_000, 15_000, 29_999, 30_000, 30_001, 60_000]))
    def time_passes(self, ms: float) -> None:
        self.true_ms += ms
        for clock in self.clocks.values():
            clock.advance(ms)

    @rule(who=owners, skew=skews)
    def a_clock_is_set(self, who: str, skew: int) -> None:
        self.clocks[who].set(self.true_ms + skew)

    # --- runs -------------------------------------------------------------------------------

    @rule(run=runs, who=owners)
    def create(self, run: str, who: str) -> None:
        expected = self.model.create(run, "{}", self.clock(who))
        self.agree(expected, lambda: self.stores[who].create(run, "{}"))

    @rule(run=runs, who=owners, pick=picks, ahead=readings)
    def claim(self, run: str, who: str, pick: int, ahead: int | None) -> None:
        (seen, snapshot), (at, now) = self.expected(run, pick), self.at(who, ahead)
        expected = self.model.claim(run, seen, plain(OWNERS[who]), at)
        answer = self.agree(
            expected, lambda: self.stores[who].claim(run, snapshot, OWNERS[who], now), run
        )
        self.granted(who, run, answer, at.now)

    @rule(run=runs, who=owners, pick=picks, ahead=readings, kind=st.none() | kinds, old=waits)
    def claim_and_own(
        self, run: str, who: str, pick: int, ahead: int | None, kind: str | None, old: bool
    ) -> None:
        if old:
            self.everything_grows_old()
        (seen, snapshot), (at, now) = self.expected(run, pick), self.at(who, ahead)
        proof, evidence = (
            (None, None) if kind is None else self.evidence(kind, seen[1], who, at.now)
        )
        if proof is not None and now is None:
            at = at._replace(now=proof[1])
        expected = self.model.claim_and_own(run, seen, plain(OWNERS[who]), at, proof)
        answer = self.agree(
            expected,
            lambda: self.stores[who].claim_and_own(run, snapshot, OWNERS[who], now, evidence),
            run,
            By(plain(OWNERS[who]), None),
        )
        self.granted(who, run, answer, at.now)

    @rule(run=runs, who=claimants, pick=picks, old=picks, mode=fences)
    def activate(self, run: str, who: str, pick: int, old: int, mode: str) -> None:
        who = self.actor(run, who)
        seen, snapshot = self.expected(run, pick)
        by, token = self.by(who, run, mode), self.token(who, run, old)
        expected = self.model.activate(run, by, token, seen, self.clock(who))
        self.agree(
            expected,
            lambda: self.stores[who].activate(run, OWNERS[who], token, snapshot, fence=by.fence),
            run,
            by,
        )

    @rule(run=runs, who=claimants, old=picks, mode=fences)
    def abandon_claim(self, run: str, who: str, old: int, mode: str) -> None:
        who = self.actor(run, who)
        by, token = self.by(who, run, mode), self.token(who, run, old)
        expected = self.model.abandon_claim(run, by, token)
        self.agree(
            expected,
            lambda: self.stores[who].abandon_claim(run, OWNERS[who], token, fence=by.fence),
            run,
        )

    @rule(run=runs, who=owners, of=claimants, ahead=readings, kind=kinds, mode=fences, old=waits)
    def recover_claim(
        self, run: str, who: str, of: str, ahead: int | None, kind: str, mode: str, old: bool
    ) -> None:
        of = self.actor(run, of)
        if old:
            self.everything_grows_old()
        by, token, (at, now) = self.by(of, run, mode), self.token(of, run, 0), self.at(who, ahead)
        proof, evidence = self.evidence(kind, by.owner, who, at.now)
        if now is None:
            at = at._replace(now=proof[1])
        expected = self.model.recover_claim(run, by, token, plain(OWNERS[who]), at, proof)
        self.agree(
            expected,
            lambda: self.stores[who].recover_claim(
                run, OWNERS[of], token, OWNERS[who], now, evidence, fence=by.fence
            ),
            run,
        )

    @rule(run=runs, who=owners, pick=picks, ahead=readings, kind=kinds, old=waits)
    def steal(self, run: str, who: str, pick: int, ahead: int | None, kind: str, old: bool) -> None:
        if old:
            self.everything_grows_old()
        (seen, snapshot), (at, now) = self.expected(run, pick), self.at(who, ahead)
        proof, evidence = self.evidence(kind, seen[1], who, at.now)
        if now is None:
            at = at._replace(now=proof[1])
        expected = self.model.steal(run, seen, plain(OWNERS[who]), at, proof)
        answer = self.agree(
            expected,
            lambda: self.stores[who].steal(run, snapshot, OWNERS[who], now, evidence),
            run,
        )
        self.granted(who, run, answer, at.now)

    @rule(run=runs, who=holders, ahead=readings, mode=fences, strict=st.booleans())
    def beat(self, run: str, who: str, ahead: int | None, mode: str, strict: bool) -> None:
        who = self.actor(run, who)
        by, (at, now) = self.by(who, run, mode), self.at(who, ahead)
        expected = self.model.heartbeat(run, by, at, strict=strict)
        operation = "reconfirm" if strict else "heartbeat"
        self.agree(
            expected,
            lambda: getattr(self.stores[who], operation)(run, OWNERS[who], now, fence=by.fence),
            run,
            by,
        )

    @rule(
        run=runs,
        who=holders,
        to=statuses,
        n=st.none() | st.integers(0, 9),
        guard=guards,
        mode=fences,
    )
    def transition(self, run: str, who: str, to: str, n: int | None, guard: Any, mode: str) -> None:
        who = self.actor(run, who)
        by, state = self.by(who, run, mode), None if n is None else str(n)
        expected = self.model.transition(run, by, to, self.clock(who), state, guard)
        self.agree(
            expected,
            lambda: self.stores[who].transition_owned(
                run, OWNERS[who], to, state, TransitionGuard(guard), fence=by.fence
            ),
            run,
            by,
        )

    @rule(run=runs, who=owners, ahead=readings)
    def request_cancel(self, run: str, who: str, ahead: int | None) -> None:
        at, now = self.at(who, ahead)
        expected = self.model.request_cancel(run, at.now)
        self.agree(expected, lambda: self.stores[who].request_cancel(run, now), run)

    @rule(run=runs, who=holders, ahead=readings, mode=fences)
    def acknowledge_cancel(self, run: str, who: str, ahead: int | None, mode: str) -> None:
        who = self.actor(run, who)
        by, (at, now) = self.by(who, run, mode), self.at(who, ahead)
        expected = self.model.acknowledge_cancel(run, by, at.now)
        self.agree(
            expected,
            lambda: self.stores[who].acknowledge_cancel(run, OWNERS[who], now, fence=by.fence),
            run,
            by,
        )

    @rule(run=runs, who=holders, mode=fences, wakes_in=st.none() | st.sampled_from([0, 5_000]))
    def park(self, run: str, who: str, mode: str, wakes_in: int | None) -> None:
        who = self.actor(run, who)
        by = self.by(who, run, mode)
        wake_at = None if wakes_in is None else self.clock(who) + wakes_in
        expected = self.model.park(run, by, "timer", wake_at)
        self.agree(
            expected,
            lambda: self.stores[who].park(
                run, Waiting("timer", wake_at), OWNERS[who], fence=by.fence
            ),
            run,
            by,
        )

    @rule(run=runs, who=owners)
    def wake(self, run: str, who: str) -> None:
        expected = self.model.wake(run, self.clock(who))
        self.agree(expected, lambda: self.stores[who].wake(run), run)
