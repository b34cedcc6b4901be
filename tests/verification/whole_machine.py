"""The operations on many runs and on the journal, beside those on one run."""

from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import invariant, rule

from django_runstore import TransitionGuard
from django_runstore.events import JournalEvent
from django_runstore.snapshots import OwnedTransition
from tests.verification import watching
from tests.verification.attempt_machine import AttemptMachine
from tests.verification.machine import (
    OWNERS,
    RUNS,
    fences,
    guards,
    holders,
    owners,
    readings,
    runs,
    statuses,
)
from tests.verification.reference_rows import By
from tests.verification.spelling import plain

few_runs = st.lists(runs, unique=True, max_size=3)
named_fences = st.sampled_from(["mine", "mine", "old", "bogus"])


class WholeMachine(AttemptMachine):
    """Everything there is."""

    @rule(who=owners, limit=st.integers(1, 3), ahead=readings)
    def claim_many(self, who: str, limit: int, ahead: int | None) -> None:
        at, now = self.at(who, ahead)
        expected = self.model.claim_many(plain(OWNERS[who]), limit, at)
        answer = self.agree(
            expected, lambda: self.stores[who].claim_many(OWNERS[who], limit, now_ms=now)
        )
        if answer != ("invalid_run",):
            for run, fence in answer:
                self.watch.took(run, plain(OWNERS[who]), fence)
                self.grants[who, run].append((at.now, fence))

    @rule(run=runs, who=owners, ahead=st.sampled_from([-1, 0]))
    def claim_what_was_put_back(self, run: str, who: str, ahead: int) -> None:
        """Once it is due, which it is from the moment of the putting back on."""
        self.take(run, who)
        self.move_on(run, "suspended")
        self.claim_many(who, 3, ahead)

    @rule(run=runs, who=owners, mode=named_fences)
    def take_twice_and_beat(self, run: str, who: str, mode: str) -> None:
        self.take(run, who)
        self.move_on(run, "suspended")
        self.take(run, who)
        self.heartbeat_many(who, [run], None, mode)

    @rule(who=owners, chosen=few_runs, ahead=readings, mode=named_fences)
    def heartbeat_many(self, who: str, chosen: list[str], ahead: int | None, mode: str) -> None:
        at, now = self.at(who, ahead)
        by = {run: self.by(who, run, mode) for run in chosen}
        expected = tuple(sorted((run, *self.model.heartbeat(run, by[run], at)) for run in chosen))
        if at.is_invalid:
            expected = ("invalid_run",)
        pairs = [(run, by[run].fence) for run in chosen]
        self.agree(expected, lambda: self.stores[who].heartbeat_many(OWNERS[who], pairs, now))
        self._wrote(expected, by)

    @rule(who=owners, chosen=few_runs, to=statuses, guard=guards, mode=named_fences)
    def transition_many(self, who: str, chosen: list[str], to: str, guard: Any, mode: str) -> None:
        by = {run: self.by(who, run, mode) for run in chosen}
        expected = tuple(
            sorted(
                (run, *self.model.transition(run, by[run], to, self.clock(who), None, guard))
                for run in chosen
            )
        )
        moves = [
            OwnedTransition(run, by[run].fence or 0, to, guard=TransitionGuard(guard))
            for run in chosen
        ]
        self.agree(expected, lambda: self.stores[who].transition_many(OWNERS[who], moves))
        self._wrote(expected, by)

    def _wrote(self, answers: tuple[Any, ...], by: dict[str, By]) -> None:
        for run, code in answers if answers != ("invalid_run",) else ():
            if code in watching.OWNED_WRITES:
                self.watch.wrote(run, by[run], self.tables.rows)

    @rule(
        run=runs,
        who=holders,
        source=st.sampled_from(["shop", "mail"]),
        number=st.none() | st.integers(0, 2),
        content=st.sampled_from(["x", "y"]),
        mode=fences,
    )
    def emit(
        self, run: str, who: str, source: str, number: int | None, content: str, mode: str
    ) -> None:
        who = self.actor(run, who)
        by = self.by(who, run, mode)
        expected = self.model.emit(run, by, source, number, content)
        event = JournalEvent(run, source, "happened", content, source_seq=number)
        self.agree(
            expected,
            lambda: self.journals[who].emit_durable(event, OWNERS[who], fence=by.fence),
            run,
            by,
        )

    @invariant()
    def rows_and_streams_are_those_of_the_reference(self) -> None:
        found, facts, events = self.tables.rows, self.tables.facts, self.tables.events
        assert found.keys() == self.model.runs.keys()
        for run_id, run in self.model.runs.items():
            shown = watching.shown(found[run_id])
            assert shown == {name: getattr(run, name) for name in shown}
            assert facts.get(run_id, []) == run.facts
            assert events.get(run_id, []) == run.events
            if self.history[run_id][-1] != run.snapshot:
                self.history[run_id].append(run.snapshot)
        self.watch.ends(facts, found)
        assert set(found) <= set(RUNS)
