import pytest
from django.contrib.admin.models import LogEntry

from django_runstore import OwnerId
from django_runstore.models import Run
from django_runstore.outcomes import NotFound, NotWaiting
from django_runstore.services import RunStore
from django_runstore.snapshots import Waiting
from django_runstore.testing.factories import RunFactory
from tests.admin.forms import said, send
from tests.admin.pages import act_url, run_url

pytestmark = pytest.mark.django_db

OWNER = OwnerId("web-1", 11, "aaaa")


@pytest.fixture
def waker(member):
    """A client that may wake runs."""
    return member("view_run", "wake_run")


@pytest.fixture
def asleep():
    """A run that waits for an approval until the year 2096."""
    run = RunFactory(run_id="a", running=True, owner=OWNER)
    store = RunStore()
    store.park("a", Waiting("approval", 4_000_000_000_000), OWNER, fence=run.owner_fence)
    store.transition_owned("a", OWNER, "suspended", fence=run.owner_fence)
    Run.unguarded.filter(pk="a").update(available_at_ms=4_000_000_000_000)
    return run


def is_claimable(run_id):
    now_ms = int(RunStore().clock.now_ms())
    return Run.objects.claimable(now_ms).filter(pk=run_id).exists()


def test_the_confirmation_says_what_the_run_waits_for(waker, asleep):
    text = waker.get(act_url("wake_run", "a")).content.decode()
    assert "waits for approval, until 2096-10-02 07:06:40.000" in text
    assert not is_claimable("a")


def test_a_woken_run_can_be_claimed_at_once(waker, asleep):
    assert said(send(waker, waker.get(act_url("wake_run", "a")))) == [
        "Woken: a (waits for approval, until 2096-10-02 07:06:40.000)"
    ]
    assert is_claimable("a")
    assert LogEntry.objects.get().change_message == (
        "Wake now: Woken (waits for approval, until 2096-10-02 07:06:40.000)"
    )


def test_the_button_is_there_while_the_run_waits(waker, page, asleep):
    offered = [
        "wake_run" in page(waker, run_url(run.pk))
        for run in (asleep, RunFactory(), RunFactory(completed=True), RunFactory(running=True))
    ]
    assert offered == [True, False, False, False]


def test_runs_that_do_not_wait_are_left(waker, choose, asleep):
    RunFactory(run_id="b")
    response = choose(waker, "wake_run", "a", "b")
    groups = {
        group.heading: [member.run.pk for member in group.members]
        for group in response.context["groups"]
    }
    assert groups == {"Will be woken": ["a"], "Left as they are; they do not wait": ["b"]}
    assert said(send(waker, response))[1:] == ["It was not waiting: b"]


def test_a_run_whose_wait_its_owner_is_about_to_begin_is_left(waker):
    run = RunFactory(run_id="a", running=True, owner=OWNER)
    RunStore().park("a", Waiting("approval"), OWNER, fence=run.owner_fence)
    assert said(waker.post(act_url("wake_run", "a"))) == ["It was not waiting: a"]
    assert Run.objects.get(pk="a").waiting_reason == "approval"


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (NotWaiting(), "It was not waiting any more: a"),
        (NotFound(), "Not there any more: a"),
    ],
)
def test_a_lost_race_is_reported_in_words(waker, asleep, monkeypatch, outcome, words):
    monkeypatch.setattr(RunStore, "wake", lambda *_: outcome)
    assert said(waker.post(act_url("wake_run", "a"))) == [words]


def test_other_permissions_are_not_enough(member, asleep):
    client = member("view_run", "cancel_run", "cancel_lineage", "release_claim")
    assert client.post(act_url("wake_run", "a")).status_code == 403
    assert not is_claimable("a")


def test_what_it_waits_for_is_shown_safely(waker, asleep):
    Run.unguarded.filter(pk="a").update(waiting_reason="<b>\u202eapproval")
    text = waker.get(act_url("wake_run", "a")).content.decode()
    assert ("<b>" in text, "\u202e" in text) == (False, False)
