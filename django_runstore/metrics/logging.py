"""Operations as structured log records: ``django_runstore.metrics.logging.LoggingExporter``."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from django_runstore.display_text import printable
from django_runstore.metrics.contract import BROKEN
from django_runstore.metrics.exporting import Attribute

LOGGER: Final = "django_runstore.operations"

_log = logging.getLogger(LOGGER)


class LoggingExporter:
    """
    Write one record per operation to the logger ``django_runstore.operations``.

    A record has the fields ``operation``, ``outcome``, ``duration_ms`` and the attributes of
    the span, such as ``run_id`` and ``owner_host_id``; never a state or another payload.
    Failures and interrupts are warnings, everything else is information.
    """

    def count(self, name: str, labels: Mapping[str, str], amount: int) -> None:
        """Write nothing: what is counted is the outcome of an operation, which has a record."""

    @contextmanager
    def span(self, name: str) -> Iterator["_Record"]:
        """Write the record when the operation ends."""
        record = _Record()
        begun = time.monotonic()
        yield record
        record.write(name, round((time.monotonic() - begun) * 1000, 3))


class _Record:
    def __init__(self) -> None:
        self._fields: dict[str, Attribute] = {}

    def set(self, name: str, value: Attribute) -> None:
        self._fields[name] = value

    def write(self, operation: str, duration_ms: float) -> None:
        outcome = self._fields.pop("outcome", "")
        shown = [f"{name}={printable(str(value))}" for name, value in self._fields.items()]
        _log.log(
            logging.WARNING if outcome in BROKEN else logging.INFO,
            "%s",
            " ".join([operation, str(outcome), *shown]),
            extra={
                **self._fields,
                "operation": operation,
                "outcome": outcome,
                "duration_ms": duration_ms,
            },
        )
