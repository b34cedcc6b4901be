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

Report: TypeAlias = list[tuple[str, list[str]]]

REQUESTED: Final[Promise] = gettext_lazy("Asked to stop")
LINEAGE_REQUESTED: Final[Promise] = gettext_lazy("Asked to stop, with the whole lineage")


def cancel_runs(store: RunStore, runs: Iterable[Run], record: Callable[[Run], object]) -> Report:
    """
    Request the cancellation of every run.

    Args:
        record: Called with each run that was asked to stop, in the transaction of the request.

    Returns:
        Per outcome, in words, the ids with it; the requests that were recorded come first.
    """
    answers = (
        (run.run_id, _ask(store, store.request_cancel, run.run_id, [run], record)) for run in runs
    )
    return _grouped(REQUESTED, ((run_id, _run_in_words(answer)) for run_id, answer in answers))


def cancel_lineages(
    store: RunStore, runs: Iterable[Run], record: Callable[[Run], object]
) -> Report:
    """
    Request the cancellation of all rounds of the logical runs that ``runs`` belong to.

    Args:
        record: Called with each live round that nobody had asked before, in the transaction
            of the request.

    Returns:
        As ``cancel_runs``, with the ids of the logical runs.
    """
    words: list[tuple[str, str]] = []
    # A root without a lineage of its own gives its name to the lineage.
    for logical, run_id in {run.lineage_id or run.run_id: run.run_id for run in runs}.items():
        # Read before the transaction: on SQLite one that reads first cannot wait to write.
        rounds = Run.objects.using(store.using).lineage_of(run_id).live()
        unasked = list(rounds.filter(cancel_requested_at_ms=None).only("run_id")[:MOST_CANCELLED])
        answer = _ask(store, store.request_cancel_lineage, run_id, unasked, record)
        words.append((logical, _lineage_in_words(answer)))
    return _grouped(LINEAGE_REQUESTED, words)


def named(run_ids: list[str]) -> str:
    """List runs in a message, the first ``MOST_NAMED`` of them."""
    names = ", ".join(map(printable, run_ids[:MOST_NAMED]))
    if len(run_ids) <= MOST_NAMED:
        return names
    return _("%(names)s and %(number)d more") % {
        "names": names,
        "number": len(run_ids) - MOST_NAMED,
    }


def _ask(
    store: RunStore,
    request: Callable[[str], CancelOutcome],
    run_id: str,
    asked: Iterable[Run],
    record: Callable[[Run], object],
) -> CancelOutcome | RunStoreError:
    try:
        with transaction.atomic(using=store.using):
            outcome = request(run_id)
            if isinstance(outcome, CancelRequested):
                for run in asked:
                    record(run)
    except RunStoreError as error:
        return error
    return outcome


def _grouped(first: Promise, words: Iterable[tuple[str, str]]) -> Report:
    found: dict[str, list[str]] = {str(first): []}
    for run_id, said in words:
        found.setdefault(said, []).append(run_id)
    return [(said, run_ids) for said, run_ids in found.items() if run_ids]


def _run_in_words(answer: CancelOutcome | RunStoreError) -> str:
    match answer:
        case CancelRequested():
            return str(REQUESTED)
        case AlreadyRequested(requested_at_ms):
            return _("Asked before, at %(time)s") % {"time": moment(requested_at_ms)}
        case Terminal(status):
            return _("Ended before, as %(status)s") % {"status": status.label}
        case NotFound():
            return _("Not there any more")
        case RunStoreError():
            return _("Could not be asked (%(code)s)") % {"code": answer.code}
        case _ as unreachable:
            assert_never(unreachable)


def _lineage_in_words(answer: CancelOutcome | RunStoreError) -> str:
    match answer:
        case CancelRequested():
            return str(LINEAGE_REQUESTED)
        case AlreadyRequested(requested_at_ms):
            time = moment(requested_at_ms)
            return _("Every live round was asked before, the latest at %(time)s") % {"time": time}
        case Terminal(status):
            ended = status.label
            return _("Every round ended before, the latest as %(status)s") % {"status": ended}
        case NotFound():
            return _("Not there any more")
        case RunStoreError():
            return _("Could not be asked (%(code)s)") % {"code": answer.code}
        case _ as unreachable:
            assert_never(unreachable)
