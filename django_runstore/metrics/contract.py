"""
Every counter, its labels and the values they take: a contract. Spec: run-store 11.1.

The labels of a counter are the same whether a call succeeded or not, so that sums over
them mean something. The values of a label are a closed set: no id and nothing a caller
passed can become one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, get_args

from django_runstore import outcomes
from django_runstore.durable import durable_text
from django_runstore.outcomes import (
    AbandonOutcome,
    Activated,
    ActivateOutcome,
    BatchHeartbeatOutcome,
    ClaimAndOwnOutcome,
    ClaimOutcome,
    RecoverOutcome,
    StealOutcome,
    TransitionOutcome,
)
from django_runstore.states import RunStatus

SUCCESS: Final = "success"
"""The outcome of a span whose operation has no outcomes to tell apart."""

FAILURE: Final = "failure"
"""The call raised an error, also one about its arguments."""

INTERRUPT: Final = "interrupt"
"""The call was cut short: cancelled, interrupted from the keyboard, told to exit."""

BROKEN: Final = (FAILURE, INTERRUPT)

CODES: Final[Mapping[type, str]] = {
    kind: kind.code
    for kind in vars(outcomes).values()
    if isinstance(kind, type) and hasattr(kind, "code")
}
"""Every class of outcome and what it is called."""

STATUSES: Final = tuple(RunStatus.values)

NO_STATUS: Final = "invalid"
"""Stands for any requested status that is none of the six."""

MANY: Final = "many"
"""The requested status of a ``transition_many`` that broke as a whole."""

DURABLE: Final = "durable"


@dataclass(frozen=True, slots=True)
class Counter:
    """A number that only grows, one per combination of label values."""

    name: str
    labels: tuple[str, ...]
    meaning: str
    answered: tuple[tuple[str, ...], ...] = ()
    """The label values that calls with an answer can have."""

    broken: tuple[tuple[str, ...], ...] = ()
    """The label values of calls that raised."""


def status_label(requested: object) -> str:
    """Name a requested status as a label; what is no status could be anything, and is not told."""
    plain = durable_text(requested)
    return plain if plain in STATUSES else NO_STATUS


def _codes(union: Any) -> tuple[str, ...]:  # noqa: ANN401 - of outcome classes, or one of them
    return tuple(kind.code for kind in get_args(union) or (union,))


def _pairs(table: Mapping[str, Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple((name, value) for name, values in table.items() for value in values)


_CLAIMS: Final = {
    "claim": _codes(ClaimOutcome),
    "claim_and_own": _codes(ClaimAndOwnOutcome),
    "activate": _codes(ActivateOutcome),
    "abandon_claim": _codes(AbandonOutcome),
    "recover_claim": _codes(RecoverOutcome),
    "steal": _codes(StealOutcome),
    "claim_many": _codes(Activated),
}

RUN_CLAIMS: Final = Counter(
    "runstore_run_claims",
    ("op", "outcome"),
    "Attempts to claim, own, activate, give back, recover or steal a run.",
    answered=_pairs(_CLAIMS),
    broken=tuple(product(_CLAIMS, BROKEN)),
)

RUN_HEARTBEATS: Final = Counter(
    "runstore_run_heartbeats",
    ("outcome",),
    "Heartbeats and reconfirmations of owners.",
    answered=tuple((code,) for code in _codes(BatchHeartbeatOutcome)),
    broken=tuple((outcome,) for outcome in BROKEN),
)

RUN_TRANSITIONS: Final = Counter(
    "runstore_run_transitions",
    ("outcome", "to"),
    "Attempts of owners to move a run on, by the status asked for.",
    answered=tuple(product(_codes(TransitionOutcome), STATUSES)),
    broken=tuple(product(BROKEN, (*STATUSES, NO_STATUS, MANY))),
)

RUN_THROUGHPUT: Final = Counter(
    "runstore_run_throughput", (), "Runs that reached a terminal status, once it was committed."
)

JOURNAL_WRITES: Final = Counter(
    "runstore_journal_writes",
    ("channel", "receipt"),
    "Events handed to the journal.",
    answered=((DURABLE, "accepted"), (DURABLE, "duplicate")),
    broken=tuple((DURABLE, outcome) for outcome in BROKEN),
)

DB_WRITE_RETRIES: Final = Counter(
    "runstore_db_write_retries", (), "Writes that were scheduled once more, the database busy."
)

COUNTERS: Final = (
    RUN_CLAIMS,
    RUN_HEARTBEATS,
    RUN_TRANSITIONS,
    RUN_THROUGHPUT,
    JOURNAL_WRITES,
    DB_WRITE_RETRIES,
)
