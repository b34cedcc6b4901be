"""The OpenTelemetry exporter over an SDK that keeps everything in memory."""

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from django_runstore.metrics.opentelemetry import OpenTelemetryExporter


class InMemoryExporter(OpenTelemetryExporter):
    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.finished = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.finished))
        super().__init__(self.tracers, MeterProvider([self.reader]))

    def sums(self) -> dict[tuple[str, frozenset], int]:
        """Every point of every counter: its name, its attributes, its number."""
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        return {
            (metric.name, frozenset(point.attributes.items())): point.value
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
        }
