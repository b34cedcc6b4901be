"""States of older releases, upgraded before the handler is entered."""

import json

import pytest

from django_runstore import RunStore
from django_runstore.handlers import InvalidHandler, RunContext, RunInterrupted
from django_runstore.handlers.execution import Completed, Failed, Interrupted, execute
from django_runstore.handlers.registry import Handler, handler
from django_runstore.models import Run
from tests.handlers.conftest import OWNER
from tests.handlers.signals import ScriptedSignal


def wrap(state, version):
    return {"v": version, "old": state}


@pytest.fixture
def run_as(db):
    """Execute a run that a handler of one version submitted by a handler of another."""

    def run(declared, *, written_by=1, signal=None):
        store = RunStore()
        store.create("run", '{"n":1}', handler="tests.up", state_version=written_by)
        (claimed,) = store.claim_many(OWNER, 1)
        context = RunContext(claimed.run, claimed.fence, OWNER, store, signal or ScriptedSignal())
        return execute(declared, context)

    return run


def version_two(upgrade=wrap, function=lambda run: run.state):
    return Handler("tests.up", function, state_version=2, upgrade=upgrade)


@pytest.mark.parametrize("written_by", [0, 1])
def test_an_older_state_is_upgraded_stored_and_given_to_the_handler(run_as, written_by):
    upgraded = {"v": written_by, "old": {"n": 1}}
    assert json.loads(run_as(version_two(), written_by=written_by).result_json) == upgraded
    row = RunStore().get("run")
    assert (json.loads(row.state_json), row.state_version) == (upgraded, 2)


def test_a_state_of_this_version_is_left_alone(run_as):
    assert run_as(version_two(), written_by=2) == Completed('{"n":1}')
    assert RunStore().get("run").state_version == 2


def test_an_upgrade_happens_once_however_often_the_handler_is_entered(run_as):
    def die(run):
        raise RunInterrupted("draining")

    assert run_as(version_two(function=die)) == Interrupted("draining")
    row = RunStore().get("run")
    again = RunContext(row, row.owner_fence, OWNER, RunStore(), ScriptedSignal())
    assert json.loads(execute(version_two(), again).result_json) == {"v": 1, "old": {"n": 1}}


@pytest.mark.parametrize(
    ("upgrade", "kind"),
    [(lambda state, _: state["missing"], "KeyError"), (lambda *_: {1, 2}, "InvalidValue")],
    ids=["raises", "cannot be stored"],
)
def test_a_state_that_cannot_be_upgraded_stays_and_the_handler_is_not_entered(
    run_as, upgrade, kind
):
    outcome = run_as(version_two(upgrade, function=lambda _: pytest.fail("entered")))
    assert isinstance(outcome, Failed)
    assert outcome.is_unreadable
    assert json.loads(outcome.error_json)["type"] == kind
    row = RunStore().get("run")
    assert (row.state_json, row.state_version) == ('{"n":1}', 1)


def test_nothing_is_stored_for_a_run_that_has_to_stop(run_as):
    signal = ScriptedSignal()
    signal.reason = "draining"
    assert run_as(version_two(), signal=signal) == Interrupted("draining")
    assert RunStore().get("run").state_version == 1


def test_a_submission_says_which_version_its_state_has(db):
    version_two().submit({"n": 1}, run_id="run")
    assert Run.objects.get().state_version == 2


@pytest.mark.parametrize(
    "options",
    [
        {"state_version": 0},
        {"state_version": True},
        {"state_version": 2},
        {"state_version": 2, "upgrade": "later"},
        {"upgrade": wrap},
    ],
    ids=["none", "no number", "no upgrade", "no function", "no older version"],
)
def test_a_version_above_the_first_needs_an_upgrade_and_the_first_has_none(options):
    with pytest.raises(InvalidHandler) as caught:
        handler("a", **options)
    assert caught.value.detail["field"] in options.keys() | {"upgrade"}
