"""The public liveness suite catches every check that could call a living owner dead."""

import itertools

import pytest

from django_runstore.liveness import LivenessContext, LivenessVerdict
from django_runstore.owners import OwnerId
from django_runstore.testing.conformance import LivenessCase, LivenessConformance
from tests.testing.suites import assert_caught_by, failures_of, names_of, run_under_unittest

OBSERVER = OwnerId("here", 1, "observer")
WORKS = OwnerId("here", 2, "works")
GONE = OwnerId("here", 3, "gone")
ELSEWHERE = OwnerId("there", 3, "gone")
HIDDEN = OwnerId("here", 4, "hidden")


def cases(*owners):
    return lambda _: (LivenessCase.stale(owner, OBSERVER) for owner in owners)


OWNERS = {"living": cases(WORKS), "dead": cases(GONE, ELSEWHERE), "unknown": cases(HIDDEN)}


def right(owner, context, /):
    return owner not in (GONE, ELSEWHERE)


class Examining:
    """A check that can say what it saw; right unless a test says otherwise."""

    def __init__(self, **verdict):
        self._verdict = verdict

    def __call__(self, owner, context, /):
        return right(owner, context)

    def examine(self, owner, context, /):
        return LivenessVerdict(**({"is_alive": right(owner, context)} | self._verdict))


def in_turn(*answers):
    answer = itertools.cycle(answers)
    return lambda _owner, _context: next(answer)


def fails_on_pid_zero(owner, context, /):
    return right(owner, context) if owner.pid else 1 / 0 > 0


WRONG = {
    "calls everybody dead": ("test_a_working_owner_is_alive", lambda *_: False),
    "calls nobody dead": ("test_an_owner_that_is_gone_is_dead", lambda *_: True),
    "takes not knowing for death": (
        "test_every_unknown_answer_is_life",
        lambda owner, _: owner == WORKS,
    ),
    "answers nothing": ("test_the_answer_is_true_or_false", lambda *_: None),
    "answers a number": ("test_the_answer_is_true_or_false", lambda *_: 0),
    "forgets to answer for some": (
        "test_no_stored_identity_breaks_it",
        lambda owner, context: right(owner, context) if owner.pid else None,
    ),
    "changes its mind": ("test_asking_changes_nothing", in_turn(True, False)),
    "explains another answer": (
        "test_what_it_saw_belongs_to_its_answer",
        Examining(is_alive=False),
    ),
    "reports a traceback": (
        "test_what_it_saw_fits_into_an_ownership_fact",
        Examining(observed={"output": "x" * 5_000}),
    ),
    "reports an object": (
        "test_what_it_saw_fits_into_an_ownership_fact",
        Examining(observed={"age": 1.5}),
    ),
    "reports everything": (
        "test_what_it_saw_fits_into_an_ownership_fact",
        Examining(observed={f"k{n}": n for n in range(17)}),
    ),
    "sees processes of other hosts": (
        "test_a_process_is_gone_only_where_it_can_be_seen",
        Examining(process_is_gone=True),
    ),
}


@pytest.mark.parametrize(("name", "check"), WRONG.values(), ids=WRONG)
def test_a_check_that_breaks_a_rule_is_caught(name, check):
    assert_caught_by(name, LivenessConformance, make_check=lambda _: check, **OWNERS)


def test_every_test_of_the_suite_is_seen_to_fail():
    assert sorted({name for name, _ in WRONG.values()}) == names_of(LivenessConformance)


def test_a_check_that_raises_fails_the_suite():
    failures = failures_of(LivenessConformance, make_check=lambda _: fails_on_pid_zero, **OWNERS)
    assert isinstance(failures["test_no_stored_identity_breaks_it"], ZeroDivisionError)


@pytest.mark.parametrize("check", [right, Examining()], ids=["plain", "examining"])
def test_a_right_check_passes(check):
    assert failures_of(LivenessConformance, make_check=lambda _: check, **OWNERS) == {}


@pytest.mark.parametrize("missing", ["living", "dead", "unknown"])
def test_owners_have_to_be_named(missing):
    given = {name: make for name, make in OWNERS.items() if name != missing}
    failures = failures_of(LivenessConformance, make_check=lambda _: right, **given)
    assert any(isinstance(error, NotImplementedError) for error in failures.values())


@pytest.mark.parametrize("kind", ["living", "dead"])
def test_a_suite_without_owners_proves_nothing(kind):
    failures = failures_of(
        LivenessConformance, make_check=lambda _: right, **(OWNERS | {kind: cases()})
    )
    assert "a suite needs owners" in str(failures)


def test_what_has_to_be_in_place_is_in_place_while_a_case_is_asked():
    in_place = []

    def dead(_):
        in_place.append(True)
        try:
            yield LivenessCase(GONE, LivenessContext(OBSERVER, 0, 1))
        finally:
            in_place.clear()

    def check(owner, _context, /):
        return owner != GONE if in_place else True

    assert (
        failures_of(LivenessConformance, make_check=lambda _: check, **(OWNERS | {"dead": dead}))
        == {}
    )


def test_the_suite_runs_under_unittest_too():
    result = run_under_unittest(LivenessConformance, make_check=lambda _: right, **OWNERS)
    assert result.testsRun == len(names_of(LivenessConformance))
    assert result.wasSuccessful(), result.failures
