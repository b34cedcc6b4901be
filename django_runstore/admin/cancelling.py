"""Ask runs to stop, and say of each what became of the request."""

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias, assert_never

from django.db import transaction
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_runstore.admin.wording import moment
from django_runstore.errors import RunStoreError
from django_runstore.models import Run
from django_runstore.outcomes import (
    AlreadyRequested,
    CancelOutcome,
    CancelRequested,
    NotFound,
    Terminal,
)
from django_runstore.services import RunStore
from django_runstore.supervision.announcements import printable

MOST_CANCELLED: Final = 500
"""Runs of one action; more than a person means to stop with one click."""

MOST_NAMED: Final = 20

Answer: TypeAlias = CancelOutcome | RunStoreError
Report: TypeAlias = list[tuple[str, list[str]]]

REQUESTED: Final[Promise] = gettext_lazy("Asked to stop")
LINEAGE_REQUESTED: Final[Promise] = gettext_lazy("Asked to stop, with the whole lineage")


def cancel_runs(store: RunStore, runs: Iterable[Run], record: Callable[[Run], object]) -> Report:
    """
    Request the cancellation of every run.

    Args:
        record: Called with each run that was asked to stop, in the transaction of the request.

    Returns:
        Per outcome, in words, the names of the runs with it; the requests that were recorded
        come first.
    """
    answers = (
        (run.run_id, _ask(store, store.request_cancel, run.run_id, [run], record)) for run in runs
    )
    return _grouped(REQUESTED, _run_in_words, answers)


def cancel_lineages(
    store: RunStore, runs: Iterable[Run], record: Callable[[Run], object]
) -> Report:
    """
    Request the cancellation of all rounds of the logical runs that ``runs`` belong to.

    Args:
        record: Called with each live round that nobody had asked before, in the transaction
            of the request.

    Returns:
        As ``cancel_runs``, with the names of the logical runs.
    """
    answers: list[tuple[str, Answer]] = []
    # A root without a lineage of its own gives its name to the lineage.
    for logical, run_id in {run.lineage_id or run.run_id: run.run_id for run in runs}.items():
        # Read before the transaction: on SQLite one that reads first cannot wait to write.
        rounds = Run.objects.using(store.using).lineage_of(run_id).live()
        unasked = list(rounds.filter(cancel_requested_at_ms=None).only("run_id")[:MOST_CANCELLED])
        answer = _ask(store, store.request_cancel_lineage, run_id, unasked, record)
        answers.append((logical, answer))
    return _grouped(LINEAGE_REQUESTED, _lineage_in_words, answers)


def listed(names: list[str]) -> str:
    """List names in a message, the first ``MOST_NAMED`` of them."""
    shown = ", ".join(names[:MOST_NAMED])
    if len(names) <= MOST_NAMED:
        return shown
    return _("%(names)s and %(number)d more") % {"names": shown, "number": len(names) - MOST_NAMED}


def _ask(
    store: RunStore,
    request: Callable[[str], CancelOutcome],
    run_id: str,
    asked: Iterable[Run],
    record: Callable[[Run], object],
) -> Answer:
    try:
        with transaction.atomic(using=store.using):
            outcome = request(run_id)
            if isinstance(outcome, CancelRequested):
                for run in asked:
                    record(run)
    except RunStoreError as error:
        return error
    return outcome


def _grouped(
    first: Promise, in_words: Callable[[Answer], str], answers: Iterable[tuple[str, Answer]]
) -> Report:
    found: dict[str, list[str]] = {str(first): []}
    for run_id, answer in answers:
        name = printable(run_id)
        # Beside the run and not in the words: one message for all, however many moments.
        if isinstance(answer, AlreadyRequested):
            name = f"{name} ({moment(answer.requested_at_ms)})"
        found.setdefault(in_words(answer), []).append(name)
    return [(said, names) for said, names in found.items() if names]


def _run_in_words(answer: Answer) -> str:
    match answer:
        case CancelRequested():
            return str(REQUESTED)
        case AlreadyRequested():
            return _("Asked before")
        case Terminal(status):
            return _("Ended before, as %(status)s") % {"status": status.label}
        case NotFound():
            return _("Not there any more")
        case RunStoreError():
            return _("Could not be asked (%(code)s)") % {"code": answer.code}
        case _ as unreachable:
            assert_never(unreachable)


def _lineage_in_words(answer: Answer) -> str:
    match answer:
        case CancelRequested():
            return str(LINEAGE_REQUESTED)
        case AlreadyRequested():
            return _("Every live round was asked before")
        case Terminal(status):
            ended = status.label
            return _("Every round ended before, the latest as %(status)s") % {"status": ended}
        case NotFound():
            return _("Not there any more")
        case RunStoreError():
            return _("Could not be asked (%(code)s)") % {"code": answer.code}
        case _ as unreachable:
            assert_never(unreachable)
