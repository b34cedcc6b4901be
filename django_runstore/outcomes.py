"""
What an operation answers: one frozen class per outcome, each with a stable ``code``.

An answer other than the hoped-for one means a race was lost, not that something
broke. Every operation's return type is the exact union of what it can answer, so
``match`` with ``assert_never`` type-checks.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from django_runstore.states import RunStatus


@dataclass(frozen=True, slots=True)
class Claimed:
    """The run is reserved for the claimant; pass ``claimed_at_ms`` to ``activate()``."""

    code: ClassVar[str] = "claimed"
    claimed_at_ms: int
    fence: int


@dataclass(frozen=True, slots=True)
class Activated:
    """The run is owned and running; ``fence`` is the token of this ownership."""

    code: ClassVar[str] = "activated"
    fence: int


@dataclass(frozen=True, slots=True)
class NotFound:
    """There is no such row."""

    code: ClassVar[str] = "not_found"


@dataclass(frozen=True, slots=True)
class AlreadyClaimed:
    """Another claimant is ahead; back off."""

    code: ClassVar[str] = "already_claimed"


@dataclass(frozen=True, slots=True)
class HeartbeatFresh:
    """The owner's heartbeat is not stale; the run must not be taken."""

    code: ClassVar[str] = "heartbeat_fresh"


@dataclass(frozen=True, slots=True)
class SnapshotChanged:
    """The row no longer matches what the caller read; read it again before deciding."""

    code: ClassVar[str] = "snapshot_changed"


@dataclass(frozen=True, slots=True)
class EvidenceRequired:
    """The owner is stale but not proven dead; supply evidence, retrying cannot help."""

    code: ClassVar[str] = "evidence_required"


@dataclass(frozen=True, slots=True)
class LivenessUnconfirmed:
    """The evidence does not prove this owner dead to this observer at this instant."""

    code: ClassVar[str] = "liveness_unconfirmed"


@dataclass(frozen=True, slots=True)
class ClaimLost:
    """The claim is no longer the caller's."""

    code: ClassVar[str] = "claim_lost"


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The claim was given back."""

    code: ClassVar[str] = "abandoned"


@dataclass(frozen=True, slots=True)
class Recovered:
    """The dead claimant's claim was cleared; the run can be claimed again."""

    code: ClassVar[str] = "recovered"


@dataclass(frozen=True, slots=True)
class ClaimFresh:
    """The claim is too young to be taken away."""

    code: ClassVar[str] = "claim_fresh"


@dataclass(frozen=True, slots=True)
class ClaimChanged:
    """The claim is not the one named."""

    code: ClassVar[str] = "claim_changed"


@dataclass(frozen=True, slots=True)
class Updated:
    """The write was made under the caller's ownership."""

    code: ClassVar[str] = "updated"


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """The row was locked by somebody, so the beat was neither made nor refused; try again."""

    code: ClassVar[str] = "unconfirmed"


@dataclass(frozen=True, slots=True)
class FenceLost:
    """The caller no longer owns the run; stop, another write would be a lie."""

    code: ClassVar[str] = "fence_lost"


@dataclass(frozen=True, slots=True)
class Transitioned:
    """The run has the requested status."""

    code: ClassVar[str] = "transitioned"


@dataclass(frozen=True, slots=True)
class GuardFailed:
    """The run is the caller's, but a cancel request is there (or is not); take the other branch."""

    code: ClassVar[str] = "guard_failed"


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """The request was recorded at ``requested_at_ms``."""

    code: ClassVar[str] = "cancel_requested"
    requested_at_ms: int


@dataclass(frozen=True, slots=True)
class AlreadyRequested:
    """A request was there before, since ``requested_at_ms``."""

    code: ClassVar[str] = "already_requested"
    requested_at_ms: int


@dataclass(frozen=True, slots=True)
class Terminal:
    """The run was settled as ``status`` before; there is nothing to cancel."""

    code: ClassVar[str] = "terminal"
    status: RunStatus


