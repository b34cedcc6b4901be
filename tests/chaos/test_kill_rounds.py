"""Two supervisors, two hundred runs, and kill -9 at random moments; ten times."""

import random
import subprocess
import sys

import pytest
from django.db import transaction

from django_runstore.models import JournalEntry, Run
from django_runstore.services import RunStore
from tests.chaos.app.runs import STEPS
from tests.chaos.killing import kill_a_supervisor, kill_a_worker
from tests.supervision.processes import REPOSITORY, until

ROUNDS = 10
RUNS = 200
WORKERS_KILLED = 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", range(ROUNDS))
def test_every_run_settles_once_although_a_supervisor_and_two_workers_are_killed(
    number, environment, supervisors, tmp_path
):
    moments = random.Random(number)
    effects = tmp_path / "effects"
    store = RunStore()
    with transaction.atomic():
        for run in range(RUNS):
            state = f'{{"step": 0, "effects": "{effects}"}}'
            store.create(f"run-{run:03}", state, handler="chaos.steps", queue="chaos")
    for supervisor in supervisors:
        supervisor.says("is ready")

    victims = [kill_a_worker] * WORKERS_KILLED + [kill_a_supervisor]
    moments.shuffle(victims)
    at = sorted(moments.sample(range(1, RUNS * 3 // 4), len(victims)))
    for settled, kill in zip(at, victims, strict=True):
        until(lambda settled=settled: Run.objects.settled().count() >= settled, 120, "the moment")
        kill(supervisors, moments)
    until(lambda: not Run.objects.live().exists(), 120, "the end of all runs")

    assert Run.objects.filter(status="completed").count() == RUNS
    assert set(Run.objects.values_list("result_json", flat=True)) == {f'{{"steps":{STEPS}}}'}
    settling = JournalEntry.objects.filter(event_type="runstore.ownership.released")
    assert settling.count() >= RUNS
    report = subprocess.run(
        [sys.executable, "-m", "tests.chaos.checker", str(effects)],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (report.returncode, report.stdout) == (0, f"{RUNS} runs, no fault\n"), report.stderr
    done = {tuple(line.split("\t")[::2]) for line in effects.read_text().splitlines()}
    assert done == {(f"run-{run:03}", str(step)) for run in range(RUNS) for step in range(STEPS)}
