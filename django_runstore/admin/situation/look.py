"""A run, when it is looked at, and what can be seen of whoever holds it."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from django_runstore.admin.evidence_words import doubt_in_words, grounds
from django_runstore.admin.wording import age, duration, moment
from django_runstore.clocks import clock_for
from django_runstore.liveness import evidence_against
from django_runstore.models import Run
from django_runstore.owners import OwnerId
from django_runstore.supervision.doubts import doubt_about


@dataclass(frozen=True, slots=True)
class Look:
    """A run, when it is looked at, and what it rests on."""

    run: Run
    using: str
    now_ms: int

    def ago(self, stamp_ms: int | None) -> str:
        """Say how long ago a time was."""
        return age(stamp_ms, self.now_ms)

    def until(self, at_ms: int) -> str:
        """Name a time to come, and how far away it is."""
        values = {"moment": moment(at_ms), "duration": duration(at_ms - self.now_ms)}
        return _("%(moment)s (in %(duration)s)") % values


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a holder is gone, and why that is held, or why not."""

    is_gone: bool
    words: str


def against(look: Look, holder: OwnerId, stamp_ms: int) -> Verdict:
    """Look for the holder of a stale stamp, the way a sweeper on this host would."""
    observer, clock = OwnerId.for_this_process(), clock_for(look.using)
    evidence = evidence_against(holder, stamp_ms, observer, clock)
    if evidence is not None:
        return Verdict(is_gone=True, words=grounds(str(evidence.kind), holder))
    return Verdict(
        is_gone=False, words=doubt_in_words(doubt_about(holder, stamp_ms, observer, clock))
    )
