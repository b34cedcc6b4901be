"""Attempts beside everything that happens to their runs."""

from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import invariant, rule

from django_runstore import UNSET
from django_runstore.attempts import AttemptId, AttemptPatch, AttemptRecord, FinishAttempt
from django_runstore.services import AttemptStore
from tests.verification.machine import OWNERS, fences, holders, owners, runs
from tests.verification.reference_attempts import (
    ABSENT,
    Attempt,
    AttemptReference,
    Key,
    canonical,
)
from tests.verification.stories import Stories

DIGEST = "digest"
numbers = st.integers(0, 1)
times = st.integers(0, 5)
# Some mean the same in other words, and some only look as if they did.
values = st.sampled_from([UNSET, UNSET, None, 1, 1.0, True, {"a": 1, "b": 2}, {"b": 2.0, "a": 1}])
lookalikes = st.sampled_from(
    [(1, 1.0), (1, True), (None, UNSET), ([1, 2], [2, 1]), ({"a": 1, "b": 2}, {"b": 2.0, "a": 1})]
)


def spelt(value: Any) -> str:
    return ABSENT if value is UNSET else canonical(value)


class AttemptMachine(Stories):
    """The owners of runs put, beat, finish and patch attempts, and so do others."""

    def __init__(self) -> None:
        super().__init__()
        self.attempt_model = AttemptReference(self.model.runs)
        self.attempt_stores = {mode: AttemptStore(put_mode=mode) for mode in ("insert", "upsert")}

    @rule(
        run=runs,
        who=holders,
        mode=fences,
        number=numbers,
        state=st.sampled_from(["running", "running", "running", "done"]),
        started=times,
        checkpoint=values,
        outcome=values,
        put_mode=st.sampled_from(["insert", "upsert"]),
    )
    def put(
        self,
        run: str,
        who: str,
        mode: str,
        number: int,
        state: str,
        started: int,
        checkpoint: Any,
        outcome: Any,
        put_mode: str,
    ) -> None:
        who = self.actor(run, who)
        by = self.by(who, run, mode)
        record = AttemptRecord(
            run, DIGEST, number, state, started, checkpoint=checkpoint, outcome=outcome
        )
        attempt = Attempt(
            state, started, "null", checkpoint=spelt(checkpoint), outcome=spelt(outcome)
        )
        upserts = put_mode == "upsert"
        expected = self.attempt_model.put((run, DIGEST, number), attempt, by, upserts=upserts)
        store = self.attempt_stores[put_mode]
        self.agree(expected, lambda: store.put(record, OWNERS[who], fence=by.fence), run, by)

    @rule(run=runs, who=owners, number=numbers, pair=lookalikes)
    def put_again(self, run: str, who: str, number: int, pair: tuple[Any, Any]) -> None:
        """Put what looks the same and may mean something else."""
        self.take(run, who)
        for value in pair:
            self.put(run, "holder", "mine", number, "running", 0, value, UNSET, "insert")

    @rule(run=runs, who=holders, mode=fences, number=numbers, now=times, checkpoint=values)
    def beat_an_attempt(
        self, run: str, who: str, mode: str, number: int, now: int, checkpoint: Any
    ) -> None:
        who = self.actor(run, who)
        by, key = self.by(who, run, mode), (run, DIGEST, number)
        expected = self.attempt_model.heartbeat(key, by, now, spelt(checkpoint))
        store = self.attempt_stores["insert"]
        self.agree(
            expected,
            lambda: store.heartbeat(*key, OWNERS[who], now, checkpoint, fence=by.fence),
            run,
            by,
        )

    @rule(run=runs, who=holders, mode=fences, number=numbers, at=times, error=values, meta=values)
    def finish_an_attempt(
        self, run: str, who: str, mode: str, number: int, at: int, error: Any, meta: Any
    ) -> None:
        who = self.actor(run, who)
        by, key = self.by(who, run, mode), (run, DIGEST, number)
        spelling = {"error": spelt(error), "meta": spelt(meta)}
        expected = self.attempt_model.finish(key, by, "done", at, spelling)
        end = FinishAttempt(*key, "done", at, error=error, meta=meta)
        store = self.attempt_stores["insert"]
        self.agree(expected, lambda: store.finish(end, OWNERS[who], fence=by.fence), run, by)

    @rule(run=runs, who=holders, mode=fences, number=numbers, outcome=values, meta=values)
    def patch_an_attempt(
        self, run: str, who: str, mode: str, number: int, outcome: Any, meta: Any
    ) -> None:
        who = self.actor(run, who)
        by, key = self.by(who, run, mode), (run, DIGEST, number)
        spelling = {"outcome": spelt(outcome), "meta": spelt(meta)}
        expected = self.attempt_model.patch(key, by, spelling)
        patch = AttemptPatch(outcome=outcome, meta=meta)
        store = self.attempt_stores["insert"]
        self.agree(
            expected,
            lambda: store.patch(AttemptId(*key), patch, OWNERS[who], fence=by.fence),
            run,
            by,
        )

    @invariant()
    def attempts_are_those_of_the_reference(self) -> None:
        found: dict[Key, Attempt] = self.tables.attempts
        assert found == self.attempt_model.attempts
