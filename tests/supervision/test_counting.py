"""What a real supervisor does is counted where a web process of the host can scrape it."""

from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector


def counted(folder) -> dict[tuple[str, ...], float]:
    """The counters of all processes that shared the folder, those at zero left out."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(folder))
    return {
        (sample.name, *(sample.labels[label] for label in sorted(sample.labels))): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.value
    }


def test_the_runs_that_a_supervisor_executes_are_counted_once(supervise, submit, tmp_path):
    folder = tmp_path / "counters"
    folder.mkdir()
    for number in range(3):
        submit("test.answer", f"run-{number}")
    submit("test.fail", "failing")
    supervisor = supervise(
        "--drain",
        "--concurrency",
        "2",
        DJANGO_SETTINGS_MODULE="tests.metrics.counting_settings",
        PROMETHEUS_MULTIPROC_DIR=str(folder),
    )
    assert supervisor.wait() == 0

    found = counted(folder)
    assert found["runstore_run_claims_total", "claim_many", "activated"] == 4
    assert found["runstore_run_transitions_total", "transitioned", "completed"] == 3
    assert found["runstore_run_transitions_total", "transitioned", "failed"] == 1
    assert found["runstore_run_throughput_total",] == 4
    broken = [key for key in found if "failure" in key or "interrupt" in key]
    assert broken == []
