"""Ask single runs to stop."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar

from django.utils.translation import gettext_lazy as _

from django_runstore.admin.actions.cancelling import MEANING, answer_of, groups_of
from django_runstore.admin.actions.contract import (
    Acting,
    Answer,
    Group,
    RunAction,
    Words,
    carry_out,
)
from django_runstore.models import Run
from django_runstore.services import RunStore
from django_runstore.states import is_terminal_run_status


class CancelRun(RunAction):
    """Request the cancellation of every run, and of nothing else."""

    name = "cancel_run"
    permission = "cancel_run"
    label = _("Cancel run")
    list_label = _("Cancel selected runs")
    confirm_label = _("Yes, ask to stop")
    meaning: ClassVar[Sequence[Words]] = MEANING
    is_drastic = True

    def is_offered(self, run: Run, using: str) -> bool:
        """Offer it until the run has ended."""
        return not is_terminal_run_status(run.status)

    def preview(self, runs: Sequence[Run], store: RunStore) -> Sequence[Group]:
        """Tell the runs that will be asked from the others."""
        return groups_of(runs)

    def perform(self, runs: Sequence[Run], acting: Acting) -> Iterator[Answer]:
        """Ask each."""
        for run in runs:
            yield carry_out(run, acting, self.label, partial(self._ask, run, acting))

    @staticmethod
    def _ask(run: Run, acting: Acting) -> Answer:
        return answer_of(run, acting.store.request_cancel(run.run_id), acting)
