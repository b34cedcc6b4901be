import json
import subprocess
import sys
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from django_runstore import OwnerId
from django_runstore.clocks import clock_for
from django_runstore.management.commands import runstore_sweep
from django_runstore.models import JournalEntry, Run
from django_runstore.supervision.sweeper import Sweeper
from django_runstore.testing import FakeClock
from django_runstore.testing.factories import RunFactory
from tests.supervision.processes import REPOSITORY
from tests.supervision.sweeping import dead_owner, everything, facts

LONG_AGO = FakeClock(1_000_000)


@pytest.fixture
def waited(settings, monkeypatch):
    """Short intervals, and the waits of the command counted."""
    settings.RUNSTORE = {
        "LEASE": {"HEARTBEAT_INTERVAL_MS": 20, "STALE_AFTER_MS": 2_000, "SKEW_ALLOWANCE_MS": 600}
    }
    waits = []
    sleep = runstore_sweep.time.sleep

    def note(seconds):
        waits.append(seconds)
        sleep(seconds)

    monkeypatch.setattr(runstore_sweep.time, "sleep", note)
    return waits


@pytest.fixture
def sweep(db, waited):
    def call(*options):
        out, status = StringIO(), 0
        try:
            call_command("runstore_sweep", *options, stdout=out, stderr=out)
        except SystemExit as end:
            status = end.code
        return status, out.getvalue()

    return call


def stale_run(**options):
    return RunFactory(running=True, owner=dead_owner(), clock=LONG_AGO, **options)


def undecodable_run():
    return RunFactory.raw(
        run_id="unreadable",
        status="running",
        owner_host_id="elsewhere",
        owner_pid=1,
        owner_nonce="nonce",
        heartbeat_at_ms=0,
        state_json="not json",
    )


def test_nothing_stale_is_said_at_once_and_ends_with_0(sweep, waited):
    assert (sweep(), waited) == ((0, "Nothing is stale.\n"), [])


def test_a_run_of_a_dead_owner_is_put_back(sweep):
    run = stale_run()
    status, _ = sweep()
    assert (status, Run.objects.get(pk=run.pk).status) == (0, "suspended")


def test_a_claim_of_a_dead_claimant_is_cleared(sweep):
    run = RunFactory(claimed=True, owner=dead_owner(), clock=LONG_AGO)
    sweep()
    assert Run.objects.get(pk=run.pk).claim_host_id is None


def test_it_waits_for_two_intervals_once(sweep, waited):
    stale_run()
    sweep()
    assert waited == [pytest.approx(2 * 0.020, abs=0.011)]


def test_a_person_can_read_what_was_done(sweep):
    run = stale_run(run_id="report-7")
    _, printed = sweep()
    first, second, last = printed.splitlines()
    assert first.startswith("1 stale row; watching for 0.1 s (2 heartbeat intervals)")
    assert second.startswith("report-7: put back; owner ")
    assert second.endswith("is gone (same-host-pid-dead)")
    assert last == "Done: 1 put back."
    assert run.pk == "report-7"


def test_stale_runs_of_living_owners_are_named_with_the_reason_and_end_with_0(sweep):
    run = RunFactory(running=True, owner=OwnerId.for_this_process(), clock=LONG_AGO)
    status, printed = sweep()
    assert status == 0
    assert f"{run.pk}: stale, not provably dead; owner " in printed
    assert "its process exists on this host" in printed


def test_rows_that_need_a_person_are_named_and_end_with_3(sweep):
    run = stale_run()
    undecodable_run()
    status, printed = sweep()
    assert status == 3
    assert "unreadable: cannot be read; " in printed
    assert f"{run.pk}: put back" in printed


def test_more_rows_than_one_sweep_looks_at_are_all_looked_at(sweep, monkeypatch):
    def narrow(*arguments, **options):
        return Sweeper(*arguments, window=2, **options)

    monkeypatch.setattr(runstore_sweep, "Sweeper", narrow)
    for _ in range(5):
        stale_run()
    status, printed = sweep()
    assert (status, Run.objects.filter(status="suspended").count()) == (0, 5)
    assert "Done: 5 put back." in printed


def test_a_dry_run_writes_nothing_and_says_so(sweep):
    stale_run()
    before = everything()
    status, printed = sweep("--dry-run")
    assert (status, everything()) == (0, before)
    assert "Dry run, nothing was written. Would have been: 1 put back." in printed


def test_json_is_all_that_is_printed(sweep):
    run = stale_run()
    _, printed = sweep("--json")
    report = json.loads(printed)
    assert report["database"] == "default"
    assert [(swept["run_id"], swept["answer"]) for swept in report["runs"]] == [
        (run.pk, "put_back")
    ]


def test_verbosity_0_prints_nothing(sweep):
    stale_run()
    assert sweep("--verbosity=0") == (0, "")


def test_an_id_with_line_breaks_stays_on_one_line(sweep):
    stale_run(run_id="a\nb")
    _, printed = sweep()
    assert len(printed.splitlines()) == 3


def test_an_unknown_database_is_refused(sweep):
    with pytest.raises(CommandError, match="invalid choice"):
        call_command("runstore_sweep", "--database=nowhere")


def test_a_failure_of_the_database_is_named_without_the_drivers_words(sweep, monkeypatch):
    def fail(self):
        raise OperationalError("password=hunter2")

    monkeypatch.setattr(Sweeper, "sweep_once", fail)
    with pytest.raises(CommandError) as caught:
        call_command("runstore_sweep")
    assert caught.value.returncode == 1
    assert str(caught.value) == "The database 'default' failed while sweeping (OperationalError)."


def test_a_clock_that_has_just_jumped_ends_with_1_and_takes_nothing(sweep, monkeypatch):
    run = stale_run()
    monkeypatch.setattr(clock_for("default"), "takeovers_blocked", lambda: True, raising=False)
    with pytest.raises(CommandError, match="has just jumped") as caught:
        call_command("runstore_sweep")
    assert caught.value.returncode == 1
    assert Run.objects.get(pk=run.pk).status == "running"


def test_an_interruption_ends_with_130(sweep, monkeypatch):
    stale_run()

    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(runstore_sweep.time, "sleep", interrupt)
    status, printed = sweep()
    assert (status, "Interrupted" in printed) == (130, True)


@pytest.mark.django_db(transaction=True)
def test_case_25_two_commands_side_by_side_take_every_run_once(child_environment):
    runs = [stale_run() for _ in range(20)]
    environment = child_environment | {"DJANGO_SETTINGS_MODULE": "tests.settings"}
    commands = [
        subprocess.Popen(
            [sys.executable, "manage.py", "runstore_sweep", "--json"],
            cwd=REPOSITORY,
            env=environment,
            stdout=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    reports = [json.loads(command.communicate(timeout=60)[0]) for command in commands]
    assert [command.returncode for command in commands] == [0, 0]
    taken = [
        swept["run_id"]
        for report in reports
        for swept in report["runs"]
        if swept["answer"] == "put_back"
    ]
    assert sorted(taken) == sorted(run.pk for run in runs)
    assert all(facts(run.pk).count("stolen") == 1 for run in runs)
    assert JournalEntry.objects.filter(event_type="runstore.owner.lost").count() == 20
