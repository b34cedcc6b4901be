"""
The one door that every operation goes through: its span and its counters. Spec: run-store 11.

``@operation`` is the entry of an operation. What has none gets no async twin, and a test
fails.
"""

import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Protocol, Self, TypeVar

from django_runstore.metrics.contract import CODES, FAILURE, INTERRUPT, SUCCESS
from django_runstore.metrics.exporting import (
    Attribute,
    Listener,
    Spans,
    count,
    listeners,
    quietly,
)
from django_runstore.metrics.tallies import Ending, Tally


class Service(Protocol):
    """What has operations."""

    @property
    def service(self) -> str:
        """Its name, as errors and spans give it."""
        ...

    @property
    def using(self) -> str:
        """Its database alias."""
        ...


S = TypeVar("S", bound=Service)
P = ParamSpec("P")
R = TypeVar("R")

_ENTRY: Final = "__runstore_operation__"


def operation(
    tally: Tally, *, reads: str | None = None
) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R]]:
    """
    Make a method an operation: one span per call, and the counters that ``tally`` names.

    Args:
        tally: ``metrics.tallies``; ``uncounted`` for an operation with a span only.
        reads: The argument that the tally wants to see, admissible or not.
    """

    def decorate(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
        entry = Entry(method, tally, reads)

        @wraps(method)
        def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
            with entry.open(self, args, kwargs) as passage:
                return passage.answers(passage.perform(partial(method, self, *args, **kwargs)))

        setattr(call, _ENTRY, entry)
        return call

    return decorate


def note(**attributes: Attribute) -> None:
    """
    Tell the span of the running operation what it is about.

    To be called once the arguments are admitted, and with nothing but what was admitted.
    """
    _current.get().note(attributes)


class Entry:
    """What the door knows of one operation."""

    def __init__(self, method: Callable[..., Any], tally: Tally, reads: str | None) -> None:
        self.method = method
        self.name = method.__name__
        self.tally = tally
        self._reads = reads
        # Counted without self, as the arguments of a call are.
        names = list(inspect.signature(method).parameters)[1:]
        self._position = None if reads is None else names.index(reads)

    @classmethod
    def of(cls, method: Callable[..., Any]) -> Self:
        """
        Return the entry of an operation.

        Raises:
            TypeError: the method has none.
        """
        entry = getattr(method, _ENTRY, None)
        if not isinstance(entry, cls):
            raise TypeError(f"{method.__qualname__} is no operation: it has no @operation")
        return entry

    def open(
        self, service: Service, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> "Passage | _Unwatched":
        """Begin one call; what comes back is closed by the ``with`` statement."""
        listening = listeners()
        if not listening:
            return _UNWATCHED
        asked = None
        if self._reads is not None and self._position is not None:
            given = args[self._position] if self._position < len(args) else None
            asked = kwargs.get(self._reads, given)
        return Passage(self, listening, f"{service.service}.{self.name}", asked)


class Passage:
    """
    One call on its way through the door, counted once however it ends.

    A cancelled async twin closes it at once, while its thread may still be busy: what the
    thread does or notes afterwards changes nothing.
    """

    def __init__(
        self, entry: Entry, listening: tuple[Listener, ...], name: str, asked: object
    ) -> None:
        self._entry = entry
        self._asked = asked
        self._answer: object = None
        self._closed = False
        self._spans = Spans(listening, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._closed = True
        outcome = _outcome(self._answer, error)
        self._spans.set("outcome", outcome)
        self._spans.close()
        # A tally reads what a caller may be changing; the write it counts is committed.
        quietly("a tally of the metrics", partial(self._count, outcome))

    def perform(self, body: Callable[[], R]) -> R:
        """Run the operation, so that its ``note()`` finds this call."""
        token = _current.set(self)
        try:
            return body()
        finally:
            _current.reset(token)

    def answers(self, answer: R) -> R:
        """Keep the answer, whose code is the outcome."""
        self._answer = answer
        return answer

    def note(self, attributes: Mapping[str, Attribute]) -> None:
        """Hand attributes to the spans, unless they are closed."""
        if not self._closed:
            for name, value in attributes.items():
                self._spans.set(name, value)

    def _count(self, outcome: str) -> None:
        ending = Ending(self._entry.name, outcome, self._answer, self._asked)
        for counter, labels, amount in self._entry.tally(ending):
            count(counter, labels, amount)


class _Unwatched:
    """A call that nobody listens to. Stateless, so that all of them share one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None

    def perform(self, body: Callable[[], R]) -> R:
        return body()

    def answers(self, answer: R) -> R:
        return answer

    def note(self, attributes: Mapping[str, Attribute]) -> None:
        """Note nothing."""


_UNWATCHED: Final = _Unwatched()
_current: Final[ContextVar[Passage | _Unwatched]] = ContextVar(
    "django_runstore_operation", default=_UNWATCHED
)


def _outcome(answer: object, error: BaseException | None) -> str:
    if error is None:
        # Not whatever has a code: an answer can be a user's own object.
        return CODES.get(type(answer), SUCCESS)
    return FAILURE if isinstance(error, Exception) else INTERRUPT
