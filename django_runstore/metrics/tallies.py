"""Which counters one call of an operation moves, and by how much. Spec: run-store 11.1."""

from collections import Counter as Amounts
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from django_runstore.metrics.contract import (
    BROKEN,
    DURABLE,
    JOURNAL_WRITES,
    MANY,
    RUN_CLAIMS,
    RUN_HEARTBEATS,
    RUN_TRANSITIONS,
    Counter,
    status_label,
)
from django_runstore.outcomes import Activated


@dataclass(frozen=True, slots=True)
class Ending:
    """How one call of an operation ended."""

    operation: str
    outcome: str
    answer: Any
    """What the operation returned; ``None`` when it raised."""

    asked: Any
    """The argument that its tally reads, as it was passed and unchecked if the call raised."""

    @property
    def broke(self) -> bool:
        """Tell whether the call raised."""
        return self.outcome in BROKEN


Increment: TypeAlias = tuple[Counter, dict[str, str], int]
Tally: TypeAlias = Callable[[Ending], Iterator[Increment]]


def uncounted(_: Ending) -> Iterator[Increment]:
    """Count nothing: the operation has a span only."""
    yield from ()


def claims(ending: Ending) -> Iterator[Increment]:
    """Count one attempt."""
    yield RUN_CLAIMS, {"op": ending.operation, "outcome": ending.outcome}, 1


def claims_of_many(ending: Ending) -> Iterator[Increment]:
    """Count each run that was claimed; a look that found nothing is no attempt."""
    if ending.broke:
        yield from claims(ending)
    elif ending.answer:
        labels = {"op": ending.operation, "outcome": Activated.code}
        yield RUN_CLAIMS, labels, len(ending.answer)


def heartbeats(ending: Ending) -> Iterator[Increment]:
    """Count one beat."""
    yield RUN_HEARTBEATS, {"outcome": ending.outcome}, 1


def heartbeats_of_many(ending: Ending) -> Iterator[Increment]:
    """Count each run's beat; a call that broke is one failure."""
    if ending.broke:
        yield from heartbeats(ending)
        return
    for code, amount in Amounts(outcome.code for outcome in ending.answer.values()).items():
        yield RUN_HEARTBEATS, {"outcome": code}, amount


def transitions(ending: Ending) -> Iterator[Increment]:
    """Count one attempt under the status that was asked for, also when it was refused."""
    yield RUN_TRANSITIONS, {"outcome": ending.outcome, "to": status_label(ending.asked)}, 1


def transitions_of_many(ending: Ending) -> Iterator[Increment]:
    """Count each run's transition; a call that broke is one failure."""
    if ending.broke:
        yield RUN_TRANSITIONS, {"outcome": ending.outcome, "to": MANY}, 1
        return
    moved = Amounts(
        (ending.answer[move.run_id].code, status_label(move.to_status)) for move in ending.asked
    )
    for (code, status), amount in moved.items():
        yield RUN_TRANSITIONS, {"outcome": code, "to": status}, amount


def durable_writes(ending: Ending) -> Iterator[Increment]:
    """Count one event under its receipt."""
    yield JOURNAL_WRITES, {"channel": DURABLE, "receipt": ending.outcome}, 1
