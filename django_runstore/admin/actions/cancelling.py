"""What asking to stop means, and its outcomes in words."""

from collections.abc import Sequence
from typing import Final, assert_never

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_runstore.admin.actions.contract import Acting, Answer, Group, Member, Words, gone
from django_runstore.admin.wording import moment
from django_runstore.models import Run
from django_runstore.outcomes import (
    AlreadyRequested,
    CancelOutcome,
    CancelRequested,
    NotFound,
    Terminal,
)
from django_runstore.states import RunStatus, is_terminal_run_status

MEANING: Final[Sequence[Words]] = (
    gettext_lazy(
        "Cancelling is a request. It is recorded now; the process that owns the run sees it "
        "within moments, interrupts the handler at its next save, progress or check, and ends "
        "its process when it does not listen."
    ),
    gettext_lazy(
        "What the handler has done until then is not undone. A run that completes or fails "
        "first keeps that ending. A run that nobody owns is cancelled by the next supervisor "
        "that takes it. The request cannot be taken back."
    ),
)


def groups_of(
    runs: Sequence[Run], *, has_more_live: bool = False, has_more_settled: bool = False
) -> tuple[Group, ...]:
    """
    Sort runs by what a request would do to them.

    Args:
        has_more_live, has_more_settled: Whether there are more of them than ``runs``.
    """
    live = [run for run in runs if not is_terminal_run_status(run.status)]
    unasked = [Member(run) for run in live if run.cancel_requested_at_ms is None]
    asked = [
        Member(run, _("asked %(moment)s") % {"moment": moment(run.cancel_requested_at_ms)})
        for run in live
        if run.cancel_requested_at_ms is not None
    ]
    settled = [
        Member(run, _("ended %(moment)s") % {"moment": moment(run.finished_at_ms)})
        for run in runs
        if is_terminal_run_status(run.status)
    ]
    return (
        Group(_("Will be asked to stop"), unasked, is_affected=True, has_more=has_more_live),
        Group(_("Asked before"), asked),
        Group(_("Settled already; nothing happens to them"), settled, has_more=has_more_settled),
    )


def answer_of(run: Run, outcome: CancelOutcome, acting: Acting) -> Answer:
    """Say what became of the request to one run."""
    match outcome:
        case CancelRequested():
            return Answer(run.run_id, _("Asked to stop"), is_done=True)
        case AlreadyRequested(at_ms):
            return Answer(run.run_id, _("Asked before"), is_done=False, detail=moment(at_ms))
        case Terminal(status):
            return ended(run, status, acting)
        case NotFound():
            return gone(run.run_id)
        case _ as unreachable:
            assert_never(unreachable)


def ended(run: Run, status: RunStatus, acting: Acting) -> Answer:
    """Say that a run had ended, and whether that was news to whoever asked."""
    said = (
        _("Ended meanwhile, as %(status)s")
        if acting.settled_meanwhile(run)
        else _("Ended before, as %(status)s")
    )
    return Answer(run.run_id, said % {"status": status.label}, is_done=False)
