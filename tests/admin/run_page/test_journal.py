import pytest
from django.contrib import admin

from django_runstore import OwnerId
from django_runstore.admin.run_page import journal
from django_runstore.models import JournalEntry
from django_runstore.services import RunStore
from django_runstore.snapshots import OwnedTransition, RunNote
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import run_url, section

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


@pytest.fixture
def show(viewer, page, run):
    return lambda **query: section(page(viewer, run_url(run.pk), **query), "journal")


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


def test_an_entry_shows_event_source_and_payload(show):
    text = show()
    assert "runstore.worker.lost" in text
    assert "runstore.supervisor" in text
    assert "&quot;signal&quot;: &quot;SIGKILL&quot;" in text


def test_ownership_facts_have_their_own_section(show):
    assert "runstore.ownership" not in show()


def test_payloads_are_escaped(show, run):
    say(run, '"<script>alert(1)</script> \u202e"')
    text = show()
    assert "&lt;script&gt;alert(1)" in text
    assert "<script>alert(1)" not in text
    assert "\u202e" not in text


def test_a_long_payload_is_cut(show, run):
    say(run, f'"{"x" * 10_000}"')
    text = show()
    assert "The first 2000 of 10002 characters." in text
    assert "x" * 2_000 not in text


def test_many_entries_are_shown_page_by_page(show, run, monkeypatch):
    monkeypatch.setattr(journal, "MOST_ENTRIES", 1)
    say(run, "1")
    text = show()
    assert ("project.said" in text, "runstore.worker.lost" in text) == (True, False)
    assert 'href="?journal_before=7#journal"' in text
    older = show(journal_before=7)
    assert ("project.said" in older, "runstore.worker.lost" in older) == (False, True)


def test_a_payload_of_the_project_is_hidden_with_the_state(show, run, settings):
    settings.RUNSTORE = {"ADMIN_SHOWS_STATE": False}
    say(run, '"hunter2"')
    text = show()
    assert "hunter2" not in text
    assert "project.said" in text
    assert "SIGKILL" in text


def test_a_payload_of_the_project_is_redacted_and_one_of_the_package_is_not(show, run, settings):
    settings.RUNSTORE = {"ADMIN_REDACTOR": "builtins.len"}
    say(run, '"hunter2"')
    text = show()
    assert "hunter2" not in text
    assert ">7</pre>" in text
    assert "SIGKILL" in text


def test_a_run_without_entries_says_so(viewer, page):
    text = section(page(viewer, run_url(RunFactory().pk)), "journal")
    assert "Nothing was remarked about it." in text


def test_the_list_of_entries_is_linked_for_those_who_may_see_it(viewer, page):
    run = RunFactory(run_id="a b&c")
    link = "/admin/runstore/journalentry/?q=a+b%26c"
    assert link in section(page(viewer, run_url(run.pk)), "journal")


def test_the_list_of_entries_is_not_linked_for_others(member, page):
    client = member("view_run")
    text = section(page(client, run_url(RunFactory().pk)), "journal")
    assert "journalentry" not in text


def test_a_site_without_entries_has_no_link_to_them(viewer, page, monkeypatch):
    monkeypatch.delitem(admin.site._registry, JournalEntry)
    run = RunFactory()
    assert "journalentry" not in section(page(viewer, run_url(run.pk)), "journal")
