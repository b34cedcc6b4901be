"""
What the suites compare with, and say when it is not so.

pytest rewrites the ``assert`` statements of test files only, and unittest rewrites none, so
a bare ``assert`` in an installed suite would fail without a word.
"""

from collections.abc import Callable
from typing import Any, TypeVar

Test = TypeVar("Test", bound=Callable[..., Any])


def expect(actual: object, expected: object, rule: str) -> None:
    """
    Compare with ``==``.

    Raises:
        AssertionError: they differ; it tells the rule and both values.
    """
    if actual != expected:
        raise AssertionError(f"{rule}: expected {expected!r}, got {actual!r}")


def expect_that(condition: bool, rule: str, seen: object) -> None:
    """
    Judge what the caller has compared itself.

    Raises:
        AssertionError: ``condition`` is false; it tells the rule and what was ``seen``.
    """
    if not condition:
        raise AssertionError(f"{rule}: got {seen!r}")


def covers(*items: int | str) -> Callable[[Test], Test]:
    """Name the numbered conformance notes that a test of a suite asserts."""

    def mark(test: Test) -> Test:
        test.conformance_items = items  # type: ignore[attr-defined]  # a function takes any attribute
        return test

    return mark
