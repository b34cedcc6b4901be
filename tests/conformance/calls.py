"""Every operation with arguments that it admits, in the order it validates them."""

from dataclasses import dataclass, replace
from typing import Any

from django_runstore import TransitionGuard, Waiting
from django_runstore.services import RunStore
from django_runstore.snapshots import OwnedTransition, RunNote
from tests.conformance.world import A, B, P, fresh_evidence, running


@dataclass(frozen=True)
class Call:
    """One operation, its admissible arguments by name, and the field each is complained of as."""

    operation: str
    arguments: dict[str, Any]
    fields: dict[str, str]

    def on(self, store: RunStore, **replaced: Any) -> Any:
        return getattr(store, self.operation)(**{**self.arguments, **replaced})

    def naming(self, run_id: str) -> "Call":
        return replace(self, arguments={**self.arguments, "run_id": run_id})


def call(operation: str, **arguments: Any) -> Call:
    fields = {name: FIELDS.get(name, name) for name in arguments}
    return Call(operation, arguments, fields)


FIELDS = {
    "parent_run_id": "options",
    "lineage_id": "options",
    "round_ordinal": "options",
    # Described by length and validity, without a field name.
    "state_json": "",
}

EVIDENCE = fresh_evidence(A, B, 0)

# Spec 4.3, and for what it does not know the order of the signature. A fence comes last:
# it is this package's own.
SINGLE = {
    item.operation: item
    for item in (
        call(
            "create",
            run_id="new",
            parent_run_id=None,
            lineage_id="line",
            round_ordinal=0,
            state_json="{}",
        ),
        call("get", run_id="run"),
        call("lineage", run_id="run"),
        call("latest_round", run_id="run"),
        call("request_cancel", run_id="run", now_ms=0),
        call("request_cancel_lineage", run_id="run", now_ms=0),
        call("acknowledge_cancel", run_id="run", owner=A, now_ms=0, fence=None),
        call("claim", run_id="run", expected=P, claimant=B, now_ms=0),
        call(
            "claim_and_own",
            run_id="run",
            expected=running(A, 0),
            owner=B,
            now_ms=0,
            evidence=EVIDENCE,
        ),
        call("activate", run_id="run", claimant=A, claimed_at_ms=0, expected=P, fence=None),
        call("abandon_claim", run_id="run", claimant=A, claimed_at_ms=0, fence=None),
        call(
            "recover_claim",
            run_id="run",
            stale_claimant=A,
            claimed_at_ms=0,
            observer=B,
            now_ms=0,
            evidence=EVIDENCE,
            fence=None,
        ),
        call("heartbeat", run_id="run", owner=A, now_ms=0, fence=None),
        call("reconfirm", run_id="run", owner=A, now_ms=0, fence=None),
        call(
            "transition_owned",
            run_id="run",
            owner=A,
            to_status="running",
            state_json="{}",
            guard=TransitionGuard(),
            fence=None,
            available_at_ms=None,
        ),
        call("park", run_id="run", waiting=Waiting("timer", 1), owner=A, fence=None),
        call("wake", run_id="run"),
        call("waiting", run_id="run"),
        call(
            "steal",
            run_id="run",
            expected=running(A, 0),
            claimant=B,
            now_ms=0,
            evidence=EVIDENCE,
        ),
    )
}

OWN = {
    item.operation: item
    for item in (
        call(
            "save_progress",
            run_id="run",
            owner=A,
            fence=1,
            now_ms=0,
            progress_json="{}",
            state_json="{}",
        ),
        call("claim_many", owner=A, limit=1, queues=None, handlers=None, now_ms=0),
        call("heartbeat_many", owner=A, runs=[("run", 1)], now_ms=0),
        call(
            "transition_many",
            owner=A,
            transitions=[
                OwnedTransition(
                    run_id="run",
                    fence=1,
                    to_status="running",
                    guard=TransitionGuard(),
                    note=RunNote("seen", {"n": 1}),
                )
            ],
        ),
    )
}

# Not about one run.
LISTS = {
    item.operation: item
    for item in (
        call("waiting_runs", reason=None, due_before_ms=None, cancel_requested=None, limit=10),
        call("changes", after=None, limit=10),
    )
}

CALLS = SINGLE | OWN | LISTS

# Their answers tell of all changes before them, so two of them are never equal.
TELLING_ALL = {"changes", "rotate_identity", "revision"}

# What has no argument cannot be refused one.
WITHOUT_ARGUMENTS = {name: call(name) for name in ("identity", "revision", "rotate_identity")}
EVERY = CALLS | WITHOUT_ARGUMENTS
