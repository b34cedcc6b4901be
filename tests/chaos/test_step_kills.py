"""Runs made of steps, and kill -9 in and between them: what is completed is never done again."""

import json
import random
from collections import Counter, defaultdict

import pytest
from django.db import transaction

from django_runstore.models import Attempt, Run
from django_runstore.services import RunStore
from tests.chaos.app.runs import STEPS
from tests.chaos.checker import read_effects
from tests.chaos.killing import kill_a_supervisor, kill_a_worker
from tests.supervision.processes import until

ROUNDS = 3
RUNS = 100
WORKERS_KILLED = 6


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", range(ROUNDS))
def test_no_completed_step_is_done_again_whoever_is_killed(number, supervisors, tmp_path):
    moments = random.Random(number)
    effects = tmp_path / "effects"
    store = RunStore()
    with transaction.atomic():
        for run in range(RUNS):
            state = json.dumps({"effects": str(effects)})
            store.create(f"run-{run:03}", state, handler="chaos.remembered", queue="chaos")
    for supervisor in supervisors:
        supervisor.says("is ready")

    victims = [kill_a_worker] * WORKERS_KILLED + [kill_a_supervisor]
    moments.shuffle(victims)
    completed = Attempt.objects.filter(state="completed")
    at = sorted(moments.sample(range(1, RUNS * STEPS * 3 // 4), len(victims)))
    for count, kill in zip(at, victims, strict=True):
        until(lambda count=count: completed.count() >= count, 120, "the moment")
        kill(supervisors, moments)
    until(lambda: not Run.objects.live().exists(), 120, "the end of all runs")

    assert Run.objects.filter(status="completed").count() == RUNS
    done_by = completed_once()
    fences = defaultdict(list)
    for effect in read_effects(effects):
        fences[effect.run_id, effect.step].append(effect.fence)
    assert set(fences) == set(done_by)
    for step, fence in done_by.items():
        # Tried again until it was recorded; never again after that.
        assert fences[step] == sorted(set(fences[step]))
        assert fences[step][-1] == fence
    assert {run.run_id: json.loads(run.result_json) for run in Run.objects.all()} == {
        f"run-{run:03}": [
            {"step": step, "fence": done_by[f"run-{run:03}", str(step)]} for step in range(STEPS)
        ]
        for run in range(RUNS)
    }


def completed_once():
    """Check what is recorded of every step; give the fence that each was completed under."""
    attempts = defaultdict(list)
    for attempt in Attempt.objects.order_by("attempt"):
        attempts[attempt.run_id, attempt.step_name.removeprefix("step ")].append(attempt)
    assert len(attempts) == RUNS * STEPS
    for tried in attempts.values():
        assert [attempt.attempt for attempt in tried] == list(range(len(tried)))
        assert [attempt.state for attempt in tried[:-1]] == ["interrupted"] * (len(tried) - 1)
        assert tried[-1].state == "completed"
    print(Counter(len(tried) for tried in attempts.values()))  # noqa: T201
    return {step: json.loads(tried[-1].meta_json)["fence"] for step, tried in attempts.items()}
