"""Let runs go on that wait for a time or for somebody."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar, assert_never

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_runstore.admin.actions.contract import (
    Acting,
    Answer,
    Group,
    Member,
    RunAction,
    Words,
    carry_out,
    gone,
)
from django_runstore.admin.wording import moment, shown_text
from django_runstore.models import Run
from django_runstore.outcomes import NotFound, NotWaiting, Woken
from django_runstore.services import RunStore
from django_runstore.states import CLAIMABLE_STATUSES


class WakeRun(RunAction):
    """End the wait of a run that nobody executes, so that it can be claimed at once."""

    name = "wake_run"
    permission = "wake_run"
    label = _("Wake now")
    list_label = _("Wake selected runs now")
    confirm_label = _("Yes, wake")
    meaning: ClassVar[Sequence[Words]] = (
        _(
            "What the run waits for is cleared, and a supervisor can claim it at once. Its "
            "handler goes on as if the time had come, without an answer: a handler that waits "
            "for somebody has to cope with that, or waits anew."
        ),
        _("Runs that are being executed, and runs that wait for nothing, are left as they are."),
    )

    def is_offered(self, run: Run, using: str) -> bool:
        """Offer it while the run waits."""
        return _waits(run)

    def preview(self, runs: Sequence[Run], store: RunStore) -> Sequence[Group]:
        """Say what each waits for."""
        waiting = [Member(run, _wait_in_words(run)) for run in runs if _waits(run)]
        others = [Member(run) for run in runs if not _waits(run)]
        return (
            Group(gettext("Will be woken"), waiting, is_affected=True),
            Group(gettext("Left as they are; they do not wait"), others),
        )

    def perform(self, runs: Sequence[Run], acting: Acting) -> Iterator[Answer]:
        """Wake each that still waits."""
        for run in runs:
            yield carry_out(run, acting, self.label, partial(_wake, run, acting.store))


def _waits(run: Run) -> bool:
    """Tell whether waking makes a difference; whoever executes a run has its wait in hand."""
    return run.status in CLAIMABLE_STATUSES and run.waiting_reason is not None


def _wait_in_words(run: Run) -> str:
    values = {"reason": shown_text(str(run.waiting_reason))}
    if run.waiting_wake_at_ms is None:
        return gettext("waits for %(reason)s") % values
    values["moment"] = moment(run.waiting_wake_at_ms)
    return gettext("waits for %(reason)s, until %(moment)s") % values


def _wake(run: Run, store: RunStore) -> Answer:
    if not _waits(run):
        return Answer(run.run_id, gettext("It was not waiting"), is_done=False)
    outcome = store.wake(run.run_id)
    match outcome:
        case Woken():
            return Answer(run.run_id, gettext("Woken"), is_done=True, detail=_wait_in_words(run))
        case NotWaiting():
            return Answer(run.run_id, gettext("It was not waiting any more"), is_done=False)
        case NotFound():
            return gone(run.run_id)
        case _ as unreachable:
            assert_never(unreachable)
