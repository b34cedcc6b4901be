"""Case 19: supervisors over a database that refuses every write for a while, on either database."""

import json
import time

import pytest

from django_runstore.services import RunStore
from tests.supervision.locking import everything_locked
from tests.supervision.processes import facts, has_status, is_alive, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]

# As in tests/settings.py: a write tolerance of 1.4 s, and 2 s until another may take over.
SHORT_S = 0.7
STALE_AFTER_S = 2.0


@pytest.mark.parametrize("handler", ["test.polling", "test.deaf"])
def test_a_short_outage_is_survived(supervise, submit, marks, handler):
    submit(handler)
    supervisors = [supervise("--concurrency", "1") for _ in range(2)]
    marks.entered()
    with everything_locked():
        time.sleep(SHORT_S)
    marks.allow()
    until(has_status("run", "completed"))
    assert json.loads(RunStore().get("run").result_json) == {"fence": 1}
    assert [kind for kind, _ in facts("run")] == ["claimed", "activated", "released"]
    assert all(supervisor.process.poll() is None for supervisor in supervisors)


@pytest.mark.parametrize("handler", ["test.polling", "test.deaf"])
def test_a_long_outage_ends_the_handler_before_anybody_may_take_over(
    supervise, submit, marks, handler
):
    submit(handler)
    supervisors = [supervise("--concurrency", "1") for _ in range(2)]
    worker = marks.entered()
    with everything_locked():
        time.sleep(STALE_AFTER_S)
        before = marks.lines
        time.sleep(0.3)
        # By the cut-off of the others nothing happens any more, outside the database either.
        assert marks.lines == before
        assert handler == "test.polling" or not is_alive(worker)
    marks.entered(2)
    marks.allow()
    until(has_status("run", "completed"))
    assert "lapsed" in supervisors[0].log + supervisors[1].log
    row = RunStore().get("run")
    assert (row.failure_count, row.recovery_count) == (0, 0)
    assert "stolen" not in [kind for kind, _ in facts("run")]
    # Supervisors stay, and go on by themselves.
    assert all(supervisor.process.poll() is None for supervisor in supervisors)
