from django_runstore.admin.run_page.facts import HandOver
from django_runstore.admin.run_page.tenures import Ending, Tenure, tenures_of
from django_runstore.owners import OwnerId

A = OwnerId("a", 1, "a")
B = OwnerId("b", 2, "b")


def fact(change, at_ms, holder=A, fence=1):
    return HandOver(at_ms, at_ms, change, holder, fence)


def test_claim_ownership_and_release_are_one_tenure():
    facts = [fact("claimed", 1), fact("activated", 2), fact("released", 9)]
    assert tenures_of(facts) == [Tenure(1, A, 1, 2, 9, Ending.RELEASED)]


def test_a_takeover_ends_the_tenure_of_the_other_when_it_becomes_the_owner():
    facts = [
        fact("claimed", 1),
        fact("activated", 1),
        fact("stolen", 40, B, 2),
        fact("activated", 41, B, 2),
    ]
    assert tenures_of(facts) == [
        Tenure(1, A, 1, 1, 41, Ending.DISPLACED),
        Tenure(2, B, 40, 41, None, Ending.OPEN),
    ]


def test_a_takeover_that_is_not_completed_ends_nothing():
    facts = [fact("claimed", 1), fact("activated", 1), fact("stolen", 40, B, 2)]
    assert [tenure.ending for tenure in tenures_of(facts)] == [Ending.OPEN, Ending.OPEN]


def test_a_claim_that_is_cleared_never_was_an_ownership():
    facts = [fact("claimed", 1), fact("expired", 40)]
    assert tenures_of(facts) == [Tenure(1, A, 1, None, 40, Ending.EXPIRED)]


def test_one_process_may_hold_the_run_twice_under_two_fences():
    facts = [fact("claimed", 1), fact("released", 2), fact("claimed", 3, A, 2)]
    assert [(tenure.fence, tenure.ending) for tenure in tenures_of(facts)] == [
        (1, Ending.RELEASED),
        (2, Ending.OPEN),
    ]


def test_a_tenure_that_began_before_what_was_read_has_an_end_only():
    assert tenures_of([fact("released", 9)]) == [Tenure(1, A, None, None, 9, Ending.RELEASED)]


def test_what_is_no_change_of_hands_is_left_out():
    assert tenures_of([fact("blessed", 1), fact("claimed", 1, None)]) == []
