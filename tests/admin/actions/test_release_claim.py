import os

import pytest
from django.contrib.admin.models import LogEntry

from django_runstore import OwnerId, RunPersistenceFailed
from django_runstore.models import JournalEntry, Run
from django_runstore.outcomes import ClaimChanged, ClaimFresh, LivenessUnconfirmed, NotFound
from django_runstore.process_identity import host_scope
from django_runstore.services import RunStore
from django_runstore.testing import FakeClock
from django_runstore.testing.factories import RunFactory
from tests.admin.forms import said, send
from tests.admin.pages import act_url, run_url
from tests.supervision.sweeping import gone_pid

pytestmark = pytest.mark.django_db


@pytest.fixture
def releaser(member):
    """A client that may release claims."""
    return member("view_run", "release_claim")


def dead():
    return OwnerId(host_scope(), gone_pid(), "t1-9f3a61c200000000")


@pytest.fixture
def abandoned():
    """A run whose claimant died, on this host, in 1970."""
    return RunFactory(run_id="a", claimed=True, owner=dead(), clock=FakeClock(0))


def is_claimed(run):
    return Run.objects.get(pk=run.pk).claim_host_id is not None


def test_the_confirmation_shows_the_evidence(releaser, abandoned):
    text = releaser.get(act_url("release_claim", "a")).content.decode()
    assert f"process {abandoned.claim_pid} on" in text
    assert "no longer exists (observed: age_ms" in text
    assert "claimed by" in text


def test_a_claim_is_released_and_it_says_on_what_evidence(releaser, abandoned):
    (words,) = said(send(releaser, releaser.get(act_url("release_claim", "a"))))
    assert words.startswith(f"Claim released: a (process {abandoned.claim_pid} on")
    assert not is_claimed(abandoned)
    entry = LogEntry.objects.get()
    assert entry.change_message.startswith("Release the stale claim: Claim released (process")
    fact = JournalEntry.objects.filter(run_id="a", companion="run-store").latest("seq")
    assert fact.event_type == "runstore.ownership.expired"


def test_the_button_is_there_on_evidence_only(releaser, page, abandoned):
    alive = OwnerId(host_scope(), os.getppid(), "u-9f3a61c200000000")
    living = RunFactory(claimed=True, owner=alive, clock=FakeClock(0))
    fresh = RunFactory(claimed=True, owner=dead())
    offered = [
        "release_claim" in page(releaser, run_url(run.pk))
        for run in (abandoned, living, fresh, RunFactory())
    ]
    assert offered == [True, False, False, False]


def test_a_claim_of_a_living_process_is_left_and_it_says_why(releaser, choose):
    alive = OwnerId(host_scope(), os.getppid(), "u-9f3a61c200000000")
    run = RunFactory(run_id="a", claimed=True, owner=alive, clock=FakeClock(0))
    text = choose(releaser, "release_claim", "a").content.decode()
    doubt = "its process exists on this host; it may be stopped, hung or cut off"
    assert f"Not provably abandoned ({doubt})" in text
    assert said(releaser.post(act_url("release_claim", "a"))) == [
        f"Not provably abandoned: a ({doubt})"
    ]
    assert is_claimed(run)


def test_a_run_without_a_claim_is_left(releaser):
    RunFactory(run_id="a")
    assert said(releaser.post(act_url("release_claim", "a"))) == ["Nobody has a claim on it: a"]


def test_evidence_is_gathered_again_when_it_is_confirmed(releaser, abandoned):
    confirmation = releaser.get(act_url("release_claim", "a"))
    row = RunStore().get("a")
    RunStore(clock=FakeClock(0)).abandon_claim("a", row.claim, row.claimed_at_ms, fence=row.fence)
    assert said(send(releaser, confirmation)) == ["Nobody has a claim on it: a"]


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (ClaimChanged(), "Nothing released: the claim is another one by now: a"),
        (ClaimFresh(), "Nothing released: the claim is not stale: a"),
        (LivenessUnconfirmed(), "Nothing released: the evidence does not hold: a"),
        (NotFound(), "Not there any more: a"),
    ],
)
def test_a_lost_race_is_reported_in_words(releaser, abandoned, monkeypatch, outcome, words):
    monkeypatch.setattr(RunStore, "recover_claim", lambda *_, **__: outcome)
    assert said(releaser.post(act_url("release_claim", "a"))) == [words]


def test_a_claim_on_a_row_that_cannot_be_read_is_released_too(releaser):
    claimant = dead()
    run = RunFactory.raw(
        run_id="a",
        state_json="not json",
        claim_host_id=claimant.host_id,
        claim_pid=claimant.pid,
        claim_nonce=claimant.nonce,
        claimed_at_ms=0,
    )
    (words,) = said(releaser.post(act_url("release_claim", "a")))
    assert words.startswith("Claim released: a")
    assert not is_claimed(run)


def test_a_failure_is_reported_by_its_code(releaser, abandoned, monkeypatch):
    def fail(*_, **__):
        raise RunPersistenceFailed("recover_claim", "database operation failed")

    monkeypatch.setattr(RunStore, "recover_claim", fail)
    assert said(releaser.post(act_url("release_claim", "a"))) == ["Failed (persistence_failed): a"]
    entry = LogEntry.objects.get()
    assert entry.change_message == "Release the stale claim: Failed (persistence_failed)"


def test_other_permissions_are_not_enough(member, abandoned):
    client = member("view_run", "cancel_run", "cancel_lineage", "wake_run")
    assert client.post(act_url("release_claim", "a")).status_code == 403
    assert is_claimed(abandoned)