@dataclass(frozen=True, slots=True)
class Accepted:
    """The event is in the journal, at ``seq`` of its stream."""

    code: ClassVar[str] = "accepted"
    seq: int
    source_seq: int


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The event was in the journal before, at ``seq``; nothing was written."""

    code: ClassVar[str] = "duplicate"
    seq: int
    source_seq: int
    status: Literal["committed"] = "committed"


@dataclass(frozen=True, slots=True)
class Parked:
    """The run is recorded as waiting; it is still the caller's until it is suspended."""

    code: ClassVar[str] = "parked"


@dataclass(frozen=True, slots=True)
class Woken:
    """The run waits no more; a suspended one can be claimed now."""

    code: ClassVar[str] = "woken"


@dataclass(frozen=True, slots=True)
class NotWaiting:
    """The run was not waiting, or had ended; nothing changed."""

    code: ClassVar[str] = "not_waiting"


@dataclass(frozen=True, slots=True)
class Inserted:
    """The attempt is new and stored."""

    code: ClassVar[str] = "inserted"


@dataclass(frozen=True, slots=True)
class Upserted:
    """The attempt was in progress and is replaced as a whole."""

    code: ClassVar[str] = "upserted"


@dataclass(frozen=True, slots=True)
class ExistingSame:
    """The attempt was stored before, with the same content; a repeated put is safe."""

    code: ClassVar[str] = "existing_same"


@dataclass(frozen=True, slots=True)
class Conflict:
    """The attempt is stored with other content, which stands: two writers disagree."""

    code: ClassVar[str] = "conflict"


@dataclass(frozen=True, slots=True)
class RunMissing:
    """There is no run for this attempt; create it first."""

    code: ClassVar[str] = "run_missing"


@dataclass(frozen=True, slots=True)
class Finished:
    """The attempt has the terminal state it was given."""

    code: ClassVar[str] = "finished"


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The attempt is not in progress any more; what is stored stands."""

    code: ClassVar[str] = "state_changed"


@dataclass(frozen=True, slots=True)
class Patched:
    """The values given were replaced, and nothing else."""

    code: ClassVar[str] = "patched"


ClaimLoss: TypeAlias = NotFound | AlreadyClaimed | HeartbeatFresh | SnapshotChanged
ClaimOutcome: TypeAlias = Claimed | ClaimLoss
ClaimAndOwnOutcome: TypeAlias = Activated | ClaimLoss | EvidenceRequired
StealOutcome: TypeAlias = Claimed | ClaimLoss | LivenessUnconfirmed
ActivateOutcome: TypeAlias = Activated | ClaimLost | SnapshotChanged
AbandonOutcome: TypeAlias = Abandoned | ClaimLost
RecoverOutcome: TypeAlias = Recovered | NotFound | ClaimFresh | ClaimChanged | LivenessUnconfirmed
HeartbeatOutcome: TypeAlias = Updated | FenceLost | NotFound
BatchHeartbeatOutcome: TypeAlias = Updated | FenceLost | NotFound | Unconfirmed
TransitionOutcome: TypeAlias = Transitioned | FenceLost | NotFound | GuardFailed
CancelOutcome: TypeAlias = CancelRequested | AlreadyRequested | NotFound | Terminal
EmitOutcome: TypeAlias = Accepted | Duplicate
ParkOutcome: TypeAlias = Parked | FenceLost | NotFound
WakeOutcome: TypeAlias = Woken | NotWaiting | NotFound
PutOutcome: TypeAlias = Inserted | Upserted | ExistingSame | Conflict | RunMissing | FenceLost
AttemptHeartbeatOutcome: TypeAlias = Updated | NotFound | FenceLost | StateChanged
FinishOutcome: TypeAlias = Finished | NotFound | FenceLost | StateChanged
PatchOutcome: TypeAlias = Patched | NotFound | FenceLost
