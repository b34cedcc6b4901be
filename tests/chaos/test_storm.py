"""A short storm: every fault that a database knows, and the proof afterwards."""

import subprocess
import sys

import pytest

from tests.supervision.processes import REPOSITORY

SECONDS = 20
# Without those that disturb the other databases of the server, which other tests use.
FAULTS = "kill_worker,kill_supervisor,kill_both,stop_worker,stop_supervisor,drain,lock_table"


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(400)
def test_runs_have_one_owner_at_a_time_and_are_all_settled_after_a_storm(child_environment):
    environment = child_environment | {"DJANGO_SETTINGS_MODULE": "tests.chaos.settings"}
    command = [sys.executable, "-m", "tests.chaos.storm", "--seconds", str(SECONDS), "--seed", "1"]
    done = subprocess.run(
        [*command, "--faults", FAULTS],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith("runs, no fault")
    print(done.stdout)  # noqa: T201 - the counts, for whoever wants to see them
