"""
Values callers hand to ``AttemptStore`` and get back: frozen, checked by the store alone.

None of them validates anything when built; the store does, before it touches the database,
and refuses dicts and look-alikes. ``UNSET`` stands for what is absent: ``None`` is JSON's
null and a value like any other. Spec: run-store 5.2.
"""

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from django_runstore.durable import structurally_equal
from django_runstore.unset import UNSET, UnsetType


@dataclass(frozen=True, slots=True)
class AttemptId:
    """Which execution of which step of which run; the caller numbers attempts, from 0."""

    run_id: str
    step_key_digest: str
    attempt: int


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """
    One attempt, as it is put and as it is read. Accepted wherever an ``AttemptId`` is.

    Every ``*_at_ms`` is in milliseconds since the Unix epoch, as callers gave it: attempts
    have no clock and no order among their times.

    Attributes:
        state: Any durable text; the store only knows which states are in progress.
        meta: Any JSON value, and always there: null unless given.
        checkpoint: Any JSON value of at most ``max_checkpoint_bytes``.
        step_name: For people; empty when there is none.
    """

    run_id: str
    step_key_digest: str
    attempt: int
    state: str
    started_at_ms: int
    meta: Any = field(default=None, repr=False)  # may hold secrets, and a repr lands in logs
    finished_at_ms: int | UnsetType = UNSET
    heartbeat_at_ms: int | UnsetType = UNSET
    checkpoint: Any = field(default=UNSET, repr=False)
    error: Any = field(default=UNSET, repr=False)
    outcome: Any = field(default=UNSET, repr=False)
    step_name: str = ""


@dataclass(frozen=True, slots=True)
class FinishAttempt:
    """How an attempt ended; what is absent stays as it is stored."""

    run_id: str
    step_key_digest: str
    attempt: int
    state: str
    finished_at_ms: int
    error: Any = field(default=UNSET, repr=False)
    outcome: Any = field(default=UNSET, repr=False)
    meta: Any = field(default=UNSET, repr=False)


@dataclass(frozen=True, slots=True)
class AttemptPatch:
    """Values to replace in an attempt of any state; what is absent stays as it is stored."""

    checkpoint: Any = field(default=UNSET, repr=False)
    error: Any = field(default=UNSET, repr=False)
    outcome: Any = field(default=UNSET, repr=False)
    meta: Any = field(default=UNSET, repr=False)


AttemptKey: TypeAlias = AttemptId | AttemptRecord | FinishAttempt
"""Whatever says which attempt it is about."""

_EXACT: Final = ("state", "started_at_ms", "finished_at_ms", "heartbeat_at_ms", "step_name")
_STRUCTURAL: Final = ("checkpoint", "error", "outcome", "meta")


def same_content(first: AttemptRecord, second: AttemptRecord) -> bool:
    """
    Say whether two records of admitted values differ in nothing but their ids.

    Values are the same when they mean the same: the order of an object's keys is ignored and
    that of a list matters, 1 equals 1.0 and not ``True``, absent is not null.
    """
    return all(getattr(first, name) == getattr(second, name) for name in _EXACT) and all(
        _same_value(getattr(first, name), getattr(second, name)) for name in _STRUCTURAL
    )


def _same_value(first: object, second: object) -> bool:
    if first is UNSET or second is UNSET:
        return first is second
    return structurally_equal(first, second)
