import json

import pytest

from django_runstore import LivenessEvidence, OwnerId
from django_runstore.models import JournalEntry
from django_runstore.services import RunStore
from django_runstore.testing import FakeClock
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import run_url, section

pytestmark = pytest.mark.django_db

A = OwnerId("web-1/boot", 11, "aaaa")
B = OwnerId("web-1/boot", 12, "bbbb")


@pytest.fixture
def taken_over():
    """A run that changed hands on evidence."""
    clock = FakeClock(1_000)
    store = RunStore(clock=clock)
    run = RunFactory(running=True, owner=A, clock=clock)
    clock.advance(31_200)
    observed = {"pid": 11, "process": "gone", "lock": "free"}
    evidence = LivenessEvidence(A, 32_200, "same-host-pid-dead", observed)
    store.claim_and_own(run.pk, store.get(run.pk), B, None, evidence)
    return run


def test_a_takeover_says_who_when_and_on_what_evidence(viewer, page, taken_over):
    text = section(page(viewer, run_url(taken_over.pk)), "ownership")
    for shown in (
        "took it over",
        "web-1 pid 12 (bbbb)",
        "1970-01-01 00:00:32.200",
        "taken over by web-1 pid 12 (bbbb) because process 11 on web-1 no longer exists",
        "; last heartbeat 31.2 s before",
        "process gone, seen on its own host (<code>same-host-pid-dead</code>)",
        "<dt>observer</dt><dd>web-1 pid 12 (bbbb)</dd>",
        "<dt>pid</dt><dd>11</dd>",
        "<dt>process</dt><dd>gone</dd>",
        "<dt>lock</dt><dd>free</dd>",
    ):
        assert shown in text


@pytest.mark.parametrize(
    ("kind", "observer", "words"),
    [
        ("same-host-pid-dead", B, "process 11 on web-1 no longer exists"),
        ("lease-expired", B, "the lease of process 11 on web-1 expired"),
        (
            "cross-host-unreachable-stale",
            OwnerId("web-2", 1, "cc"),
            "the lease of process 11 on web-1 expired, and that host cannot be looked into",
        ),
    ],
)
def test_every_kind_of_evidence_has_its_words(viewer, page, kind, observer, words):
    clock = FakeClock(0)
    run = RunFactory(running=True, owner=A, clock=clock)
    clock.advance(31_000)
    store = RunStore(clock=clock)
    store.steal(run.pk, store.get(run.pk), observer, None, LivenessEvidence(A, 31_000, kind))
    said = f"taken over by {observer.describe()} because {words}; last heartbeat 31.0 s before"
    assert said in page(viewer, run_url(run.pk))


def test_a_cleared_claim_says_whose_it_was_and_why(viewer, page):
    clock = FakeClock(0)
    run = RunFactory(claimed=True, owner=A, clock=clock)
    clock.advance(31_000)
    evidence = LivenessEvidence(A, 31_000, "same-host-pid-dead", {"pid": 11})
    RunStore(clock=clock).recover_claim(run.pk, A, 0, B, None, evidence)
    said = "claim of web-1 pid 11 (aaaa) cleared because process 11 on web-1 no longer exists"
    assert said in page(viewer, run_url(run.pk))


def test_the_newest_fact_comes_first(viewer, page, taken_over):
    table = section(page(viewer, run_url(taken_over.pk)), "ownership").partition("<table>")[2]
    assert table.index("took it over") < table.rindex("became the owner")


def test_the_picture_names_each_owner_and_how_it_ended(viewer, page, taken_over):
    text = section(page(viewer, run_url(taken_over.pk)), "ownership").partition("<svg")[2]
    assert 'role="img"' in text
    assert "<title>#1 web-1 pid 11 (aaaa): 31.2 s, lost it</title>" in text
    assert "#2 web-1 pid 12 (bbbb)" in text


def test_a_run_that_nobody_had_says_so_and_has_no_picture(viewer, page):
    text = section(page(viewer, run_url(RunFactory().pk)), "ownership")
    assert "Nobody has claimed it yet." in text
    assert "<svg" not in text


def test_a_long_history_is_read_page_by_page(viewer, page, monkeypatch, taken_over):
    monkeypatch.setattr("django_runstore.admin.run_page.ownership.MOST_FACTS", 2)
    text = section(page(viewer, run_url(taken_over.pk)), "ownership")
    # Facts 0 and 1 are A's; 2 and 3, the newest, are B's.
    assert ("?ownership_before=2#ownership" in text, "pid 11 (aaaa)</td>" in text) == (True, False)
    older = section(page(viewer, run_url(taken_over.pk), ownership_before=2), "ownership")
    assert "pid 11 (aaaa)</td>" in older
    # What lasted at the end of an old page is not drawn as if it lasted until now.
    assert "0.0 s, owns it" in older


def test_what_is_seen_of_a_takeover_without_its_beginning_still_has_words(
    viewer, page, monkeypatch, taken_over
):
    monkeypatch.setattr("django_runstore.admin.run_page.ownership.MOST_FACTS", 2)
    text = page(viewer, run_url(taken_over.pk))
    assert "taken over by web-1 pid 12 (bbbb) because its process no longer exists" in text


@pytest.mark.parametrize(
    "payload",
    [
        "not json",
        "[]",
        "null",
        '{"owner": 1, "evidence": 2}',
        '{"owner": {"host_id": "h", "pid": "x", "nonce": 1}}',
        '{"evidence": {"kind": "\\ud800<b>", "observed": [1], "checked_at_ms": "x"}}',
        '{"evidence": {"kind": "<b>", "observed": {"<b>": "\\u202e<b>"}, "observer": true}}',
        "[" * 5_000,
    ],
)
def test_a_fact_that_another_tool_wrote_breaks_nothing(viewer, page, payload):
    run = RunFactory(running=True)
    JournalEntry.unguarded.filter(run_id=run.pk).update(payload_json=payload)
    text = section(page(viewer, run_url(run.pk)), "ownership")
    assert "<b>" not in text
    assert "\u202e" not in text


def test_a_change_that_is_not_known_stands_as_it_is(viewer, page):
    run = RunFactory(running=True)
    JournalEntry.unguarded.filter(run_id=run.pk, seq=0).update(
        event_type="runstore.ownership.<b>blessed"
    )
    assert "&lt;b&gt;blessed" in section(page(viewer, run_url(run.pk)), "ownership")


def test_facts_are_escaped(viewer, page):
    owner = OwnerId("<i>host</i>", 1, "n")
    run = RunFactory(running=True, owner=owner)
    text = page(viewer, run_url(run.pk))
    assert "<i>host" not in text
    assert json.loads(JournalEntry.objects.filter(run_id=run.pk)[0].payload_json)


def test_numbers_of_the_drawing_do_not_follow_the_language(viewer, page, taken_over, settings):
    settings.LANGUAGE_CODE, settings.USE_THOUSAND_SEPARATOR = "de", True
    text = section(page(viewer, run_url(taken_over.pk)), "ownership")
    drawing = text.partition("<svg")[2].partition("</svg>")[0]
    assert 'viewBox="0 0 960 ' in drawing
    assert "," not in drawing.partition(">")[0]
