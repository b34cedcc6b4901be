"""What only several connections or processes can show about the sweeper."""

import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.db import OperationalError, connection, connections, transaction

from django_runstore import OwnerId, RunPersistenceFailed
from django_runstore.db.failures import classify
from django_runstore.errors import DatabaseFailure
from django_runstore.models import JournalEntry, Run
from django_runstore.outcomes import Updated
from django_runstore.supervision import examination
from django_runstore.supervision.stale_rows import Page, stale_claims, stale_running
from tests.conformance.race import DEADLINE_SECONDS, elsewhere_locked, race
from tests.supervision.processes import REPOSITORY
from tests.supervision.sweeping import (
    INTERVAL,
    START,
    Scene,
    answers,
    everything,
    facts,
    short_lease,
)

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 10

DIE_HALF_WAY = """
import os, signal, sys
import django
django.setup()
from django_runstore import OwnerId
from django_runstore.services import RunStore
from django_runstore.supervision.sweeper import Sweeper
from django_runstore.testing import FakeClock

half = sys.argv[1]
def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(RunStore, half, die)
monotonic = FakeClock(0)
clock = FakeClock(int(sys.argv[2]))
observer = OwnerId.for_this_process()
sweeper = Sweeper("default", observer, clock, read_ms=monotonic.now_ms)
sweeper.sweep_once()
monotonic.advance(2_000)
sweeper.sweep_once()
"""


@pytest.fixture
def scene(settings):
    settings.RUNSTORE = short_lease()
    return Scene()


def ready_sweeper(scene):
    """A sweeper that has already seen what there is; one for each contender."""
    sweeper = scene.sweeper(observer=OwnerId.for_this_process())
    sweeper.sweep_once()
    return sweeper


def test_case_25_two_sweepers_side_by_side_take_every_run_once(scene):
    runs = [scene.running().pk for _ in range(30)]
    scene.go_stale()
    sweepers = [ready_sweeper(scene), ready_sweeper(scene)]
    scene.pass_time(2 * INTERVAL)
    reports = race(*(sweeper.sweep_once for sweeper in sweepers))
    taken = Counter(swept.run_id for report in reports for swept in report.taken)
    assert taken == dict.fromkeys(runs, 1)
    stolen = JournalEntry.objects.filter(event_type="runstore.ownership.stolen")
    assert Counter(stolen.values_list("run_id", flat=True)) == dict.fromkeys(runs, 1)


def test_case_4_of_two_sweepers_one_takes_the_run_round_after_round(scene):
    run = scene.running()
    for number in range(1, ROUNDS + 1):
        scene.go_stale()
        sweepers = [ready_sweeper(scene), ready_sweeper(scene)]
        scene.pass_time(2 * INTERVAL)
        reports = race(*(sweeper.sweep_once for sweeper in sweepers))
        assert sum(len(report.taken) for report in reports) == 1
        assert facts(run.pk).count("stolen") == number
        Run.unguarded.filter(pk=run.pk).update(recovery_count=0)
        scene.own(run.pk, scene.dead)


def test_a_beat_and_a_sweep_exclude_each_other(scene):
    run = scene.running()
    for _ in range(ROUNDS):
        scene.go_stale()
        sweeper = ready_sweeper(scene)
        fence = Run.objects.get(pk=run.pk).owner_fence
        scene.pass_time(2 * INTERVAL)
        beat, report = race(
            lambda fence=fence: scene.store.heartbeat(run.pk, scene.dead, fence=fence),
            sweeper.sweep_once,
        )
        assert isinstance(beat, Updated) != bool(report.taken)
        if report.taken:
            Run.unguarded.filter(pk=run.pk).update(recovery_count=0)
            scene.own(run.pk, scene.dead)


@pytest.mark.parametrize("half", ["claim_and_own", "transition_many"])
def test_case_25_a_sweeper_that_is_killed_half_way_has_done_nothing(scene, half, child_environment):
    run = scene.running()
    scene.go_stale()
    before = everything()
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(DIE_HALF_WAY), half, str(scene.clock.now_ms())],
        cwd=REPOSITORY,
        env=child_environment,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL
    assert everything() == before
    assert answers(scene.watch_and_act()) == {run.pk: "put_back"}


@pytest.mark.postgres(reason="SQLite locks no rows")
def test_a_locked_row_is_passed_over_and_holds_up_no_other(scene):
    locked, claimed = scene.running(run_id="a"), scene.claimed(run_id="b")
    free = scene.running(run_id="c")
    scene.go_stale()
    sweeper = ready_sweeper(scene)
    scene.pass_time(2 * INTERVAL)
    with elsewhere_locked(locked.pk, claimed.pk):
        began = time.monotonic()
        report = sweeper.sweep_once()
        took = time.monotonic() - began
    assert answers(report) == {claimed.pk: "held", locked.pk: "held", free.pk: "put_back"}
    assert took < INTERVAL / 1_000


@pytest.mark.postgres(reason="SQLite locks no tables")
def test_case_33_a_locked_table_stops_a_sweep_for_an_interval_and_not_for_ever(scene):
    run = scene.running()
    scene.go_stale()
    sweeper = ready_sweeper(scene)
    scene.pass_time(2 * INTERVAL)
    with table_locked():
        began = time.monotonic()
        with pytest.raises(OperationalError) as caught:
            sweeper.sweep_once()
        took = time.monotonic() - began
    assert classify(caught.value) == "busy"
    assert took < 5
    # The owners' beats stood in the same line, so the watching begins anew.
    assert answers(sweeper.sweep_once()) == {run.pk: "watched"}
    scene.pass_time(2 * INTERVAL)
    assert answers(sweeper.sweep_once()) == {run.pk: "put_back"}


def test_a_database_that_stays_busy_ends_the_sweep(scene, monkeypatch):
    for _ in range(5):
        scene.running()
    scene.go_stale()
    sweeper = ready_sweeper(scene)
    scene.pass_time(2 * INTERVAL)
    tried = []

    def busy(store, observer, row, evidence, **options):
        tried.append(row.run_id)
        error = RunPersistenceFailed("claim_and_own", "database operation failed")
        raise error from DatabaseFailure("busy")

    monkeypatch.setattr(examination, "take_over", busy)
    with pytest.raises(RunPersistenceFailed):
        sweeper.sweep_once()
    assert len(tried) == 3


@pytest.mark.postgres(reason="plans are PostgreSQL's")
@pytest.mark.parametrize(
    ("read", "index"),
    [(stale_running, "runstore_run_running"), (stale_claims, "runstore_run_claimed")],
)
def test_case_36_a_sweep_reads_by_way_of_the_partial_index(scene, read, index):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        with connection.execute_wrapper(explaining(plans := [])):
            read(Page("default", "", 10, START, INTERVAL))
    assert index in "\n".join(plans)


def explaining(plans):
    def wrapper(execute, sql, params, many, context):
        if sql.startswith("SELECT") and "runstore_run" in sql:
            with connection.connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN {sql}", params)
                plans.extend(line for (line,) in cursor.fetchall())
        return execute(sql, params, many, context)

    return wrapper


@contextmanager
def table_locked():
    """Hold the whole table on another connection for the length of the block."""
    locked, release = threading.Event(), threading.Event()

    def hold():
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("LOCK TABLE runstore_run IN ACCESS EXCLUSIVE MODE")
                locked.set()
                assert release.wait(DEADLINE_SECONDS)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        holder = pool.submit(hold)
        assert locked.wait(DEADLINE_SECONDS)
        try:
            yield
        finally:
            release.set()
            holder.result(DEADLINE_SECONDS)
