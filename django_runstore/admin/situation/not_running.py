"""Why a run that is not settled is not running."""

from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_runstore import conf
from django_runstore.admin.situation.kinds import Situation, SituationKind
from django_runstore.admin.situation.look import Look, against
from django_runstore.admin.wording import (
    claimant_identity,
    duration,
    moment,
    shown_text,
)
from django_runstore.db.concurrency import live_runs
from django_runstore.handlers import registry
from django_runstore.models import SupervisorProcess
from django_runstore.owners import OwnerId
from django_runstore.supervision.presence import silent_before_ms

OVERDUE_AFTER_MS: Final = 60_000
"""A due run that nobody took for so long needs a look."""

SLEEPS: Final = frozenset({"sleep", "timer"})
"""The waiting reasons of runs that wait for nothing but a time."""

_MOST_COUNTED: Final = 100


def not_running(look: Look) -> Situation:
    """Say what keeps a run: a claim, a wait, a time, or that nobody has taken it yet."""
    run = look.run
    claimant = claimant_identity(run)
    if claimant is not None and run.claimed_at_ms is not None:
        return _claimed(look, claimant, run.claimed_at_ms)
    due_at_ms = run.available_at_ms
    if run.waiting_reason is not None and (due_at_ms is None or due_at_ms > look.now_ms):
        return _waiting(look, run.waiting_reason)
    if due_at_ms is None:
        said = _("Parked: no supervisor takes it until somebody wakes it.")
        return Situation(SituationKind.PARKED, (said,), needs_attention=True)
    if due_at_ms > look.now_ms:
        said = _("Not due before %(moment)s.") % {"moment": look.until(due_at_ms)}
        return Situation(SituationKind.NOT_YET_DUE, (said,))
    return _due(look, due_at_ms)


def _claimed(look: Look, claimant: OwnerId, claimed_at_ms: int) -> Situation:
    values = {"claimant": shown_text(claimant.describe()), "ago": look.ago(claimed_at_ms)}
    if not conf.current().lease.is_stale(claimed_at_ms, look.now_ms):
        said = _("Claimed by %(claimant)s %(ago)s, which is about to become its owner.")
        return Situation(SituationKind.CLAIMED, (said % values,))
    why = against(look, claimant, claimed_at_ms)
    values["why"] = why.words
    if why.is_gone:
        said = _(
            "Claimed by %(claimant)s %(ago)s, which is gone, as seen from here: %(why)s. The "
            "claim keeps others away until it is released."
        )
        return Situation(SituationKind.CLAIM_ABANDONED, (said % values,), needs_attention=True)
    said = _(
        "Claimed by %(claimant)s %(ago)s, which has not become its owner and is not provably "
        "dead, as seen from here: %(why)s."
    )
    return Situation(SituationKind.CLAIM_IN_DOUBT, (said % values,), needs_attention=True)


def _waiting(look: Look, reason: str) -> Situation:
    wakes_at_ms = look.run.waiting_wake_at_ms
    values = {"reason": shown_text(reason)}
    if wakes_at_ms is None:
        said = _("Waiting for %(reason)s, with no time at which it goes on by itself.")
        return Situation(SituationKind.WAITING, (said % values,), needs_attention=True)
    values["moment"] = look.until(wakes_at_ms) if wakes_at_ms > look.now_ms else moment(wakes_at_ms)
    if reason in SLEEPS:
        return Situation(SituationKind.SLEEPING, (_("Sleeping until %(moment)s.") % values,))
    said = _("Waiting for %(reason)s, until %(moment)s at the latest.")
    return Situation(SituationKind.WAITING, (said % values,))


def _due(look: Look, due_at_ms: int) -> Situation:
    run = look.run
    values: dict[str, str | int] = {
        "handler": shown_text(run.handler),
        "queue": shown_text(run.queue),
        "waited": duration(look.now_ms - due_at_ms),
    }
    if not run.handler:
        said = _("Due for %(waited)s; it names no handler, so a host of its own has to claim it.")
        return Situation(SituationKind.HOST_OF_ITS_OWN, (said % values,))
    overdue = look.now_ms - due_at_ms > OVERDUE_AFTER_MS
    known = registry.get(run.handler)
    if known is None:
        said = _(
            "Due for %(waited)s, but this process has no handler “%(handler)s”: only a "
            "supervisor whose code has it takes the run."
        )
        return Situation(SituationKind.HANDLER_MISSING, (said % values,), needs_attention=overdue)
    if run.state_version > known.state_version:
        said = _(
            "Due for %(waited)s, but its state has version %(newer)d and this process reads up "
            "to %(version)d: only a supervisor with the newer code takes the run."
        )
        values |= {"newer": run.state_version, "version": known.state_version}
        return Situation(SituationKind.STATE_TOO_NEW, (said % values,), needs_attention=overdue)
    if run.concurrency_key and (number := _sharing(look)) >= run.concurrency_limit:
        said = ngettext(
            "Due for %(waited)s and held back by its concurrency limit: %(number)d run with the "
            "key “%(key)s” is live, and %(limit)d may be.",
            "Due for %(waited)s and held back by its concurrency limit: %(number)d runs with the "
            "key “%(key)s” are live, and %(limit)d may be.",
            number,
        )
        values |= {
            "number": number,
            "key": shown_text(run.concurrency_key),
            "limit": run.concurrency_limit,
        }
        return Situation(SituationKind.CONCURRENCY_LIMIT, (said % values,))
    sentences = [_("Waiting for a worker of queue “%(queue)s”, due for %(waited)s.") % values]
    if overdue:
        sentences.append(_supervisors_in_words(look))
    return Situation(SituationKind.WAITING_FOR_WORKER, tuple(sentences), needs_attention=overdue)


def _sharing(look: Look) -> int:
    """Count the live runs with the same concurrency key."""
    key = look.run.concurrency_key
    return live_runs(look.using, [key]).get(key, 0)


def _supervisors_in_words(look: Look) -> str:
    """Say whether anybody is there to take the run, as far as supervisors have said so."""
    at_work = SupervisorProcess.objects.using(look.using).filter(
        pulsed_at_ms__gte=silent_before_ms(look.now_ms), is_draining=False
    )
    serving = [
        each
        for each in at_work.only("queues_json")[:_MOST_COUNTED]
        if each.queues is None or look.run.queue in each.queues
    ]
    if not serving:
        return _("No supervisor that is at work serves that queue.")
    return ngettext(
        "%(number)d supervisor at work serves that queue; all of its workers may be busy, or its "
        "code may lack the handler.",
        "%(number)d supervisors at work serve that queue; all of their workers may be busy, or "
        "their code may lack the handler.",
        len(serving),
    ) % {"number": len(serving)}
