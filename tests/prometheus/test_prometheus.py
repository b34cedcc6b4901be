"""The scrape: gauges read from the database, counters beside them, an answer when it is away."""

import subprocess
import sys

import pytest
from django.db import OperationalError, connection
from django.http import HttpResponse
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from django_runstore import OwnerId
from django_runstore.outcomes import Transitioned
from django_runstore.prometheus import RunGauges, metrics_view
from django_runstore.services.supervisors import SupervisorDescription, SupervisorRegister
from django_runstore.testing import FakeClock
from tests.conformance.world import A, B, C, World

NOW = 100_000
D = OwnerId("host-b", 104, "owner-d")
SILENT_BEFORE = 60_000  # And less the 10 s between two descriptions.
STALE_BEFORE = 70_000  # NOW less the stale-after time of 30 s.

standing_clock = FakeClock(NOW)
SETTINGS = {"CLOCK": "tests.prometheus.test_prometheus.standing_clock"}


@pytest.fixture(autouse=True)
def standing(settings):
    settings.RUNSTORE = SETTINGS


def scrape(**kwargs: str) -> HttpResponse:
    return metrics_view(RequestFactory().get("/metrics"), **kwargs)


def gauges(response: HttpResponse) -> dict[tuple[str, ...], float]:
    """The gauges of this package, by name and label values."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(response.content.decode())
        if family.name.startswith("runstore_") and family.type == "gauge"
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def owned(world: World, run_id: str, heartbeat_at_ms: int) -> None:
    world.clock.set(heartbeat_at_ms)
    world.active(A, run_id)


def described(owner: OwnerId, at_ms: int, capacity: int, *, is_draining: bool = False) -> None:
    """Have a supervisor be seen for the last time at ``at_ms``."""
    register = SupervisorRegister(clock=FakeClock(at_ms))
    register.enter(owner, SupervisorDescription(version="1", queues=None, capacity=capacity))
    register.touch(owner, is_draining=is_draining)


@pytest.fixture
def crowd(db) -> World:
    world = World()
    for number, (queue, due_at_ms) in enumerate(
        [("default", 40_000), ("default", NOW), ("mail", 99_500), ("mail", NOW + 1)]
    ):
        world.pending(f"waiting-{number}", queue=queue, available_at_ms=due_at_ms)
    world.pending("claimed", available_at_ms=0)
    world.reclaimed(B, "claimed")
    owned(world, "fresh", STALE_BEFORE)
    owned(world, "stale", STALE_BEFORE - 1)
    owned(world, "asked", NOW)
    world.store.request_cancel("asked", NOW)
    world.store.request_cancel("waiting-0", NOW)
    owned(world, "suspended", 0)
    world.clock.set(50_000)
    world.store.transition_owned("suspended", A, "suspended")
    owned(world, "settled", 0)
    world.store.request_cancel("settled", NOW)
    assert world.store.transition_owned("settled", A, "cancelled") == Transitioned()
    described(A, NOW, 3)
    described(B, SILENT_BEFORE, 4)
    described(C, SILENT_BEFORE - 1, 5)
    described(D, NOW, 6, is_draining=True)
    return world


def test_the_gauges_tell_what_is_not_settled(crowd):
    assert gauges(scrape()) == {
        ("runstore_database_readable",): 1,
        # Four waiting and one claimed.
        ("runstore_runs", "pending"): 5,
        ("runstore_runs", "running"): 3,
        ("runstore_runs", "suspended"): 1,
        ("runstore_stale_runs",): 1,
        ("runstore_cancel_requested_runs",): 2,
        # Two that wait and the suspended one; in mail, one is not due yet.
        ("runstore_due_runs", "default"): 3,
        ("runstore_due_runs", "mail"): 1,
        ("runstore_oldest_due_seconds", "default"): 60,
        ("runstore_oldest_due_seconds", "mail"): 0.5,
        ("runstore_supervisors", "working"): 2,
        ("runstore_supervisors", "draining"): 1,
        ("runstore_supervisors_capacity",): 7,
    }


def test_an_empty_store_has_zeros_and_no_queues(db):
    assert gauges(scrape()) == {
        ("runstore_database_readable",): 1,
        ("runstore_runs", "pending"): 0,
        ("runstore_runs", "running"): 0,
        ("runstore_runs", "suspended"): 0,
        ("runstore_stale_runs",): 0,
        ("runstore_cancel_requested_runs",): 0,
        ("runstore_supervisors", "working"): 0,
        ("runstore_supervisors", "draining"): 0,
        ("runstore_supervisors_capacity",): 0,
    }


def test_a_scrape_is_three_statements_however_many_runs_there_are(crowd):
    with CaptureQueriesContext(connection) as captured:
        scrape()

    assert len(captured) == 3


def test_the_answer_is_in_the_text_format_and_not_cached(db):
    response = scrape()

    assert response.status_code == 200
    assert response["Content-Type"] == CONTENT_TYPE_LATEST
    assert "no-store" in response["Cache-Control"]


def test_the_counters_of_this_process_are_in_the_answer(db, settings):
    settings.RUNSTORE = {
        **SETTINGS,
        "EXPORTERS": ["django_runstore.metrics.prometheus.PrometheusExporter"],
    }
    world = World()
    world.pending()

    def claims() -> float:
        (family,) = [
            family
            for family in text_string_to_metric_families(scrape().content.decode())
            if family.name == "runstore_run_claims"
        ]
        (value,) = [
            sample.value
            for sample in family.samples
            if sample.labels == {"op": "claim", "outcome": "claimed"}
            and sample.name.endswith("_total")
        ]
        return value

    before = claims()
    world.reclaimed(A)

    assert claims() == before + 1


@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_a_scrape_only_reads(method):
    request = getattr(RequestFactory(), method)("/metrics")

    assert metrics_view(request).status_code == 405


def test_a_hostile_queue_stays_one_label(db):
    queue = 'q"}\nrunstore_runs{status="pending"} 99 \\'
    World().pending(queue=queue, available_at_ms=0)

    assert gauges(scrape())["runstore_due_runs", queue] == 1
    assert gauges(scrape())["runstore_runs", "pending"] == 1


@pytest.mark.parametrize("failing", ["_of_statuses", "_of_queues", "_of_supervisors"])
def test_a_database_that_fails_is_told_without_its_words(db, monkeypatch, caplog, failing):
    def fail(self: RunGauges) -> None:
        raise OperationalError("DETAIL: failing row contains (hunter2)")

    monkeypatch.setattr(RunGauges, failing, fail)
    response = scrape()

    assert response.status_code == 200
    assert gauges(response) == {("runstore_database_readable",): 0}
    assert "hunter2" not in response.content.decode()
    assert caplog.messages == ["run gauges could not be read"]
    assert "hunter2" not in str(vars(caplog.records[0]))


@pytest.mark.postgres("a server that can be away")
@pytest.mark.django_db(transaction=True)
def test_a_server_that_is_away_is_told_and_found_again():
    port = connection.settings_dict["PORT"]
    connection.close()
    connection.settings_dict["PORT"] = "1"
    try:
        assert gauges(scrape()) == {("runstore_database_readable",): 0}
    finally:
        connection.settings_dict["PORT"] = port

    assert gauges(scrape())["runstore_database_readable",] == 1


def test_registering_the_gauges_asks_no_database():
    registry = CollectorRegistry()
    registry.register(RunGauges("no such alias"))

    with pytest.raises(ValueError, match="runstore_runs"):
        registry.register(RunGauges())


def test_the_counters_of_all_processes_are_summed(db, tmp_path, child_environment):
    """Two processes count, a third is scraped: as supervisor, worker and web process do."""
    environment = {**child_environment, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    count = (
        "from django_runstore.metrics.prometheus import PrometheusExporter\n"
        "PrometheusExporter().count('runstore_run_throughput', {}, 2)\n"
    )
    read = (
        "import django; django.setup()\n"
        "from django.test import RequestFactory\n"
        "from django_runstore import prometheus\n"
        "prometheus.RunGauges.collect = lambda self: []\n"
        "print(prometheus.metrics_view(RequestFactory().get('/')).content.decode())\n"
    )
    for code in (count, count):
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    child = subprocess.run(
        [sys.executable, "-c", read], env=environment, check=True, capture_output=True, text=True
    )

    assert "runstore_run_throughput_total 4.0" in child.stdout.splitlines()
