"""The runs of the shop, each brought to where it is by real transitions in the past."""

import json
from typing import Final

from django_runstore import AttemptStore, LivenessEvidence, OwnerId, RunStore
from django_runstore.attempts import AttemptRecord, FinishAttempt
from django_runstore.durable import JsonValue
from django_runstore.outcomes import Activated, ClaimAndOwnOutcome
from django_runstore.process_identity import host_scope
from django_runstore.snapshots import OwnedTransition, RunNote, Waiting
from django_runstore.testing import FakeClock

MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE

WEB_1: Final = OwnerId("web-1/boot", 4102, "t1-9f3a61c200000000")
WEB_2: Final = OwnerId("web-2/boot", 77, "t1-bbbb61c200000000")

# No process of this machine can have this number.
NOBODY_PID: Final = 2**22 - 3

STUCK: Final = "import-2026-10"
WAITING: Final = "refund-1187"
CLAIMED: Final = "mail-digest"
ROUNDS: Final = ("nightly", "nightly/1", "nightly/2", "nightly/3")
SETTLED: Final = 48
ONE_IN_SEVEN: Final = 5


def build_scene(now_ms: int) -> None:
    """
    Store the runs, as seen at ``now_ms``.

    ``STUCK`` was taken over once and its owner is gone again; ``WAITING`` waits for an
    approval; ``CLAIMED`` is held by a claimant of this host that no longer exists; ``ROUNDS``
    are a lineage with a parent, a child and a fork; the rest was settled in the last day.
    """
    clock = FakeClock(now_ms - 20 * HOUR)
    store = RunStore(clock=clock)
    _settled(store, clock)
    _stuck(store, clock, now_ms)
    _lineage(store, clock, now_ms)
    clock.set(now_ms - 2 * HOUR)
    _waiting(store)
    clock.set(now_ms - 40 * MINUTE)
    _claimed(store)
    clock.set(now_ms - MINUTE)
    store.create("invoice-4711", '{"order": 4711}', handler="shop.invoice", queue="mail")


def _own(store: RunStore, run_id: str, owner: OwnerId) -> int:
    outcome = store.claim_and_own(run_id, store.get(run_id), owner)
    return _granted(outcome)


def _granted(outcome: ClaimAndOwnOutcome) -> int:
    if not isinstance(outcome, Activated):
        raise RuntimeError(f"the scene cannot be set twice: {outcome.code}")  # noqa: TRY004 - no type
    return outcome.fence


def _settled(store: RunStore, clock: FakeClock) -> None:
    for number in range(SETTLED):
        clock.advance(20 * MINUTE)
        run_id = f"order-{4000 + number}"
        store.create(run_id, json.dumps({"order": 4000 + number}), handler="shop.order")
        fence = _own(store, run_id, WEB_1)
        clock.advance(4_000 + number * 130)
        ending = OwnedTransition(run_id, fence, "completed", result_json='{"shipped": true}')
        if number % 7 == ONE_IN_SEVEN:
            error = {"type": "ConnectionError", "message": "the carrier did not answer"}
            ending = OwnedTransition(run_id, fence, "failed", error_json=json.dumps(error))
        store.transition_many(WEB_1, [ending])


def _stuck(store: RunStore, clock: FakeClock, now_ms: int) -> None:
    clock.set(now_ms - 4 * HOUR)
    state = {"month": "2026-10", "rows": [{"id": n, "total": n * 3.5} for n in range(60)]}
    store.create(STUCK, json.dumps(state), handler="shop.import", queue="imports")
    fence = _own(store, STUCK, WEB_1)
    _attempt(store, clock, WEB_1, fence, 0, error={"type": "TimeoutError", "message": "no answer"})
    clock.advance(20_000)
    _attempt(store, clock, WEB_1, fence, 1, outcome={"rows": 12_000})
    clock.advance(33_000)
    evidence = LivenessEvidence(
        WEB_1, int(clock.now_ms()), "cross-host-unreachable-stale", {"age_ms": 33_000}
    )
    seen = store.get(STUCK)
    fence = _granted(store.claim_and_own(STUCK, seen, WEB_2, evidence=evidence))
    clock.advance(20 * MINUTE)
    note = RunNote("runstore.run.put_back", {"reason": "draining"})
    store.transition_many(WEB_2, [OwnedTransition(STUCK, fence, "suspended", note=note)])
    clock.set(now_ms - 15 * MINUTE)
    gone = _gone()
    fence = _own(store, STUCK, gone)
    said = json.dumps({"fraction": 0.3, "message": "12,000 of 40,000 rows"})
    store.save_progress(STUCK, gone, fence=fence, progress_json=said)
    clock.set(now_ms - 7 * MINUTE)
    store.heartbeat(STUCK, gone, fence=fence)


def _attempt(
    store: RunStore, clock: FakeClock, owner: OwnerId, fence: int, number: int, **ending: JsonValue
) -> None:
    attempts = AttemptStore(clock=clock)
    begun = AttemptRecord(
        STUCK, "extract", number, "running", int(clock.now_ms()), meta=None, step_name="extract"
    )
    attempts.put(begun, owner, fence=fence)
    clock.advance(12_000)
    state = "failed" if "error" in ending else "completed"
    attempts.finish(
        FinishAttempt(STUCK, "extract", number, state, int(clock.now_ms()), **ending),
        owner,
        fence=fence,
    )
    store.heartbeat(STUCK, owner, fence=fence)


def _lineage(store: RunStore, clock: FakeClock, now_ms: int) -> None:
    clock.set(now_ms - HOUR)
    store.create("catalogue", "{}", handler="shop.catalogue")
    parent = "catalogue"
    for ordinal, run_id in enumerate(ROUNDS):
        store.create(
            run_id,
            "{}",
            handler="shop.nightly",
            parent_run_id=parent,
            lineage_id="nightly",
            round_ordinal=ordinal,
        )
        parent = run_id
        if run_id != ROUNDS[-1]:
            _complete(store, clock, run_id)
    store.create("stock-report", "{}", handler="shop.report", parent_run_id=ROUNDS[1])
    store.create(
        "what-if",
        "{}",
        handler="shop.nightly",
        parent_run_id=ROUNDS[2],
        lineage_id="what-if",
        round_ordinal=0,
    )
    _complete(store, clock, "catalogue")


def _complete(store: RunStore, clock: FakeClock, run_id: str) -> None:
    fence = _own(store, run_id, WEB_2)
    clock.advance(9 * MINUTE)
    store.transition_many(WEB_2, [OwnedTransition(run_id, fence, "completed")])


def _waiting(store: RunStore) -> None:
    store.create(WAITING, '{"order": 1187}', handler="shop.refund", queue="mail")
    fence = _own(store, WAITING, WEB_1)
    store.park(WAITING, Waiting("approval", token="refund-1187"), WEB_1, fence=fence)  # noqa: S106 - names what is waited for
    store.transition_many(WEB_1, [OwnedTransition(WAITING, fence, "suspended")])


def _claimed(store: RunStore) -> None:
    store.create(CLAIMED, "{}", handler="shop.digest", queue="mail")
    store.claim(CLAIMED, store.get(CLAIMED), _gone())


def _gone() -> OwnerId:
    """A process of this host that does not exist."""
    return OwnerId(host_scope(), NOBODY_PID, "t1-9f3a61c200000000")
