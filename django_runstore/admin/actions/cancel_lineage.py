"""Ask all rounds of logical runs to stop."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final, assert_never

from django.db import transaction
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_runstore.admin.actions.cancelling import MEANING, answer_of, ended, groups_of
from django_runstore.admin.actions.contract import (
    COLUMNS,
    Acting,
    Answer,
    Group,
    RunAction,
    Words,
    failed,
)
from django_runstore.errors import RunStoreError
from django_runstore.models import Run
from django_runstore.outcomes import AlreadyRequested, CancelRequested, NotFound, Terminal
from django_runstore.querysets import RunQuerySet
from django_runstore.services import RunStore
from django_runstore.states import RunStatus

MOST_ROUNDS: Final = 200
"""Rounds of one logical run that are listed as live, and as settled; the newest."""


class CancelLineage(RunAction):
    """Request the cancellation of every live round of the logical runs that are chosen."""

    name = "cancel_lineage"
    permission = "cancel_lineage"
    label = _("Cancel the whole lineage")
    list_label = _("Cancel the whole lineage of selected runs")
    confirm_label = _("Yes, ask all of them to stop")
    meaning: ClassVar[Sequence[Words]] = (
        _(
            "Every round of the logical run that is not settled is asked, in one step: those "
            "listed here, and any that is created before you confirm. Children and forks are "
            "logical runs of their own and are not asked."
        ),
        *MEANING,
    )
    is_drastic = True

    def is_offered(self, run: Run, using: str) -> bool:
        """Offer it always: a settled round may have a live successor."""
        return True

    def preview(self, runs: Sequence[Run], store: RunStore) -> Sequence[Group]:
        """List the rounds that will be asked, and those for which it is too late."""
        listed: list[Run] = []
        has_more_live = has_more_settled = False
        for run in _one_per_lineage(runs):
            newest_first = _rounds(store, run).reverse()
            live = list(newest_first.live()[: MOST_ROUNDS + 1])
            settled = list(newest_first.settled()[: MOST_ROUNDS + 1])
            has_more_live |= len(live) > MOST_ROUNDS
            has_more_settled |= len(settled) > MOST_ROUNDS
            listed += [*live[:MOST_ROUNDS][::-1], *settled[:MOST_ROUNDS][::-1]]
        return groups_of(listed, has_more_live=has_more_live, has_more_settled=has_more_settled)

    def perform(self, runs: Sequence[Run], acting: Acting) -> Iterator[Answer]:
        """Ask each logical run once, and answer for every round that was asked."""
        for run in _one_per_lineage(runs):
            try:
                with transaction.atomic(using=acting.store.using):
                    answers = self._ask(run, acting)
            except RunStoreError as error:
                answers = [failed(run, acting, self.label, error)]
            yield from answers

    def _ask(self, run: Run, acting: Acting) -> list[Answer]:
        outcome = acting.store.request_cancel_lineage(run.run_id)
        answers: list[Answer] = []
        asked: list[Run] = []
        if isinstance(outcome, CancelRequested):
            # Read after the request and in its transaction: exactly those that it reached.
            asked = list(
                _rounds(acting.store, run)
                .live()
                .filter(cancel_requested_at_ms=outcome.requested_at_ms)
            )
            answers = [answer_of(each, outcome, acting) for each in asked]
        else:
            logical = run.lineage_id or run.run_id
            answers = [Answer(logical, _nobody_asked(outcome), is_done=False)]
        for each in asked:
            acting.record(each, f"{self.label}: {answer_of(each, outcome, acting).words}")
        if run.run_id not in {each.run_id for each in asked}:
            said = answers[0].words if not asked else gettext("Asked other rounds to stop")
            acting.record(run, f"{self.label}: {said}")
        return [*answers, *self._too_late(run, acting)]

    @staticmethod
    def _too_late(run: Run, acting: Acting) -> Iterator[Answer]:
        """Name the rounds that ended between the confirmation page and the request."""
        if acting.shown_at_ms is None:
            return
        late = _rounds(acting.store, run).settled().filter(finished_at_ms__gte=acting.shown_at_ms)
        for each in late[:MOST_ROUNDS]:
            yield ended(each, RunStatus(each.status), acting)


def _nobody_asked(outcome: AlreadyRequested | Terminal | NotFound) -> str:
    match outcome:
        case AlreadyRequested():
            return gettext("Every live round was asked before")
        case Terminal(status):
            ended_as = status.label
            return gettext("Every round has ended, the latest as %(status)s") % {"status": ended_as}
        case NotFound():
            return gettext("Not there any more")
        case _ as unreachable:
            assert_never(unreachable)


def _one_per_lineage(runs: Sequence[Run]) -> list[Run]:
    # A root without a lineage of its own gives its name to the lineage.
    return list({run.lineage_id or run.run_id: run for run in reversed(runs)}.values())[::-1]


def _rounds(store: RunStore, run: Run) -> RunQuerySet:
    return Run.objects.using(store.using).lineage_of(run.run_id).only(*COLUMNS)
