"""``OpenTelemetryExporter`` against the real SDK."""

import asyncio
import subprocess
import sys

import pytest
from asgiref.sync import async_to_sync
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from django_runstore import InvalidRun
from django_runstore.arbiters import DatabaseArbiter
from django_runstore.metrics.exporting import listeners
from tests.conformance.world import A, B, P, World
from tests.metrics.otel import InMemoryExporter
from tests.services.slow_arbiter import PATIENCE_S, SlowArbiter


@pytest.fixture
def exporter(settings):
    settings.RUNSTORE = {"EXPORTERS": ["tests.metrics.otel.InMemoryExporter"]}
    (listener,) = listeners()
    assert isinstance(listener.exporter, InMemoryExporter)
    return listener.exporter


@pytest.mark.django_db(transaction=True)
def test_counters_have_the_labels_of_the_contract_as_attributes(exporter):
    world = World()
    world.active(A)
    world.store.heartbeat("run", B, 0)
    world.store.transition_owned("run", A, "completed")

    assert exporter.sums() == {
        ("runstore_run_claims", frozenset({("op", "claim"), ("outcome", "claimed")})): 1,
        ("runstore_run_claims", frozenset({("op", "activate"), ("outcome", "activated")})): 1,
        ("runstore_run_heartbeats", frozenset({("outcome", "fence_lost")})): 1,
        (
            "runstore_run_transitions",
            frozenset({("outcome", "transitioned"), ("to", "completed")}),
        ): 1,
        ("runstore_run_throughput", frozenset()): 1,
    }


def test_a_span_carries_its_attributes_and_outcome(db, exporter):
    World().store.heartbeat("run", A, 0)

    (span,) = exporter.finished.get_finished_spans()
    assert span.name == "RunStore.heartbeat"
    assert dict(span.attributes) == {
        "run_id": "run",
        "owner_host_id": "host-a",
        "outcome": "not_found",
    }
    assert span.status.status_code is StatusCode.UNSET
    assert span.instrumentation_scope.name == "django_runstore"


def test_a_failure_is_an_error_without_an_event_that_quotes_it(db, exporter):
    with pytest.raises(InvalidRun):
        World().store.create("run", "hunter2")

    (span,) = exporter.finished.get_finished_spans()
    assert dict(span.attributes) == {"outcome": "failure"}
    assert span.status.status_code is StatusCode.ERROR
    assert (span.status.description, span.events) == (None, ())


class TracingArbiter(DatabaseArbiter):
    """Opens a span of its own, as an instrumented database driver does."""

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer

    def decide(self, run_id, lease, request, *, stale_after_ms):
        with self._tracer.start_as_current_span("inner"):
            return super().decide(run_id, lease, request, stale_after_ms=stale_after_ms)


@pytest.mark.parametrize("prefix", ["", "a"])
def test_spans_inside_an_operation_are_its_children(db, exporter, prefix):
    world = World(TracingArbiter(exporter.tracers.get_tracer("driver")))
    world.pending()
    exporter.finished.clear()
    claim = getattr(world.store, f"{prefix}claim")
    with exporter.tracers.get_tracer("caller").start_as_current_span("outer"):
        _ = async_to_sync(claim)("run", P, A, 0) if prefix else claim("run", P, A, 0)

    spans = {span.name: span for span in exporter.finished.get_finished_spans()}
    assert spans["inner"].parent.span_id == spans["RunStore.claim"].context.span_id
    assert spans["RunStore.claim"].parent.span_id == spans["outer"].context.span_id


@pytest.mark.django_db(transaction=True)
def test_a_cancelled_twin_ends_its_span_and_leaves_no_span_current(exporter, caplog):
    arbiter = SlowArbiter()
    world = World(arbiter)
    world.pending()
    exporter.finished.clear()

    async def cancel_under_way() -> None:
        claim = asyncio.create_task(world.store.aclaim("run", P, A, 0))
        assert await asyncio.to_thread(arbiter.asked.wait, PATIENCE_S)
        claim.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claim
        assert not trace.get_current_span().get_span_context().is_valid
        arbiter.released.set()

    async_to_sync(cancel_under_way)()

    (span,) = exporter.finished.get_finished_spans()
    assert span.attributes["outcome"] == "interrupt"
    assert span.status.status_code is StatusCode.UNSET
    assert caplog.messages == []


def test_the_exporter_needs_nothing_but_the_api_at_run_time():
    code = (
        "import sys\n"
        "from django_runstore.metrics.opentelemetry import OpenTelemetryExporter\n"
        "exporter = OpenTelemetryExporter()\n"
        "exporter.count('runstore_run_throughput', {}, 1)\n"
        "with exporter.span('RunStore.get') as span: span.set('outcome', 'success')\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])\n"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert child.stdout == "[]\n"
