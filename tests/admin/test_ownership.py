import json

import pytest

from django_runstore import LivenessEvidence, OwnerId
from django_runstore.models import JournalEntry
from django_runstore.services import RunStore
from django_runstore.testing import FakeClock
from django_runstore.testing.factories import RunFactory
from tests.admin.pages import run_url

pytestmark = pytest.mark.django_db

A = OwnerId("web-1", 11, "aaaa")
B = OwnerId("web-1", 12, "bbbb")


@pytest.fixture
def taken_over():
    """A run that changed hands on evidence."""
    clock = FakeClock(1_000)
    store = RunStore(clock=clock)
    run = RunFactory(running=True, owner=A, clock=clock)
    clock.advance(31_000)
    observed = {"pid": 11, "process": "gone", "lock": "free"}
    evidence = LivenessEvidence(A, 32_000, "same-host-pid-dead", observed)
    store.claim_and_own(run.pk, store.get(run.pk), B, None, evidence)
    return run


def test_a_takeover_says_who_when_and_on_what_evidence(viewer, page, taken_over):
    text = page(viewer, run_url(taken_over.pk))
    for shown in (
        "took it over",
        "web-1 pid 12 (bbbb)",
        "1970-01-01 00:00:32.000",
        "same-host-pid-dead",
        "taken over because process 11 no longer exists; last heartbeat 31.0 s before",
        "seen by web-1 pid 12 (bbbb)",
        "observed: lock free, pid 11, process gone",
    ):
        assert shown in text


@pytest.mark.parametrize(
    ("kind", "observer", "words"),
    [
        ("same-host-pid-dead", B, "because its process no longer exists"),
        ("lease-expired", B, "because its lease expired"),
        (
            "cross-host-unreachable-stale",
            OwnerId("web-2", 1, "cc"),
            "because its lease expired on a host that cannot be looked into",
        ),
    ],
)
def test_every_kind_of_evidence_has_its_words(viewer, page, kind, observer, words):
    clock = FakeClock(0)
    run = RunFactory(running=True, owner=A, clock=clock)
    clock.advance(31_000)
    store = RunStore(clock=clock)
    store.steal(run.pk, store.get(run.pk), observer, None, LivenessEvidence(A, 31_000, kind))
    assert f"taken over {words}" in page(viewer, run_url(run.pk))


def test_a_cleared_claim_says_why(viewer, page):
    clock = FakeClock(0)
    run = RunFactory(claimed=True, owner=A, clock=clock)
    clock.advance(31_000)
    evidence = LivenessEvidence(A, 31_000, "same-host-pid-dead", {"pid": 11})
    RunStore(clock=clock).recover_claim(run.pk, A, 0, B, None, evidence)
    assert "claim cleared because process 11 no longer exists" in page(viewer, run_url(run.pk))


def test_the_newest_fact_comes_first(viewer, page, taken_over):
    text = page(viewer, run_url(taken_over.pk))
    assert text.index("took it over") < text.rindex("became the owner")


def test_a_run_that_nobody_had_says_so(viewer, page):
    assert "Nobody has claimed it yet." in page(viewer, run_url(RunFactory().pk))


def test_a_long_history_is_cut_and_says_so(viewer, page, monkeypatch, taken_over):
    monkeypatch.setattr("django_runstore.admin.ownership.MOST_FACTS", 2)
    assert "Only the newest 2 are shown." in page(viewer, run_url(taken_over.pk))


@pytest.mark.parametrize(
    "payload",
    [
        "not json",
        "[]",
        "null",
        '{"owner": 1, "evidence": 2}',
        '{"owner": {"host_id": "h", "pid": "x", "nonce": 1}}',
        '{"evidence": {"kind": "\\ud800<b>", "observed": [1], "checked_at_ms": "x"}}',
    ],
)
def test_a_fact_that_another_tool_wrote_breaks_nothing(viewer, page, payload):
    run = RunFactory(running=True)
    JournalEntry.unguarded.filter(run_id=run.pk).update(payload_json=payload)
    assert "<b>" not in page(viewer, run_url(run.pk)).partition("field-ownership")[2]


def test_facts_are_escaped(viewer, page):
    owner = OwnerId("<i>host</i>", 1, "n")
    run = RunFactory(running=True, owner=owner)
    text = page(viewer, run_url(run.pk))
    assert "<i>host" not in text
    assert json.loads(JournalEntry.objects.filter(run_id=run.pk)[0].payload_json)
