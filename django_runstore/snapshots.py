"""
Values callers hand to the store and get back: frozen, checked by the store alone.

None of them validates anything when built; ``RunStore`` does, before it touches the
database, and refuses dicts and look-alikes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from django_runstore.owners import OwnerId
from django_runstore.states import RunStatus
from django_runstore.unset import UNSET, UnsetType


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """
    What a caller saw, restated as its compare-and-swap expectation.

    A ``running`` snapshot has an owner and a heartbeat, every other one has neither.
    """

    status: str
    owner: OwnerId | None = None
    heartbeat_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TransitionGuard:
    """A condition on the cancel request that a transition must meet in the same write."""

    cancel_requested: Literal["absent", "present"] | None = None


@dataclass(frozen=True, slots=True)
class CancelAcknowledgement:
    """The first time the owner said it had seen the cancel request."""

    observed_at_ms: int
    owner: OwnerId


@dataclass(frozen=True, slots=True)
class RunRow:
    """
    One run as stored, decoded and checked. Accepted wherever a snapshot is expected.

    Every ``*_at_ms`` is in milliseconds since the Unix epoch; every ``*_json`` is the
    stored text, byte for byte.
    """

    run_id: str
    status: RunStatus
    created_at_ms: int
    started_at_ms: int | None
    finished_at_ms: int | None
    owner: OwnerId | None
    heartbeat_at_ms: int | None
    claim: OwnerId | None
    claimed_at_ms: int | None
    parent_run_id: str | None
    cancel_requested_at_ms: int | None
    lineage_id: str | None
    round_ordinal: int | None
    state_json: str = field(repr=False)  # may hold secrets, and a repr lands in logs
    fence: int
    owner_fence: int | None
    handler: str
    queue: str
    priority: int
    concurrency_key: str
    concurrency_limit: int
    available_at_ms: int | None
    deadline_at_ms: int | None
    code_version: str
    state_version: int
    failure_count: int
    recovery_count: int
    progress_json: str | None = field(repr=False)
    progressed_at_ms: int | None
    result_json: str | None = field(repr=False)
    error_json: str | None = field(repr=False)
    cancel_acknowledgement: CancelAcknowledgement | None
    waiting_reason: str | None
    waiting_wake_at_ms: int | None
    waiting_token: str | None = field(repr=False)
    waiting_request: str | None = field(repr=False)

    @property
    def snapshot(self) -> RunSnapshot:
        """The three facts a claim is compared against."""
        return RunSnapshot(self.status, self.owner, self.heartbeat_at_ms)


@dataclass(frozen=True, slots=True)
class Waiting:
    """
    What a run waits for.

    Attributes:
        reason: Of an open vocabulary, such as ``timer`` or ``approval``; at most 512 bytes.
        wake_at_ms: When it wakes by itself; ``None`` for not by itself.
        token: What the one who wakes it is asked to show.
        request_json: What the wait declared about itself, as JSON text.
    """

    reason: str
    wake_at_ms: int | None = None
    token: str | None = field(default=None, repr=False)
    request_json: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A run that waits, without its state."""

    run_id: str
    waiting: Waiting
    cancel_requested_at_ms: int | None


@dataclass(frozen=True, slots=True)
class RunChange:
    """
    That a run is no longer as it was: read it again, or forget it when ``deleted``.

    Attributes:
        revision: The number of the change. It rises with every change of the same run.
    """

    run_id: str
    revision: int
    deleted: bool


@dataclass(frozen=True, slots=True)
class ChangePage:
    """
    The latest change of each run that has changed, one page of them, in the order to follow.

    Attributes:
        cursor: Where to go on, also after an empty page. Opaque; keep it as it is.
        has_more: The next page is there already.
    """

    changes: tuple[RunChange, ...]
    cursor: str
    has_more: bool


@dataclass(frozen=True, slots=True)
class RotatedIdentity:
    """What ``RunStore.rotate_identity`` did: the new identity, and how much was stamped anew."""

    identity: str
    runs: int
    tombstones: int


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """A run that ``claim_many`` made the caller the owner of; pass ``fence`` to every write."""

    run: RunRow
    fence: int


@dataclass(frozen=True, slots=True)
class RunNote:
    """
    A remark for the run's own journal stream, appended with the transition it explains.

    ``payload`` holds at most 16 pairs of text and a string, an integer, a boolean or
    ``None``; never state.
    """

    event_type: str
    payload: Mapping[str, str | int | bool | None]


@dataclass(frozen=True, slots=True)
class OwnedTransition:
    """
    One line of ``RunStore.transition_many``: a fenced ``transition_owned`` with its results.

    Attributes:
        fence: The grant the caller owns the run under.
        available_at_ms: When a suspended run may be claimed again; ``None`` for not before
            somebody wakes it, omitted for now.
        counts_failure: Add one to ``failure_count``.
        counts_recovery: Add one to ``recovery_count`` (a worker or host was lost).
        waiting: What the run waits for from now on, as ``park`` records it; ``None`` leaves
            an earlier wait as it is.
        note: Appended to the run's own stream in the same transaction.
    """

    run_id: str
    fence: int
    to_status: str
    state_json: str | None = field(default=None, repr=False)
    guard: TransitionGuard | None = None
    result_json: str | None = field(default=None, repr=False)
    error_json: str | None = field(default=None, repr=False)
    available_at_ms: int | UnsetType | None = UNSET
    counts_failure: bool = False
    counts_recovery: bool = False
    note: RunNote | None = None
    waiting: Waiting | None = None
