"""What a running run is doing."""

from django.utils.translation import gettext as _

from django_runstore import conf
from django_runstore.admin.situation.kinds import Situation, SituationKind
from django_runstore.admin.situation.look import Look, against
from django_runstore.admin.wording import (
    claimant_identity,
    duration,
    shown_text,
)
from django_runstore.handlers import registry
from django_runstore.models import Run
from django_runstore.owners import OwnerId
from django_runstore.supervision.sweeper import INTERVALS_UNCHANGED


def running(look: Look, owner: OwnerId) -> Situation:
    """Tell a run that advances from one that does not, and from one whose owner is silent."""
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
    quiet_since_ms = look.now_ms - _quiet_after_ms(run)
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


def _quiet_after_ms(run: Run) -> int:
    """Say after how long without progress a run needs a look: as its handler says, if it does."""
    handler = registry.get(run.handler)
    declared_ms = None if handler is None else handler.no_progress_after_ms
    return conf.current().admin_quiet_after_ms if declared_ms is None else declared_ms


def _stale(look: Look, owner: OwnerId, beaten_at_ms: int) -> Situation:
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
    why = against(look, owner, beaten_at_ms)
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
