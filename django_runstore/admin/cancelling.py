"""Ask runs to stop, and say of each what became of the request."""

from collections.abc import Callable, Iterable
from typing import Final, assert_never

from django.db import transaction
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_runstore.admin.wording import moment
from django_runstore.errors import RunStoreError
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

REQUESTED: Final[Promise] = gettext_lazy("Asked to stop")


def cancel_runs(
    store: RunStore, run_ids: Iterable[str], record: Callable[[str], object]
) -> list[tuple[str, list[str]]]:
    """
    Request the cancellation of every run.

    Args:
        record: Called with the id of each run that was asked to stop, in the transaction of
            the request.

    Returns:
        Per outcome, in words, the runs with it; the requests that were recorded come first.
    """
    words: dict[str, list[str]] = {str(REQUESTED): []}
    for run_id in run_ids:
        try:
            with transaction.atomic(using=store.using):
                outcome = store.request_cancel(run_id)
                if isinstance(outcome, CancelRequested):
                    record(run_id)
        except RunStoreError as error:
            said = _("Could not be asked (%(code)s)") % {"code": error.code}
        else:
            said = _in_words(outcome)
        words.setdefault(said, []).append(run_id)
    return [(said, found) for said, found in words.items() if found]


def named(run_ids: list[str]) -> str:
    """List runs in a message, the first ``MOST_NAMED`` of them."""
    names = ", ".join(map(printable, run_ids[:MOST_NAMED]))
    if len(run_ids) <= MOST_NAMED:
        return names
    return _("%(names)s and %(number)d more") % {
        "names": names,
        "number": len(run_ids) - MOST_NAMED,
    }


def _in_words(outcome: CancelOutcome) -> str:
    match outcome:
        case CancelRequested():
            return str(REQUESTED)
        case AlreadyRequested(requested_at_ms):
            return _("Asked before, at %(time)s") % {"time": moment(requested_at_ms)}
        case Terminal(status):
            return _("Ended before, as %(status)s") % {"status": status.label}
        case NotFound():
            return _("Not there any more")
        case _ as unreachable:
            assert_never(unreachable)
