import pytest

from django_runstore import OwnerId
from django_runstore.models import JournalEntry
from django_runstore.services import RunStore
from django_runstore.snapshots import OwnedTransition, RunNote
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import run_url

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    """A run whose supervisor remarked why it put it back."""
    owner = OwnerId("web-1", 11, "aaaa")
    run = RunFactory(running=True, owner=owner)
    note = RunNote("runstore.worker.lost", {"signal": "SIGKILL"})
    RunStore().transition_many(
        owner, [OwnedTransition(run.pk, run.owner_fence, "suspended", note=note)]
    )
    return run


def say(run, payload_json, seq=7):
    """Let the project write an entry of its own."""
    JournalEntry.unguarded.create(
        run_id=run.pk,
        seq=seq,
        source_id="the.project",
        source_hash=b"0" * 32,
        source_seq=seq,
        emitted_at_ms=0,
        event_type="project.said",
        payload_json=payload_json,
    )


def test_a_note_shows_event_and_payload(viewer, page, run):
    text = page(viewer, run_url(run.pk))
    assert "runstore.worker.lost" in text
    assert "{&quot;signal&quot;:&quot;SIGKILL&quot;}" in text


def test_payloads_are_escaped(viewer, page, run):
    say(run, '"<script>alert(1)</script> \u202e"')
    text = page(viewer, run_url(run.pk))
    assert "&lt;script&gt;alert(1)" in text
    assert "<script>alert(1)" not in text
    assert "\u202e" not in text


def test_a_long_payload_is_cut(viewer, page, run):
    say(run, f'"{"x" * 10_000}"')
    text = page(viewer, run_url(run.pk))
    assert "x" * 299 + "…" in text
    assert "x" * 300 not in text


def test_many_notes_are_cut_and_it_says_so(viewer, page, run, monkeypatch):
    monkeypatch.setattr("django_runstore.admin.notes.MOST_NOTES", 1)
    say(run, "1")
    text = page(viewer, run_url(run.pk))
    assert "project.said" in text
    assert "runstore.worker.lost" not in text
    assert "Only the newest 1 are shown." in text


def test_a_payload_of_the_project_is_hidden_with_the_state(viewer, page, run, settings):
    settings.RUNSTORE = {"ADMIN_SHOWS_STATE": False}
    say(run, '"hunter2"')
    text = page(viewer, run_url(run.pk))
    assert "hunter2" not in text
    assert "project.said" in text
    assert "SIGKILL" in text


def test_a_run_without_notes_says_so(viewer, page):
    assert "None." in page(viewer, run_url(RunFactory().pk))
