"""Faults in the process of the test: what a handler and the next owner make of them."""

from contextlib import suppress

import pytest
from django.db import transaction

from django_runstore import RunPersistenceFailed, RunStore
from django_runstore.models import Attempt, JournalEntry, Run
from django_runstore.testing import (
    Runner,
    crash_after,
    freeze_owner,
    partition,
)

STALE_AFTER = 30_000

pytestmark = pytest.mark.usefixtures("clock")


@pytest.fixture
def done():
    """What was done outside the database, in order."""
    return []


@pytest.fixture
def order(declare, done):
    """Charge, and then ship."""

    def effect(name, fence):
        done.append((name, fence))
        return [name, fence]

    def work(run):
        try:
            charged = run.step("charge", effect, "charge", fence=run.fence)
            shipped = run.step("ship", effect, "ship", fence=run.fence)
            run.save("shipped")
        finally:
            done.append(("left", run.fence))
        return [charged, shipped]

    return declare("shop.order", work)


def payload_of(event_type):
    return JournalEntry.objects.get(event_type=event_type).payload_json


# --- crash --------------------------------------------------------------------------------


def test_a_crash_leaves_the_run_with_its_dead_owner(order):
    handle = order.submit(run_id="run")
    runner = Runner()
    owner = runner.owner
    with crash_after("charge"):
        report = runner.run_until_idle()

    assert [(e.ended, e.status) for e in report.executions] == [("died", None)]
    assert (handle.status, handle.row.owner, handle.row.owner_fence) == ("running", owner, 1)
    assert runner.owner != owner


def test_the_next_owner_takes_over_on_evidence_and_repeats_no_step(order, done, clock):
    handle = order.submit(run_id="run")
    runner = Runner()
    with crash_after("charge"):
        runner.run_until_idle()
    assert runner.run_until_idle().executions == ()

    clock.advance(STALE_AFTER + 1)
    report = runner.run_until_idle(raise_errors=True)

    assert [(swept.run_id, swept.answer) for swept in report.swept] == [("run", "put_back")]
    assert "cross-host-unreachable-stale" in payload_of("runstore.ownership.stolen")
    assert [name for name, _ in done] == ["charge", "left", "ship", "left"]
    assert handle.result() == [["charge", 1], ["ship", handle.row.fence]]
    assert handle.row.recovery_count == 0


def test_on_request_the_clock_is_turned_past_the_lease_of_the_dead(order, clock):
    handle = order.submit(run_id="run")
    runner = Runner()
    with crash_after("charge"):
        runner.run_until_idle()
    report = runner.run_until_idle(advance_clock=True)

    assert report.advanced_ms == STALE_AFTER + 1
    assert handle.status == "completed"


def test_an_effect_whose_record_was_lost_is_repeated(order, done):
    order.submit(run_id="run")
    runner = Runner()
    with crash_after(unrecorded="charge"):
        runner.run_until_idle()
    runner.run_until_idle(advance_clock=True, raise_errors=True)

    assert [name for name, _ in done] == ["charge", "left", "charge", "ship", "left"]
    states = Attempt.objects.filter(step_name="charge").order_by("attempt")
    assert list(states.values_list("state", flat=True)) == ["interrupted", "completed"]


def test_a_crash_before_a_step_leaves_it_to_the_next_owner(order, done):
    order.submit(run_id="run")
    runner = Runner()
    with crash_after(before="ship"):
        runner.run_until_idle()
    assert not Attempt.objects.filter(step_name="ship").exists()
    runner.run_until_idle(advance_clock=True)

    assert [name for name, _ in done] == ["charge", "left", "ship", "left"]


def test_the_dead_write_nothing_however_their_handler_unwinds(declare):
    def work(run):
        # As thorough as a handler can be that does not want to leave.
        with suppress(BaseException):
            run.step("first", lambda: None)
        with suppress(BaseException):
            run.save("from beyond")
        with suppress(RunPersistenceFailed):
            RunStore().create("ghost", "{}")
        with suppress(Exception):
            transaction.on_commit(lambda: RunStore().create("ghost", "{}"))
        return "came back"

    handle = declare("shop.clings", work).submit("alive", run_id="run")
    runner = Runner()
    with crash_after("first"):
        (execution,) = runner.run_until_idle().executions

    assert (execution.ended, handle.status, handle.state) == ("died", "running", "alive")
    assert list(Run.objects.values_list("pk", flat=True)) == ["run"]


def test_a_crash_happens_once(order):
    order.submit(run_id="run")
    runner = Runner()
    with crash_after("charge"):
        report = runner.run_until_idle(advance_clock=True)

    assert [execution.ended for execution in report.executions] == ["died", "completed"]


def test_two_crashes_of_one_run_are_two_owners_lost(order):
    handle = order.submit(run_id="run")
    runner = Runner()
    with crash_after("charge"), crash_after(before="ship"):
        # The second kills the owner that took over from the first.
        report = runner.run_until_idle(advance_clock=True)

    assert [execution.ended for execution in report.executions] == ["died", "died", "completed"]
    assert handle.status == "completed"


