"""Runs that another release wrote, with real supervisors."""

import json

import pytest

from django_runstore.models import Run
from django_runstore.outcomes import Woken
from django_runstore.services import RunStore
from tests.supervision.processes import notes


def test_an_older_state_is_upgraded_and_the_release_recorded(supervise, submit):
    submit("test.second_version", state_version=1)
    supervise("--drain", "--concurrency", "1", RUNSTORE_TEST_CODE_VERSION="release-7").wait()
    row = RunStore().get("run")
    assert (row.status, row.state_version, row.code_version) == ("completed", 2, "release-7")
    assert json.loads(row.result_json) == {"upgraded_from": 1}


def test_a_newer_state_stays_untouched_for_a_newer_release(supervise, submit):
    submit("test.second_version", state_version=3)
    supervise("--drain", "--concurrency", "1").wait()
    row = RunStore().get("run")
    assert (row.status, row.fence, row.state_version) == ("pending", 0, 3)


@pytest.mark.parametrize("again", [False, True])
def test_a_state_that_no_release_here_can_upgrade_is_parked_and_listed(supervise, submit, again):
    submit("test.broken_upgrade", state_version=1)
    supervise("--drain", "--concurrency", "1").wait()
    if again:
        assert RunStore().wake("run") == Woken()
        supervise("--drain", "--concurrency", "1").wait()
    row = RunStore().get("run")
    assert (row.status, row.available_at_ms, row.failure_count) == ("suspended", None, 0)
    assert json.loads(row.error_json)["type"] == "LookupError"
    assert notes("run") == [("runstore.run.parked", {"reason": "upgrade"})] * (1 + again)
    (listed,) = RunStore().waiting_runs(reason="upgrade")
    assert listed.run_id == "run"
    assert list(Run.objects.waiting()) == [Run.objects.get()]
