"""Run a public suite over a subject by hand, and see which of its tests fail."""

import unittest
from collections.abc import Callable
from typing import Any


def names_of(suite: type) -> list[str]:
    """The tests of a suite."""
    return sorted(name for name in dir(suite) if name.startswith("test_"))


def failures_of(suite: type, *names: str, **members: Any) -> dict[str, Exception]:
    """Run some or all tests of a suite, each on an instance of its own, as test runners do."""
    subject = type("Subject", (suite,), members)
    failures: dict[str, Exception] = {}
    for name in names or names_of(suite):
        test: Callable[[], None] = getattr(subject(), name)
        try:
            test()
        except Exception as error:  # noqa: BLE001 - whatever a wrong subject makes of it
            failures[name] = error
    return failures


def assert_caught_by(name: str, suite: type, **members: Any) -> None:
    """See that one test of the suite fails, and says which rule was broken and by what."""
    failure = failures_of(suite, name, **members).get(name)
    assert isinstance(failure, AssertionError), failure
    assert ": got " in str(failure) or ": expected " in str(failure)


def run_under_unittest(suite: type, **members: Any) -> unittest.TestResult:
    """Run a suite the way ``manage.py test`` does."""
    case = type("Subject", (suite, unittest.TestCase), members)
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    return result
