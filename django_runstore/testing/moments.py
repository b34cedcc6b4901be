"""Moments in the life of a handler, and what a test has happen there."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django_runstore.testing.execution_in_process import ExecutionInProcess

Place: TypeAlias = Literal["entered", "before", "unrecorded", "after"]

_WORDS: Final = {
    "entered": "no handler was entered",
    "before": "no handler came to the step {step!r}",
    "unrecorded": "no handler executed the step {step!r}",
    "after": "no handler came past the step {step!r}",
}


@dataclass(frozen=True, slots=True)
class Moment:
    """
    A place in a handler.

    Attributes:
        place: Before the handler's first line; or relative to a step: before it, between
            the return of its function and the record of that, or after it was recorded.
        step: The name of the step.
    """

    place: Place
    step: str = ""

    @classmethod
    def given(
        cls, *, after: str | None = None, before: str | None = None, unrecorded: str | None = None
    ) -> Moment:
        """
        Read the arguments of a fault: one step, or none for the handler's first line.

        Raises:
            TypeError: more than one was given.
        """
        steps: dict[Place, str | None] = {
            "after": after,
            "before": before,
            "unrecorded": unrecorded,
        }
        found = [cls(place, step) for place, step in steps.items() if step is not None]
        if len(found) > 1:
            raise TypeError(f"give one of {', '.join(steps)}")
        return found[0] if found else cls("entered")


@dataclass(slots=True, eq=False)
class _Armed:
    moment: Moment
    act: Callable[[ExecutionInProcess], object]
    has_happened: bool = False


_armed: Final[ContextVar[tuple[_Armed, ...]]] = ContextVar("django_runstore_faults", default=())


@contextmanager
def happening(moment: Moment, act: Callable[[ExecutionInProcess], object]) -> Iterator[None]:
    """
    Inside the block, call ``act`` when an execution comes to this moment for the first time.

    Raises:
        AssertionError: none came to it, so that the block tested nothing.
    """
    armed = _Armed(moment, act)
    token = _armed.set((*_armed.get(), armed))
    try:
        yield
    finally:
        _armed.reset(token)
    if not armed.has_happened:
        raise AssertionError(_WORDS[moment.place].format(step=moment.step))


def reach(moment: Moment, execution: ExecutionInProcess) -> None:
    """Let happen what a test has planned for this moment, after what was committed before."""
    execution.commit_hooks.run()
    for armed in _armed.get():
        if armed.moment == moment and not armed.has_happened:
            armed.has_happened = True
            armed.act(execution)
