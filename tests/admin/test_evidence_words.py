import pytest
from django.utils.translation import override

from django_runstore import LivenessEvidence, OwnerId
from django_runstore.admin.evidence_words import (
    doubt_in_words,
    evidence_in_words,
    grounds,
    kind_in_words,
    silence,
)
from django_runstore.supervision.doubts import Doubt

A = OwnerId("web-1/boot", 4102, "9f3a61c2")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("same-host-pid-dead", "process 4102 on web-1 no longer exists"),
        (
            "cross-host-unreachable-stale",
            "the lease of process 4102 on web-1 expired, and that host cannot be looked into",
        ),
        ("lease-expired", "the lease of process 4102 on web-1 expired"),
        ("hearsay\u202e", r"hearsay\u202e"),
    ],
)
def test_every_kind_says_what_speaks_against_the_holder(kind, words):
    assert grounds(kind, A) == words


def test_a_holder_that_is_not_known_has_a_process_all_the_same():
    assert grounds("same-host-pid-dead", None) == "its process no longer exists"


def test_a_kind_has_a_name_and_one_of_another_tool_keeps_its_own():
    assert kind_in_words("lease-expired") == "lease expired"
    assert kind_in_words("hearsay\x00") == r"hearsay\u0000"


@pytest.mark.parametrize(
    ("checked", "stamp", "words"),
    [
        (32_200, 1_000, "last heartbeat 31.2 s before"),
        (0, 5, "last heartbeat 0.0 s before"),
        (None, 5, None),
        (5, "5", None),
    ],
)
def test_the_silence_is_told_when_both_ends_are_known(checked, stamp, words):
    assert silence(checked, stamp) == words


def test_what_was_observed_stands_behind_the_grounds():
    evidence = LivenessEvidence(A, 0, "lease-expired", {"age_ms": 5, "\u202e": "\x7f"})
    assert evidence_in_words(evidence) == (
        "the lease of process 4102 on web-1 expired (observed: age_ms 5, \\u202e \\u007f)"
    )
    assert "observed" not in evidence_in_words(LivenessEvidence(A, 0, "lease-expired"))


def test_a_doubt_is_translated_before_its_details_are_filled_in():
    with override("de"):
        # Django's own catalogue knows this sentence; ours need not exist for the test.
        assert doubt_in_words(Doubt("Yes")) == "Ja"
    assert doubt_in_words(Doubt("pid %(pid)s", {"pid": "\u202e7"})) == r"pid \u202e7"
