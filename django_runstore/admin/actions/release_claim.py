"""Clear claims whose claimants are provably gone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from django_runstore.admin.evidence_words import doubt_in_words, evidence_in_words
from django_runstore.admin.wording import claimant_identity, moment
from django_runstore.evidence import LivenessEvidence
from django_runstore.liveness import evidence_against
from django_runstore.models import Run
from django_runstore.outcomes import (
    ClaimChanged,
    ClaimFresh,
    LivenessUnconfirmed,
    NotFound,
    Recovered,
)
from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.supervision.doubts import doubt_about


class ReleaseClaim(RunAction):
    """Recover claims that nobody will ever activate, on evidence and never by force."""

    name = "release_claim"
    permission = "release_claim"
    label = _("Release the stale claim")
    list_label = _("Release stale claims of selected runs")
    confirm_label = _("Yes, release")
    meaning: ClassVar[Sequence[Words]] = (
        _(
            "A claim reserves a run until its claimant becomes the owner. When the claimant "
            "died in between, the reservation keeps everybody else away. Releasing clears it, "
            "so that any supervisor can claim the run again."
        ),
        _(
            "It is done only on evidence that the claimant is gone. The evidence is gathered "
            "again when you confirm, and what it rests on is written into the ownership "
            "history. Supervisors and runstore_sweep do the same by themselves."
        ),
    )

    def is_offered(self, run: Run, using: str) -> bool:
        """Offer it only on evidence."""
        return isinstance(_look(run, RunStore(using)), _Proven)

    def preview(self, runs: Sequence[Run], store: RunStore) -> Sequence[Group]:
        """Show the evidence, or why there is none."""
        proven: list[Member] = []
        others: list[Member] = []
        for run in runs:
            found = _look(run, store)
            if isinstance(found, Answer):
                others.append(Member(run, str(found)))
            else:
                proven.append(Member(run, found.describe()))
        return (
            Group(gettext("Will be released"), proven, is_affected=True),
            Group(gettext("Left as they are"), others),
        )

    def perform(self, runs: Sequence[Run], acting: Acting) -> Iterator[Answer]:
        """Look again, and release what is still proven."""
        for run in runs:
            found = _look(run, acting.store)
            yield carry_out(run, acting, self.label, partial(_release, found, acting.store))


@dataclass(frozen=True, slots=True)
class _Proven:
    """A claim as it was read, and the evidence against its claimant."""

    run_id: str
    claimed_at_ms: int
    fence: int
    observer: OwnerId
    evidence: LivenessEvidence

    def describe(self) -> str:
        """Say whose claim it is, since when, and why it is held to be abandoned."""
        evidence = self.evidence
        return gettext("claimed by %(claimant)s, %(moment)s; %(evidence)s") % {
            "claimant": evidence.expected_owner.describe(),
            "moment": moment(self.claimed_at_ms),
            "evidence": evidence_in_words(evidence),
        }


def _look(run: Run, store: RunStore) -> _Proven | Answer:
    """Gather evidence against the claimant of a run, or say why there is none."""
    claimant, claimed_at_ms = claimant_identity(run), run.claimed_at_ms
    if claimant is None or claimed_at_ms is None:
        return Answer(run.run_id, gettext("Nobody has a claim on it"), is_done=False)
    observer = OwnerId.for_this_process()
    evidence = evidence_against(claimant, claimed_at_ms, observer, store.clock)
    if evidence is not None:
        return _Proven(run.run_id, claimed_at_ms, run.fence, observer, evidence)
    doubt = doubt_about(claimant, claimed_at_ms, observer, store.clock)
    words = gettext("Not provably abandoned")
    return Answer(run.run_id, words, is_done=False, detail=doubt_in_words(doubt))


def _release(found: _Proven | Answer, store: RunStore) -> Answer:
    if isinstance(found, Answer):
        return found
    evidence = found.evidence
    outcome = store.recover_claim(
        found.run_id,
        evidence.expected_owner,
        found.claimed_at_ms,
        found.observer,
        evidence.checked_at_ms,
        evidence,
        fence=found.fence,
    )
    if isinstance(outcome, NotFound):
        return gone(found.run_id)
    if isinstance(outcome, Recovered):
        words, detail = gettext("Claim released"), evidence_in_words(evidence)
        return Answer(found.run_id, words, is_done=True, detail=detail)
    return Answer(found.run_id, _in_words(outcome), is_done=False)


def _in_words(outcome: ClaimChanged | ClaimFresh | LivenessUnconfirmed) -> str:
    match outcome:
        case ClaimChanged():
            return gettext("Nothing released: the claim is another one by now")
        case ClaimFresh():
            return gettext("Nothing released: the claim is not stale")
        case LivenessUnconfirmed():
            return gettext("Nothing released: the evidence does not hold")
        case _ as unreachable:
            assert_never(unreachable)
