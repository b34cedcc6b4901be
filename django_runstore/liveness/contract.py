"""What a liveness check is given and what it answers. Spec: run-store 7.1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django_runstore.owners import OwnerId

Observed: TypeAlias = "Mapping[str, str | int | bool]"


@dataclass(frozen=True, slots=True)
class LivenessContext:
    """Who asks, what the row says, and what time it is."""

    claimant: OwnerId
    heartbeat_at_ms: int | None
    """The stamp of the row: its heartbeat, or for a pending claim when it was granted."""

    now_ms: int


class LivenessCheck(Protocol):
    """Decides whether an owner still works."""

    def __call__(self, expected_owner: OwnerId, context: LivenessContext, /) -> bool:
        """Return True when the owner works or may work; only False allows a takeover."""
        ...


@dataclass(frozen=True, slots=True)
class LivenessVerdict:
    """The answer of a check together with what it rests on."""

    is_alive: bool
    observed: Observed = field(default_factory=dict)
    """A few small pairs that end up in the ownership fact."""

    process_is_gone: bool = False
    """Whether the process itself was looked for, and is not there."""


@runtime_checkable
class ExaminingCheck(Protocol):
    """
    A check that can also say what it saw.

    Verdict and observation come from one look, so that the journal never explains a
    takeover by something that was only seen afterwards.
    """

    def examine(self, expected_owner: OwnerId, context: LivenessContext, /) -> LivenessVerdict:
        """Look once, and return the verdict with its grounds."""
        ...
