import json

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from django_runstore.management.commands import runstore_health
from django_runstore.supervision.health import (
    Health,
    HealthReport,
    QueueHealth,
    SupervisorHealth,
)

WORKING = SupervisorHealth("web pid 1", 2_400, False, False, True)
SILENT = SupervisorHealth("old pid 2", 90_000, True, True, False)
QUEUES = (QueueHealth("mail\n", 1, 61_000), QueueHealth("slow", 1_000, 5_000))


@pytest.fixture
def look(monkeypatch, capsys):
    """Run the command on a report that the test makes; give its status and output."""

    def run(health, *arguments):
        asked = []

        def examine(using, *, longest_wait_ms):
            asked.append((using, longest_wait_ms))
            return HealthReport(health, (WORKING, SILENT), QUEUES)

        monkeypatch.setattr(runstore_health, "examine", examine)
        status = 0
        try:
            call_command("runstore_health", *arguments)
        except SystemExit as ended:
            status = ended.code
        return status, capsys.readouterr().out, asked

    return run


@pytest.mark.parametrize("health", list(Health))
def test_the_verdict_is_the_exit_status(look, health):
    status, out, _ = look(health)
    assert status == int(health)
    assert out.count("\n") == 5


def test_people_read_who_is_there_and_what_waits(look):
    _, out, _ = look(Health.WAITING_TOO_LONG)
    assert out.splitlines() == [
        "supervisor web pid 1: pulsing, 2 s ago",
        "supervisor old pid 2: silent, draining, polling only, 90 s ago",
        "queue mail\\n: 1 run waiting, the oldest for 61 s",
        "queue slow: 1000 runs or more waiting, the oldest for 5 s",
        "A run has waited for too long.",
    ]


def test_programs_read_the_same_as_json(look):
    status, out, _ = look(Health.POLLING_ONLY, "--json")
    found = json.loads(out)
    assert (status, found["status"], found["database"]) == (5, "polling_only", "default")
    assert [each["is_at_work"] for each in found["supervisors"]] == [True, False]


def test_the_patience_is_given_in_seconds_and_endless_by_default(look):
    assert look(Health.HEALTHY, "--max-wait=1.5")[2] == [("default", 1_500)]
    assert look(Health.HEALTHY)[2] == [("default", float("inf"))]


@pytest.mark.parametrize("text", ["-1", "inf", "nan", "soon"])
def test_other_patience_is_refused(look, text):
    with pytest.raises(CommandError):
        look(Health.HEALTHY, f"--max-wait={text}")


def test_nothing_is_printed_when_nothing_is_to_be(look):
    assert look(Health.HEALTHY, "--verbosity=0")[:2] == (0, "")


def test_a_database_that_is_away_is_an_error_without_the_drivers_words(monkeypatch):
    def fail(*_arguments, **_options):
        raise OperationalError("password 'secret'")

    monkeypatch.setattr(runstore_health, "examine", fail)
    with pytest.raises(CommandError, match=r"^The database 'default' failed \(OperationalError\)"):
        call_command("runstore_health")


@pytest.mark.django_db
def test_without_any_supervisor_it_says_so(capsys):
    with pytest.raises(SystemExit) as ended:
        call_command("runstore_health")
    assert ended.value.code == 3
    assert capsys.readouterr().out == "No supervisor is at work.\n"
