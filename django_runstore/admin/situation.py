"""What a run is doing, or why it is not running, in a sentence or two."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_runstore import conf
from django_runstore.admin.evidence_words import doubt_in_words, grounds
from django_runstore.admin.wording import (
    age,
    claimant_identity,
    duration,
    moment,
    owner_identity,
    shown_text,
)
from django_runstore.clocks import clock_for
from django_runstore.handlers import registry
from django_runstore.liveness import evidence_against
from django_runstore.models import Run
from django_runstore.owners import OwnerId
from django_runstore.states import RunStatus, is_terminal_run_status
from django_runstore.supervision.doubts import doubt_about
from django_runstore.supervision.sweeper import INTERVALS_UNCHANGED

OVERDUE_AFTER_MS: Final = 60_000
"""A due run that nobody took for so long needs a look."""

SLEEPS: Final = frozenset({"sleep", "timer"})
"""The waiting reasons of runs that wait for nothing but a time."""

_MOST_COUNTED: Final = 100


class SituationKind(StrEnum):
    """What a run is doing, for programs."""

    ENDED = "ended"
    ADVANCING = "advancing"
    NOT_ADVANCING = "not_advancing"
    STALE_IN_DOUBT = "stale_in_doubt"
    STALE_AND_GONE = "stale_and_gone"
    BEING_TAKEN_OVER = "being_taken_over"
    CLAIMED = "claimed"
    CLAIM_IN_DOUBT = "claim_in_doubt"
    CLAIM_ABANDONED = "claim_abandoned"
    SLEEPING = "sleeping"
    WAITING = "waiting"
    PARKED = "parked"
    NOT_YET_DUE = "not_yet_due"
    HOST_OF_ITS_OWN = "host_of_its_own"
    HANDLER_MISSING = "handler_missing"
    CONCURRENCY_LIMIT = "concurrency_limit"
    WAITING_FOR_WORKER = "waiting_for_worker"


@dataclass(frozen=True, slots=True)
class Situation:
    """
    The answer to "what is it doing, or why is it not running?".

    Attributes:
        sentences: Ready to be shown; still to be escaped.
        needs_attention: Whether it will not go on by itself, or has taken too long.
    """

    kind: SituationKind
    sentences: tuple[str, ...]
    needs_attention: bool = False

    def __str__(self) -> str:
        """Say all of it."""
        return " ".join(self.sentences)


@dataclass(frozen=True, slots=True)
class _Look:
    """A run, when it is looked at, and what it rests on."""

    run: Run
    using: str
    now_ms: int

    def ago(self, stamp_ms: int | None) -> str:
        return age(stamp_ms, self.now_ms)

    def until(self, at_ms: int) -> str:
        """Name a time to come, and how far away it is."""
        values = {"moment": moment(at_ms), "duration": duration(at_ms - self.now_ms)}
        return _("%(moment)s (in %(duration)s)") % values


def situation_of(run: Run, using: str) -> Situation:
    """
    Say what ``run`` is doing, or why it is not running.

    It looks at the row, at the clock, at the handlers of this process and, when somebody
    seems to be gone, for that process; at most two queries beside the row.

    Args:
        run: Its wide columns may be deferred.
        using: The database that it was read from.
    """
    look = _Look(run, using, math.floor(clock_for(using).now_ms()))
    if is_terminal_run_status(run.status):
        return _ended(look)
    owner = owner_identity(run)
    # A CHECK of the table: a run has an owner exactly while it is running.
    found = _not_running(look) if owner is None else _running(look, owner)
    more = tuple(_besides(look))
    return Situation(found.kind, (*found.sentences, *more), found.needs_attention)


def _ended(look: _Look) -> Situation:
    run = look.run
    said = {
        RunStatus.COMPLETED: _("Completed %(moment)s (%(ago)s)."),
        RunStatus.FAILED: _("Failed %(moment)s (%(ago)s)."),
        RunStatus.CANCELLED: _("Cancelled %(moment)s (%(ago)s)."),
    }[RunStatus(run.status)]
    values = {"moment": moment(run.finished_at_ms), "ago": look.ago(run.finished_at_ms)}
    return Situation(SituationKind.ENDED, (said % values,))


def _running(look: _Look, owner: OwnerId) -> Situation:
    run = look.run
    beaten_at_ms = run.heartbeat_at_ms or 0
    if conf.current().lease.is_stale(beaten_at_ms, look.now_ms):
        return _stale(look, owner, beaten_at_ms)
    has_advanced = run.progressed_at_ms is not None
    since_ms = run.progressed_at_ms if has_advanced else run.started_at_ms
    values = {
        "owner": shown_text(owner.describe()),
        "beat": look.ago(beaten_at_ms),
        "since": look.ago(since_ms),
    }
    quiet_since_ms = look.now_ms - conf.current().admin_quiet_after_ms
    if since_ms is not None and since_ms < quiet_since_ms:
        said = (
            _("Running on %(owner)s and beating (%(beat)s), but it last advanced %(since)s:")
            if has_advanced
            else _(
                "Running on %(owner)s and beating (%(beat)s), but it has reported no progress "
                "since it started %(since)s:"
            )
        )
        said = f"{said % values} {_('its process lives, its work may be stuck.')}"
        return Situation(SituationKind.NOT_ADVANCING, (said,), needs_attention=True)
    said = (
        _("Running on %(owner)s: last heartbeat %(beat)s, last advanced %(since)s.")
        if has_advanced
        else _("Running on %(owner)s: last heartbeat %(beat)s; it has reported no progress yet.")
    )
    return Situation(SituationKind.ADVANCING, (said % values,))


def _stale(look: _Look, owner: OwnerId, beaten_at_ms: int) -> Situation:
    run = look.run
    values = {"owner": shown_text(owner.describe()), "ago": look.ago(beaten_at_ms)}
    claimant = claimant_identity(run)
    if claimant is not None and run.claimed_at_ms is not None:
        said = _(
            "Its owner %(owner)s was last heard of %(ago)s; %(claimant)s claimed it %(claimed)s "
            "to take it over."
        )
        values |= {
            "claimant": shown_text(claimant.describe()),
            "claimed": look.ago(run.claimed_at_ms),
        }
        needs = conf.current().lease.is_stale(run.claimed_at_ms, look.now_ms)
        return Situation(SituationKind.BEING_TAKEN_OVER, (said % values,), needs_attention=needs)
    why = _against(look, owner, beaten_at_ms)
    if why.is_gone:
        patience_ms = INTERVALS_UNCHANGED * conf.current().lease.heartbeat_interval_ms
        said = _(
            "Its owner %(owner)s was last heard of %(ago)s and is gone, as seen from here: "
            "%(why)s. A supervisor or runstore_sweep takes it over once it has itself seen "
            "that for %(patience)s."
        )
        values |= {"why": why.words, "patience": duration(patience_ms)}
        return Situation(SituationKind.STALE_AND_GONE, (said % values,), needs_attention=True)
    said = _(
        "Its owner %(owner)s was last heard of %(ago)s but is not provably dead, as seen from "
        "here, and nobody takes a run over without evidence: %(why)s."
    )
    values["why"] = why.words
    return Situation(SituationKind.STALE_IN_DOUBT, (said % values,), needs_attention=True)


def _not_running(look: _Look) -> Situation:
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


def _claimed(look: _Look, claimant: OwnerId, claimed_at_ms: int) -> Situation:
    values = {"claimant": shown_text(claimant.describe()), "ago": look.ago(claimed_at_ms)}
    if not conf.current().lease.is_stale(claimed_at_ms, look.now_ms):
        said = _("Claimed by %(claimant)s %(ago)s, which is about to become its owner.")
        return Situation(SituationKind.CLAIMED, (said % values,))
    why = _against(look, claimant, claimed_at_ms)
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


def _waiting(look: _Look, reason: str) -> Situation:
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


def _due(look: _Look, due_at_ms: int) -> Situation:
    run = look.run
    values = {
        "handler": shown_text(run.handler),
        "queue": shown_text(run.queue),
        "waited": duration(look.now_ms - due_at_ms),
    }
    if not run.handler:
        said = _("Due for %(waited)s; it names no handler, so a host of its own has to claim it.")
        return Situation(SituationKind.HOST_OF_ITS_OWN, (said % values,))
    overdue = look.now_ms - due_at_ms > OVERDUE_AFTER_MS
    if registry.get(run.handler) is None:
        said = _(
            "Due for %(waited)s, but this process has no handler “%(handler)s”: only a "
            "supervisor whose code has it takes the run."
        )
        return Situation(SituationKind.HANDLER_MISSING, (said % values,), needs_attention=overdue)
    if run.concurrency_key and (number := _sharing(look)):
        said = ngettext(
            "Due for %(waited)s; %(number)d running run has the concurrency key “%(key)s” too, "
            "and its limit may hold this one back.",
            "Due for %(waited)s; %(number)d running runs have the concurrency key “%(key)s” too, "
            "and their limit may hold this one back.",
            number,
        )
        more = {"number": number, "key": shown_text(run.concurrency_key)}
        return Situation(SituationKind.CONCURRENCY_LIMIT, (said % (values | more),))
    sentences = [_("Waiting for a worker of queue “%(queue)s”, due for %(waited)s.") % values]
    if overdue:
        sentences.append(_("Nobody has taken it: does a supervisor serve that queue?"))
    return Situation(SituationKind.WAITING_FOR_WORKER, tuple(sentences), needs_attention=overdue)


def _besides(look: _Look) -> Iterator[str]:
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


@dataclass(frozen=True, slots=True)
class _Verdict:
    is_gone: bool
    words: str


def _against(look: _Look, holder: OwnerId, stamp_ms: int) -> _Verdict:
    """Look for the holder of a stale stamp, the way a sweeper on this host would."""
    observer, clock = OwnerId.for_this_process(), clock_for(look.using)
    evidence = evidence_against(holder, stamp_ms, observer, clock)
    if evidence is not None:
        return _Verdict(is_gone=True, words=grounds(str(evidence.kind), holder))
    return _Verdict(
        is_gone=False, words=doubt_in_words(doubt_about(holder, stamp_ms, observer, clock))
    )


def _sharing(look: _Look) -> int:
    """Count the running runs with the same concurrency key, up to a number."""
    running = Run.objects.using(look.using).filter(
        status=RunStatus.RUNNING, concurrency_key=look.run.concurrency_key
    )
    return running[:_MOST_COUNTED].count()
