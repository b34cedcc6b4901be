"""What every liveness check must answer. Spec: run-store 7.1 and 7.2."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Final

from django_runstore.liveness import (
    ExaminingCheck,
    LivenessCheck,
    LivenessContext,
    LivenessVerdict,
)
from django_runstore.owners import OwnerId, same_host_incarnation
from django_runstore.testing.conformance.expectations import expect, expect_that

MOST_PAIRS: Final = 16
MOST_CHARACTERS: Final = 60
GREATEST_SAFE_INTEGER: Final = 2**53 - 1
STALE_AT_MS: Final = 100_000


@dataclass(frozen=True, slots=True)
class LivenessCase:
    """An owner, what its row says, and who asks when."""

    owner: OwnerId
    context: LivenessContext

    @classmethod
    def stale(cls, owner: OwnerId, observer: OwnerId) -> "LivenessCase":
        """Ask about an owner whose stamp is long out of date, as checks are asked."""
        return cls(owner, LivenessContext(observer, 0, STALE_AT_MS))


class LivenessConformance:
    """
    A liveness check of your own must pass every test.

    You bring the owners: who lives, who is dead, and of whom nobody can know. Yield the
    cases from a generator where something has to be in place while they are asked.
    """

    def make_check(self) -> LivenessCheck:
        """Return the check."""
        raise NotImplementedError(f"{type(self).__name__} must say how its check is made")

    def living(self) -> Iterable[LivenessCase]:
        """Return owners that work, at least one."""
        raise NotImplementedError(f"{type(self).__name__} must name owners that live")

    def dead(self) -> Iterable[LivenessCase]:
        """Return owners that are gone, at least one."""
        raise NotImplementedError(f"{type(self).__name__} must name owners that are dead")

    def unknown(self) -> Iterable[LivenessCase]:
        """
        Return owners that cannot be judged: the place to look is out of reach, forbidden, broken.

        None only for a check that has nothing to look at but the row.
        """
        raise NotImplementedError(f"{type(self).__name__} must name owners nobody can judge")

    def test_a_working_owner_is_alive(self) -> None:
        asked = 0
        for case in self.living():
            asked += 1
            expect(self._ask(case), True, f"{case.owner!r} works")
        expect_that(asked > 0, "a suite needs owners that live", asked)

    def test_an_owner_that_is_gone_is_dead(self) -> None:
        asked = 0
        for case in self.dead():
            asked += 1
            expect(self._ask(case), False, f"{case.owner!r} is gone")
        expect_that(asked > 0, "a suite needs owners that are dead", asked)

    def test_every_unknown_answer_is_life(self) -> None:
        for case in self.unknown():
            expect(self._ask(case), True, f"nobody can tell whether {case.owner!r} works")

    def test_the_answer_is_true_or_false(self) -> None:
        for case in chain(self.living(), self.dead()):
            answer = self.make_check()(case.owner, case.context)
            plain = answer is True or answer is False
            expect_that(plain, "anything but a plain False counts as alive", answer)

    def test_no_stored_identity_breaks_it(self) -> None:
        for case in self.living():
            for owner in _odd_identities(case.context.claimant):
                answer = self.make_check()(owner, LivenessContext(case.context.claimant, 0, 1))
                plain = answer is True or answer is False
                expect_that(plain, f"{owner!r} can stand in a row and is judged", answer)

    def test_asking_changes_nothing(self) -> None:
        check = self.make_check()
        for expected, cases in ((True, self.living()), (False, self.dead())):
            for case in cases:
                answers = [check(case.owner, case.context) for _ in range(3)]
                expect(answers, [expected] * 3, "the same question has the same answer")

    def test_what_it_saw_belongs_to_its_answer(self) -> None:
        for expected, cases in ((True, self.living()), (False, self.dead())):
            for case, verdict in self._examined(cases):
                expect(verdict.is_alive, expected, f"examine() judges {case.owner!r} the same")

    def test_what_it_saw_fits_into_an_ownership_fact(self) -> None:
        for _, verdict in self._examined(chain(self.living(), self.dead())):
            seen = verdict.observed
            expect_that(len(seen) <= MOST_PAIRS, f"at most {MOST_PAIRS} pairs are kept", seen)
            for key, value in seen.items():
                expect_that(_fits(key) and _fits(value), "larger or other values are cut", seen)

    def test_a_process_is_gone_only_where_it_can_be_seen(self) -> None:
        for case, verdict in self._examined(chain(self.living(), self.dead())):
            if verdict.process_is_gone:
                here = same_host_incarnation(case.owner, case.context.claimant)
                expect_that(here, "a process of another host is not looked for", verdict)

    def _ask(self, case: LivenessCase) -> bool:
        return self.make_check()(case.owner, case.context)

    def _examined(
        self, cases: Iterable[LivenessCase]
    ) -> Iterable[tuple[LivenessCase, LivenessVerdict]]:
        """Examine with a check that can say what it saw; nothing for one that cannot."""
        check = self.make_check()
        if isinstance(check, ExaminingCheck):
            for case in cases:
                yield case, check.examine(case.owner, case.context)


def _odd_identities(observer: OwnerId) -> list[OwnerId]:
    """Identities that the store admits, none of which this package would make."""
    host_id = observer.host_id
    return [
        OwnerId(host_id, 0, "n"),
        OwnerId(host_id, GREATEST_SAFE_INTEGER, "n"),
        OwnerId(host_id, 2**31, "../../etc/passwd"),
        OwnerId(host_id, 1, "x" * 1_024),
        OwnerId("字" * 600, 1, "t1-0123456789abcdef-L"),
        OwnerId(f"{host_id} ", 1, "\u202e %s {0} \n"),
    ]


def _fits(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= MOST_CHARACTERS and value.isascii() and value.isprintable()
    return isinstance(value, int) and abs(value) <= GREATEST_SAFE_INTEGER
