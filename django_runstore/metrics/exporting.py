"""The seam between operations and whoever listens: ``RUNSTORE["EXPORTERS"]``."""

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Final, NamedTuple, Protocol, Self, TypeAlias, TypeVar

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from django_runstore import conf
from django_runstore.metrics.contract import Counter

T = TypeVar("T")

Attribute: TypeAlias = str | int

_log = logging.getLogger("django_runstore.metrics")


class Span(Protocol):
    """One operation under way."""

    def set(self, name: str, value: Attribute) -> None:
        """Note what the operation is about and, last of all, its ``outcome``."""
        ...


class Exporter(Protocol):
    """
    Pass on what operations tell.

    Made once per process, without arguments, and called from every thread that uses a
    store. What it raises is logged once and changes no operation.
    """

    def count(self, name: str, labels: Mapping[str, str], amount: int) -> None:
        """Add ``amount`` to the counter ``name``; ``contract.COUNTERS`` knows its labels."""
        ...

    def span(self, name: str) -> AbstractContextManager[Span]:
        """
        Open the span of an operation, such as ``RunStore.claim``.

        It is closed without an exception even where the operation raised: errors can carry
        what must not be exported. ``outcome`` is then ``failure`` or ``interrupt``.
        """
        ...


class _NoSpan:
    """Note nothing. Stateless, so that all calls can share one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None

    def set(self, name: str, value: Attribute) -> None:
        """Note nothing."""


NO_SPAN: Final = _NoSpan()
"""What an exporter returns that has no use for spans."""


class Listener(NamedTuple):
    """An exporter and the dotted path that it is complained of by."""

    path: str
    exporter: Exporter


_lock: Final = threading.Lock()
_listeners: tuple[Listener, ...] | None = None
_complained_of: Final[set[str]] = set()


def listeners() -> tuple[Listener, ...]:
    """Return the exporters in force; made on first use and anew when the settings change."""
    global _listeners  # noqa: PLW0603 - one set per process, dropped when a setting changes
    found = _listeners
    if found is not None:
        return found
    try:
        paths = conf.current().exporters
    except ImproperlyConfigured:
        # Whatever needs the settings complains; an operation that does not is not to fail.
        return ()
    with _lock:
        if _listeners is None:
            made = [quietly(path, partial(_make, path)) for path in paths]
            _listeners = tuple(listener for listener in made if listener is not None)
        return _listeners


def count(counter: Counter, labels: Mapping[str, str] | None = None, amount: int = 1) -> None:
    """Add ``amount`` to one series of ``counter``."""
    for path, exporter in listeners():
        quietly(path, partial(exporter.count, counter.name, labels or {}, amount))


class Spans:
    """The spans of one operation, one per exporter."""

    def __init__(self, listening: tuple[Listener, ...], name: str) -> None:
        self._open: list[tuple[str, AbstractContextManager[Span], Span]] = []
        for path, exporter in listening:
            opened = quietly(path, partial(_open, exporter, name))
            if opened is not None:
                self._open.append((path, *opened))

    def set(self, name: str, value: Attribute) -> None:
        """Note an attribute."""
        for path, _, span in self._open:
            quietly(path, partial(span.set, name, value))

    def close(self) -> None:
        """End the spans, the last opened first."""
        for path, manager, _ in reversed(self._open):
            quietly(path, partial(manager.__exit__, None, None, None))


def quietly(who: str, body: Callable[[], T]) -> T | None:
    """Run ``body``; what it raises is logged, once for ``who``, and goes no further."""
    try:
        return body()
    except Exception as error:  # noqa: BLE001 - an operation must not fail for its metrics
        if who not in _complained_of:
            _complained_of.add(who)
            # Without a traceback: it would show what the operation itself raised.
            _log.warning(
                "%s failed and is ignored: %s",
                who,
                type(error).__name__,
                extra={"exporter": who, "exception": type(error).__name__},
            )
        return None


def _make(path: str) -> Listener:
    return Listener(path, import_string(path)())


def _open(exporter: Exporter, name: str) -> tuple[AbstractContextManager[Span], Span]:
    manager = exporter.span(name)
    return manager, manager.__enter__()


def _forget(*, setting: str, **_: object) -> None:
    global _listeners  # noqa: PLW0603 - see listeners()
    if setting == conf.SETTING:
        with _lock:
            _listeners = None
            _complained_of.clear()


setting_changed.connect(_forget, dispatch_uid="django_runstore.metrics")
