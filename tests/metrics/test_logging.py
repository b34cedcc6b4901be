"""``LoggingExporter``: one structured record per operation, never a payload."""

import logging

import pytest

from django_runstore import InvalidRun
from tests.conformance.world import A, B, World

LOGGER = "django_runstore.operations"


@pytest.fixture
def logged(settings, caplog, db):
    settings.RUNSTORE = {"EXPORTERS": ["django_runstore.metrics.logging.LoggingExporter"]}
    with caplog.at_level(logging.INFO, LOGGER):
        yield caplog


def test_an_operation_is_one_record_with_its_fields(logged):
    world = World()
    world.active(A)
    logged.clear()
    world.store.heartbeat("run", B, 0)

    (record,) = logged.records
    assert (record.name, record.levelno) == (LOGGER, logging.INFO)
    assert record.getMessage() == ("RunStore.heartbeat fence_lost run_id=run owner_host_id=host-a")
    fields = vars(record)
    assert fields["operation"] == "RunStore.heartbeat"
    assert fields["outcome"] == "fence_lost"
    assert fields["run_id"] == "run"
    assert fields["owner_host_id"] == "host-a"
    assert 0 <= fields["duration_ms"] < 60_000


def test_a_failure_is_a_warning_without_the_rejected_value(logged):
    with pytest.raises(InvalidRun):
        World().store.create("run", "hunter2")

    (record,) = logged.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == "RunStore.create failure"
    assert record.exc_info is None
    assert "hunter2" not in str(vars(record))


def test_no_record_holds_a_state(logged):
    world = World()
    world.active(A, state='{"token": "hunter2"}')
    world.store.transition_owned("run", A, "completed", '{"token": "hunter2"}')

    assert len(logged.records) == 6
    assert "hunter2" not in "".join(str(vars(record)) for record in logged.records)


def test_an_id_cannot_forge_a_second_line(logged):
    World().store.heartbeat("run\nRunStore.steal claimed", A, 0)

    (record,) = logged.records
    assert record.getMessage() == (
        r"RunStore.heartbeat not_found run_id=run\nRunStore.steal claimed owner_host_id=host-a"
    )


def test_nothing_is_logged_by_default(settings, caplog, db):
    settings.RUNSTORE = {}
    with caplog.at_level(logging.DEBUG):
        World().pending()

    assert [record for record in caplog.records if record.name == LOGGER] == []
