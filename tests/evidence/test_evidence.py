"""Evidence speaks of one owner at one reading. Spec: run-store 3.2."""

import pytest

from django_runstore.evidence import EvidenceKind, LivenessEvidence, matches_evidence
from django_runstore.owners import OwnerId

NOW = 100_000
OWNER = OwnerId("h1", 1, "a")
NEIGHBOUR = OwnerId("h1", 2, "b")
STRANGER = OwnerId("h2", 2, "b")


def evidence(kind: str, owner: OwnerId = OWNER, at_ms: int = NOW) -> LivenessEvidence:
    return LivenessEvidence(owner, at_ms, kind)


@pytest.mark.parametrize(
    ("kind", "observer", "accepted"),
    [
        ("same-host-pid-dead", NEIGHBOUR, True),
        ("same-host-pid-dead", STRANGER, False),
        ("cross-host-unreachable-stale", NEIGHBOUR, False),
        ("cross-host-unreachable-stale", STRANGER, True),
        ("lease-expired", NEIGHBOUR, True),
        ("lease-expired", STRANGER, True),
        ("a-hunch", STRANGER, False),
    ],
)
def test_kind_must_fit_the_hosts(kind: str, observer: OwnerId, accepted: bool):
    assert matches_evidence(OWNER, observer, NOW, evidence(kind)) is accepted


@pytest.mark.parametrize("kind", EvidenceKind)
def test_kind_may_be_the_member_or_its_text(kind: EvidenceKind):
    observer = STRANGER if kind is EvidenceKind.CROSS_HOST_UNREACHABLE_STALE else NEIGHBOUR
    assert matches_evidence(OWNER, observer, NOW, evidence(kind))
    assert matches_evidence(OWNER, observer, NOW, evidence(str(kind)))


@pytest.mark.parametrize("checked_at_ms", [NOW - 1, NOW + 1])
def test_probe_of_another_millisecond_is_refused(checked_at_ms: int):
    found = evidence("lease-expired", at_ms=checked_at_ms)
    assert not matches_evidence(OWNER, STRANGER, NOW, found)


@pytest.mark.parametrize(
    "other", [OwnerId("h2", 1, "a"), OwnerId("h1", 2, "a"), OwnerId("h1", 1, "b")]
)
def test_evidence_about_another_owner_is_refused(other: OwnerId):
    assert not matches_evidence(OWNER, NEIGHBOUR, NOW, evidence("lease-expired", other))


def test_what_was_observed_is_no_part_of_matching():
    found = LivenessEvidence(OWNER, NOW, "lease-expired", {"anything": "at all"})
    assert matches_evidence(OWNER, STRANGER, NOW, found)


def test_evidence_with_observations_can_be_hashed():
    assert hash(LivenessEvidence(OWNER, NOW, "lease-expired", {"age_ms": 1}))
