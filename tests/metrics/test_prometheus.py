"""``PrometheusExporter``: the text that the real library writes, read back by it."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from django_runstore import InvalidRun
from django_runstore.metrics import COUNTERS
from django_runstore.metrics.exporting import listeners
from django_runstore.metrics.prometheus import PrometheusExporter
from tests.conformance.world import A, B, World


class FreshExporter(PrometheusExporter):
    """Over a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        super().__init__(self.registry)


@pytest.fixture
def exporter(settings):
    settings.RUNSTORE = {"EXPORTERS": ["tests.metrics.test_prometheus.FreshExporter"]}
    (listener,) = listeners()
    assert isinstance(listener.exporter, FreshExporter)
    return listener.exporter


def samples(registry: CollectorRegistry) -> dict[tuple[str, frozenset], float]:
    """Every sample but the times of creation, parsed from the exposition."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


@pytest.mark.django_db(transaction=True)
def test_what_was_counted_is_exposed_with_its_labels(exporter):
    world = World()
    world.active(A)
    world.store.heartbeat("run", B, 0)
    with pytest.raises(InvalidRun):
        world.store.transition_owned("run", A, "done")
    world.store.transition_owned("run", A, "completed")

    counted = {key: value for key, value in samples(exporter.registry).items() if value}
    assert counted == {
        ("runstore_run_claims_total", frozenset({("op", "claim"), ("outcome", "claimed")})): 1,
        (
            "runstore_run_claims_total",
            frozenset({("op", "activate"), ("outcome", "activated")}),
        ): 1,
        ("runstore_run_heartbeats_total", frozenset({("outcome", "fence_lost")})): 1,
        (
            "runstore_run_transitions_total",
            frozenset({("outcome", "failure"), ("to", "invalid")}),
        ): 1,
        (
            "runstore_run_transitions_total",
            frozenset({("outcome", "transitioned"), ("to", "completed")}),
        ): 1,
        ("runstore_run_throughput_total", frozenset()): 1,
    }


def test_every_series_of_the_contract_begins_at_zero(exporter):
    expected = {
        (f"{counter.name}_total", frozenset(zip(counter.labels, values, strict=True)))
        for counter in COUNTERS
        for values in (counter.answered + counter.broken) or ((),)
    }

    assert samples(exporter.registry) == dict.fromkeys(expected, 0)


def test_exporters_made_anew_go_on_counting_in_the_same_registry():
    registry = CollectorRegistry()
    PrometheusExporter(registry).count("runstore_run_throughput", {}, 2)
    PrometheusExporter(registry).count("runstore_run_throughput", {}, 3)

    assert samples(registry)["runstore_run_throughput_total", frozenset()] == 5
