"""Tell what a run is doing, or why it is not running."""

import math
from collections.abc import Iterator

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_runstore.admin.situation.kinds import Situation, SituationKind
from django_runstore.admin.situation.look import Look
from django_runstore.admin.situation.not_running import not_running
from django_runstore.admin.situation.running import running
from django_runstore.admin.wording import (
    moment,
    owner_identity,
)
from django_runstore.clocks import clock_for
from django_runstore.models import Run
from django_runstore.states import RunStatus, is_terminal_run_status


def situation_of(run: Run, using: str) -> Situation:
    """
    Say what ``run`` is doing, or why it is not running.

    It looks at the row, at the clock, at the handlers of this process and, when somebody
    seems to be gone, for that process; at most two queries beside the row.

    Args:
        run: Its wide columns may be deferred.
        using: The database that it was read from.
    """
    look = Look(run, using, math.floor(clock_for(using).now_ms()))
    if is_terminal_run_status(run.status):
        return _ended(look)
    owner = owner_identity(run)
    # A CHECK of the table: a run has an owner exactly while it is running.
    found = not_running(look) if owner is None else running(look, owner)
    more = tuple(_besides(look))
    return Situation(found.kind, (*found.sentences, *more), found.needs_attention)


def _ended(look: Look) -> Situation:
    run = look.run
    said = {
        RunStatus.COMPLETED: _("Completed %(moment)s (%(ago)s)."),
        RunStatus.FAILED: _("Failed %(moment)s (%(ago)s)."),
        RunStatus.CANCELLED: _("Cancelled %(moment)s (%(ago)s)."),
    }[RunStatus(run.status)]
    values = {"moment": moment(run.finished_at_ms), "ago": look.ago(run.finished_at_ms)}
    return Situation(SituationKind.ENDED, (said % values,))


def _besides(look: Look) -> Iterator[str]:
    """Say what is worth knowing whatever the run is doing."""
    run = look.run
    if run.cancel_requested_at_ms is not None:
        asked = {"ago": look.ago(run.cancel_requested_at_ms)}
        if run.status != RunStatus.RUNNING:
            yield _("It was asked to stop %(ago)s; whoever takes it next cancels it.") % asked
        elif run.cancel_acknowledgement_json is None:
            yield _("It was asked to stop %(ago)s; its owner has not acknowledged that.") % asked
        else:
            yield _("It was asked to stop %(ago)s; its owner has acknowledged that.") % asked
    if run.deadline_at_ms is not None and run.deadline_at_ms < look.now_ms:
        yield _("Its deadline passed %(ago)s.") % {"ago": look.ago(run.deadline_at_ms)}
    if run.failure_count:
        yield ngettext(
            "It has failed %(number)d time.", "It has failed %(number)d times.", run.failure_count
        ) % {"number": run.failure_count}
    if run.recovery_count:
        yield ngettext(
            "It has lost its worker or host %(number)d time since it last advanced.",
            "It has lost its worker or host %(number)d times since it last advanced.",
            run.recovery_count,
        ) % {"number": run.recovery_count}
