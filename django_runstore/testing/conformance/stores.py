"""What holds for a store over an arbiter, whichever it is. Spec: run-store 4.5, 6.1 and 6.4."""

import json
from typing import Any, Final

from django.db import transaction

from django_runstore.arbiters.protocol import LeaseArbiter
from django_runstore.evidence import LivenessEvidence
from django_runstore.models import JournalEntry, Run
from django_runstore.outcomes import (
    Abandoned,
    Activated,
    AlreadyClaimed,
    Claimed,
    FenceLost,
    SnapshotChanged,
    Transitioned,
    Updated,
)
from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.snapshots import OwnedTransition, RunRow, RunSnapshot
from django_runstore.testing.clocks import FakeClock
from django_runstore.testing.conformance.expectations import covers, expect
from django_runstore.testing.conformance.scenes import STALE_MS, A, B, C

RUN: Final = "conformance-run"


class ArbitratedStoreConformance:
    """
    A ``RunStore`` that asks your arbiter keeps its promises; needs a database.

    Combine it with ``django.test.TestCase``, or mark the class with ``django_db``.
    """

    def make_arbiter(self) -> LeaseArbiter:
        """Return a new arbiter that has granted nothing yet."""
        raise NotImplementedError(f"{type(self).__name__} must say how its arbiter is made")

    def make_store(self) -> RunStore:
        """Return a store over a new arbiter and a clock that reads 0, with one pending run."""
        store = RunStore(clock=FakeClock(0), arbiter=self.make_arbiter())
        store.create(RUN, "{}")
        return store

    def test_what_was_granted_stands_in_the_row(self) -> None:
        store = self.make_store()
        expect(store.claim(RUN, RunSnapshot("pending"), A, 0), Claimed(0, 1), "a claim is granted")
        row = store.get(RUN)
        expect((row.claim, row.claimed_at_ms, row.fence), (A, 0, 1), "the row shows the claim")
        pending = RunSnapshot("pending")
        expect(store.activate(RUN, A, 0, pending), Activated(1), "the claim is activated")
        row = store.get(RUN)
        shown = (row.owner, row.heartbeat_at_ms, row.owner_fence, row.claim)
        expect(shown, (A, 0, 1, None), "the row shows the owner and its grant")

    def test_who_comes_second_is_told_so(self) -> None:
        store = self.make_store()
        store.claim(RUN, RunSnapshot("pending"), A, 0)
        before = self._everything()
        second = store.claim(RUN, RunSnapshot("pending"), B, 0)
        expect(second, AlreadyClaimed(), "a claimed run is not claimed again")
        expect(self._everything(), before, "a loss writes nothing")

    def test_a_displaced_owner_writes_nothing(self) -> None:
        store = self._displaced()
        self._refuses_every_write_of(store, A, fence=1)

    def test_a_displacement_counts_within_its_own_transaction(self) -> None:
        with transaction.atomic():
            store = self._displaced()
            self._refuses_every_write_of(store, A, fence=1)

    def test_the_new_owner_may_write(self) -> None:
        store = self._displaced()
        expect(store.heartbeat(RUN, B, STALE_MS, fence=2), Updated(), "B may beat")
        settled = store.transition_owned(RUN, B, "completed", fence=2)
        expect(settled, Transitioned(), "B may settle")

    def test_an_owner_that_beats_before_the_thief_activates_keeps_its_run(self) -> None:
        store, seen = self._stolen()
        expect(store.heartbeat(RUN, A, STALE_MS), Updated(), "a pending claim stops no beat")
        late = store.activate(RUN, B, STALE_MS, seen)
        expect(late, SnapshotChanged(), "the run has moved on since it was stolen")
        expect(store.heartbeat(RUN, A, STALE_MS, fence=1), Updated(), "A is the owner still")

    def test_who_stole_from_itself_and_gives_up_keeps_its_run(self) -> None:
        store, _ = self._stolen(by=A)
        expect(store.abandon_claim(RUN, A, STALE_MS), Abandoned(), "the claim is given back")
        expect(store.heartbeat(RUN, A, STALE_MS, fence=1), Updated(), "A is the owner still")

    def test_who_stole_from_itself_and_comes_too_late_keeps_its_run(self) -> None:
        store, seen = self._stolen(by=A)
        store.heartbeat(RUN, A, STALE_MS)
        expect(store.activate(RUN, A, STALE_MS, seen), SnapshotChanged(), "the run has moved on")
        expect(store.heartbeat(RUN, A, STALE_MS, fence=1), Updated(), "A is the owner still")

    def test_an_old_execution_of_the_same_owner_writes_nothing(self) -> None:
        store = self._owned()
        store.transition_owned(RUN, A, "suspended", fence=1)
        again = store.claim_and_own(RUN, store.get(RUN), A, 0)
        expect(again, Activated(2), "a run that was put back is granted anew")
        self._refuses_every_write_of(store, A, fence=1)

    def test_no_claim_is_stranded_by_an_owner_that_gives_up(self) -> None:
        store, _ = self._stolen()
        store.transition_owned(RUN, A, "suspended", fence=1)
        taken = store.claim_and_own(RUN, store.get(RUN), C, STALE_MS)
        expect(taken, Activated(3), "what was put back is free for anybody")

    def test_runs_claimed_as_a_set_have_grants_of_their_own(self) -> None:
        store = self.make_store()
        store.create(f"{RUN}-2", "{}")
        store.claim(f"{RUN}-2", RunSnapshot("pending"), B, 0)
        store.abandon_claim(f"{RUN}-2", B, 0)
        fences = {each.run.run_id: each.fence for each in store.claim_many(A, 9)}
        expect(fences, {RUN: 1, f"{RUN}-2": 2}, "each run counts its own grants")
        beats = store.heartbeat_many(A, list(fences.items()), 0)
        expect(set(beats.values()), {Updated()}, "the fences are those of the grants")

    @covers("D4")
    def test_every_change_of_hands_is_a_fact_and_nothing_else_is(self) -> None:
        store = self._displaced()
        store.heartbeat(RUN, B, STALE_MS)
        store.heartbeat(RUN, A, STALE_MS)
        store.transition_owned(RUN, B, "completed")
        facts = [
            (entry.event_type.removeprefix("runstore.ownership."), entry.payload_json)
            for entry in JournalEntry.objects.filter(run_id=RUN).order_by("seq")
        ]
        names = [name for name, _ in facts]
        expected = ["claimed", "activated", "stolen", "activated", "released"]
        expect(names, expected, "facts are the grants, in order")
        fences = [json.loads(payload)["fence"] for _, payload in facts]
        expect(fences, [1, 1, 2, 2, 2], "a fact names its grant")

    # --- how it comes about -----------------------------------------------------------------

    def _owned(self) -> RunStore:
        """Have the run owned by A since 0, under the first grant."""
        store = self.make_store()
        owned = store.claim_and_own(RUN, RunSnapshot("pending"), A, 0)
        expect(owned, Activated(1), "a free run is granted")
        return store

    def _stolen(self, by: OwnerId = B) -> tuple[RunStore, RunRow]:
        """Have the run of A claimed by a thief, on evidence and with A gone stale."""
        store = self._owned()
        seen = store.get(RUN)
        assert isinstance(store.clock, FakeClock)
        store.clock.set(STALE_MS)
        evidence = LivenessEvidence(A, STALE_MS, "same-host-pid-dead")
        thief = store.steal(RUN, seen, by, STALE_MS, evidence)
        expect(thief, Claimed(STALE_MS, 2), "a stale owner is stolen from on evidence")
        return store, seen

    def _displaced(self) -> RunStore:
        """Have the run of A taken over by B, under the second grant."""
        store, seen = self._stolen()
        taken = store.activate(RUN, B, STALE_MS, seen)
        expect(taken, Activated(2), "a thief activates what it has claimed")
        return store

    def _refuses_every_write_of(self, store: RunStore, owner: OwnerId, fence: int) -> None:
        moved = OwnedTransition(RUN, fence, "completed", '"old"')
        before = self._everything()
        answers = {
            "heartbeat": store.heartbeat(RUN, owner, fence=fence),
            "reconfirm": store.reconfirm(RUN, owner, fence=fence),
            "heartbeat_many": store.heartbeat_many(owner, [(RUN, fence)])[RUN],
            "save_progress": store.save_progress(RUN, owner, fence=fence, state_json='"old"'),
            "transition_owned": store.transition_owned(
                RUN, owner, "completed", '"old"', fence=fence
            ),
            "transition_many": store.transition_many(owner, [moved])[RUN],
        }
        for operation, answer in answers.items():
            expect(answer, FenceLost(), f"{operation} of a lost grant is refused")
        expect(self._everything(), before, "a refused write changes nothing")

    @staticmethod
    def _everything() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        runs = Run.objects.filter(run_id__startswith=RUN).order_by("run_id")
        entries = JournalEntry.objects.filter(run_id__startswith=RUN).order_by("id")
        return [dict(row) for row in runs.values()], [dict(row) for row in entries.values()]
