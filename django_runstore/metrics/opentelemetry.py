"""
Operations as OpenTelemetry spans and counters. Needs the extra ``otel``.

Only the API is used: which SDK, sampler and exporter there are is the project's choice, and
without an SDK all of it is a no-op.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from opentelemetry import metrics, trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import StatusCode, TracerProvider

import django_runstore
from django_runstore.metrics.contract import COUNTERS, FAILURE
from django_runstore.metrics.exporting import Attribute

SCOPE: Final = "django_runstore"


class OpenTelemetryExporter:
    """
    Hand spans and counters to OpenTelemetry, under the instrumentation scope ``SCOPE``.

    The span of an operation is current while it runs, so that spans of the database driver
    become its children. Of an error nothing but the outcome is recorded: a message or a
    traceback can carry values.

    Args:
        tracer_provider: By default the global one.
        meter_provider: By default the global one.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        version = django_runstore.__version__
        self._tracer = trace.get_tracer(SCOPE, version, tracer_provider)
        meter = metrics.get_meter(SCOPE, version, meter_provider)
        self._counters = {
            counter.name: meter.create_counter(counter.name, description=counter.meaning)
            for counter in COUNTERS
        }

    def count(self, name: str, labels: Mapping[str, str], amount: int) -> None:
        """Add to a counter; labels are its attributes."""
        self._counters[name].add(amount, dict(labels))

    @contextmanager
    def span(self, name: str) -> Iterator["_Span"]:
        """Make the span of an operation the current one while it runs."""
        with self._tracer.start_as_current_span(
            name, record_exception=False, set_status_on_exception=False
        ) as span:
            yield _Span(span)


class _Span:
    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def set(self, name: str, value: Attribute) -> None:
        self._span.set_attribute(name, value)
        if (name, value) == ("outcome", FAILURE):
            self._span.set_status(StatusCode.ERROR)