def test_what_was_committed_before_a_crash_stays_committed(declare):
    note = declare("shop.note", lambda _: None)

    def work(run):
        def enqueue():
            with transaction.atomic():
                transaction.on_commit(lambda: note.submit(run_id="child"))

        run.step("enqueue", enqueue)

    declare("shop.work", work).submit(run_id="run")
    with crash_after("enqueue"):
        report = Runner().run_until_idle()

    assert [(e.run_id, e.ended) for e in report.executions] == [
        ("run", "died"),
        ("child", "completed"),
    ]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (lambda: crash_after("pay"), "no handler came past the step 'pay'"),
        (lambda: crash_after(before="pay"), "no handler came to the step 'pay'"),
        (lambda: crash_after(unrecorded="pay"), "no handler executed the step 'pay'"),
        (lambda: freeze_owner(after="pay"), "no handler came past the step 'pay'"),
        (lambda: partition(before="pay"), "no handler came to the step 'pay'"),
    ],
)
def test_a_fault_that_never_happens_fails_the_test(order, fault, words):
    order.submit(run_id="run")
    with pytest.raises(AssertionError, match=words), fault():
        Runner().run_until_idle()


def test_a_freeze_of_nobody_fails_the_test():
    with pytest.raises(AssertionError, match="no handler was entered"), freeze_owner():
        Runner().run_until_idle()


def test_a_failure_inside_the_block_is_not_hidden_by_the_fault_that_did_not_happen():
    with pytest.raises(KeyError), crash_after("pay"):
        raise KeyError


@pytest.mark.parametrize("moments", [{}, {"before": "a", "unrecorded": "b"}])
def test_a_crash_has_exactly_one_moment(moments):
    with pytest.raises(TypeError), crash_after(**moments):
        pass


# --- freeze -------------------------------------------------------------------------------


def test_a_frozen_owner_loses_the_run_and_its_writes_are_refused(order, done):
    handle = order.submit(run_id="run")
    with freeze_owner(after="charge") as frozen:
        report = Runner().run_until_idle()

    (lost,) = report.executions
    assert (lost.ended, lost.reason, lost.status) == ("interrupted", "fence_lost", None)
    assert (frozen.run_id, frozen.fence) == ("run", 1)
    (taken,) = frozen.meanwhile.executions
    assert (taken.status, [swept.answer for swept in frozen.meanwhile.swept]) == (
        "completed",
        ["put_back"],
    )
    # Shipped once, by the new owner: the frozen one read of it, and was stopped at its save.
    assert [name for name, _ in done] == ["charge", "ship", "left", "left"]
    assert handle.result() == [["charge", 1], ["ship", taken.fence]]


def test_an_owner_can_freeze_before_its_first_line(order, done):
    order.submit(run_id="run")
    with freeze_owner() as frozen:
        report = Runner().run_until_idle()

    assert report.executions[0].reason == "fence_lost"
    assert frozen.meanwhile.executions[0].status == "completed"
    assert [name for name, _ in done] == ["charge", "ship", "left", "left"]


def test_a_frozen_owner_that_writes_no_more_settles_nothing(declare, clock):
    handle = declare("shop.answer", lambda run: run.fence).submit(run_id="run")
    with freeze_owner() as frozen:
        (execution,) = Runner().run_until_idle().executions

    assert (execution.ended, execution.status) == ("completed", None)
    assert handle.result() == frozen.meanwhile.executions[0].fence


def test_what_happens_meanwhile_is_up_to_the_test(order, clock):
    handle = order.submit(run_id="run")
    with freeze_owner(before="ship", meanwhile=lambda: clock.advance(STALE_AFTER + 1)) as frozen:
        (execution,) = Runner().run_until_idle(raise_errors=True).executions

    # Stale, but nobody took it: the run is still the owner's.
    assert (execution.status, handle.status, frozen.meanwhile) == ("completed", "completed", None)


# --- partition ----------------------------------------------------------------------------


def test_no_run_is_lost_while_the_database_is_away(order):
    handle = order.submit(run_id="run")
    runner = Runner()
    with partition():
        report = runner.run_until_idle()
        with pytest.raises(RunPersistenceFailed) as caught:
            runner.run_once("run")
    assert (report.is_cut_off, report.executions) == (True, ())
    assert caught.value.detail["cause"] == "io"

    runner.run_until_idle()
    assert handle.status == "completed"


def test_a_step_that_finds_the_database_away_interrupts_the_handler(order, done, clock):
    handle = order.submit(run_id="run")
    runner = Runner()
    with partition(after="charge"):
        report = runner.run_until_idle()
    (execution,) = report.executions
    assert (execution.reason, execution.status) == ("database_unavailable", None)
    assert (report.is_cut_off, handle.status) == (True, "running")

    report = runner.run_until_idle()
    assert (report.settled_late, handle.status) == ((("run", "suspended"),), "suspended")
    report = runner.run_until_idle(advance_clock=True)

    assert [name for name, _ in done] == ["charge", "left", "ship", "left"]
    assert handle.result() == [["charge", 1], ["ship", 2]]


def test_a_result_is_kept_until_the_database_is_back(declare):
    handle = declare("shop.answer", lambda run: run.step("only", lambda: 42)).submit(run_id="run")
    runner = Runner()
    with partition(after="only"):
        (execution,) = runner.run_until_idle().executions
    assert (execution.ended, execution.status, handle.status) == ("completed", None, "running")

    report = runner.run_until_idle()

    assert report.settled_late == (("run", "completed"),)
    assert handle.result() == 42


def test_a_partition_before_a_step_keeps_the_step_from_beginning(order, done):
    order.submit(run_id="run")
    with partition(before="charge"):
        (execution,) = Runner().run_until_idle().executions

    assert (execution.reason, done) == ("database_unavailable", [("left", 1)])
