from types import SimpleNamespace

import pytest

from django_runstore.handlers.execution import Completed, Interrupted
from django_runstore.snapshots import ClaimedRun
from django_runstore.supervision.crew import Ended, Place, Said
from django_runstore.supervision.endings import Ending, WorkerExit, WorkerLost
from django_runstore.supervision.executions import Executions
from django_runstore.supervision.protocol import Finished, Lapsed, Settled, Start, Started, Stop
from django_runstore.supervision.recycling import MIB, RecycleRule
from django_runstore.supervision.settlement import Settlement
from django_runstore.testing import FakeClock

KILLED = WorkerExit(-9)
CLAIMED_AT_MS = 1_700_000_000_000
"""By the clock of the store, when the one for intervals showed 500."""
GRACE_MS = 300


class FakeProcess:
    held_bytes = None

    def __init__(self):
        self.signals = []

    def terminate(self):
        self.signals.append("TERM")

    def kill(self):
        self.signals.append("KILL")

    def resident_bytes(self):
        return self.held_bytes


class FakeCrew:
    def __init__(self, size):
        self.places = [Place(number, FakeProcess(), is_ready=True) for number in range(size)]
        self.sent = []
        self.dismissed = []

    def send(self, place, command):
        self.sent.append((place.number, command))
        return True

    def dismiss(self, place):
        place.is_leaving = True
        self.dismissed.append(place.number)


class FakeKeeper:
    def __init__(self):
        self.held = {}
        self.unconfirmed = set()

    def hold(self, run_id, fence, slot, *, confirmed_at_ms):
        self.held[run_id, fence] = (slot, confirmed_at_ms)

    def drop(self, run_id, fence):
        del self.held[run_id, fence]

    def confirmed(self, run_id, fence):
        return (run_id, fence) in self.held and run_id not in self.unconfirmed


class FakeSettler:
    def __init__(self):
        self.endings = []

    def add(self, ending):
        self.endings.append(ending)

    def discard(self, run_id, fence):
        self.endings = [one for one in self.endings if (one.run_id, one.fence) != (run_id, fence)]


class Scene:
    """One or two workers, and the hands of the clock."""

    def __init__(self, size=1):
        self.clock = FakeClock(0)
        self.crew = FakeCrew(size)
        self.keeper = FakeKeeper()
        self.settler = FakeSettler()
        self.executions = Executions(
            self.crew, self.keeper, self.settler, self.clock.now_ms, stop_grace_ms=GRACE_MS
        )
        self.place = self.crew.places[0]

    def begin(self, run_id="run", fence=1, requested_at_ms=None, deadline_at_ms=None):
        run = SimpleNamespace(
            run_id=run_id,
            handler="h",
            cancel_requested_at_ms=requested_at_ms,
            deadline_at_ms=deadline_at_ms,
            heartbeat_at_ms=CLAIMED_AT_MS,
        )
        self.executions.begin(ClaimedRun(run, fence), self.place, 500)
        running = self.executions.under_way()
        return running[-1] if running else None

    def hear(self, report):
        self.executions.hear(Said(self.place, self.place.process, report))

    def die(self, worker_exit=KILLED):
        self.place.process = None
        self.executions.worker_ended(Ended(self.place, worker_exit))

    @property
    def outcomes(self):
        return [ending.outcome for ending in self.settler.endings]


@pytest.fixture
def scene():
    return Scene()


def test_a_claimed_run_is_held_from_before_its_claim_and_started(scene):
    scene.begin()
    assert scene.keeper.held == {("run", 1): (0, 500)}
    assert scene.crew.sent == [(0, Start("run", 1, 0))]
    assert scene.executions.idle_places() == []


def test_a_run_that_was_cancelled_before_is_settled_without_a_worker(scene):
    scene.begin(requested_at_ms=7)
    assert scene.crew.sent == []
    assert scene.outcomes == [Interrupted("cancelled")]


def test_a_place_is_taken_until_its_run_is_settled(scene):
    scene.begin()
    scene.hear(Finished("run", 1, "completed", "1"))
    assert scene.executions.idle_places() == []
    scene.executions.settled([Settlement(scene.settler.endings[0], "completed")])
    assert scene.executions.idle_places() == [scene.place]
    assert scene.crew.sent[-1] == (0, Settled("run", 1))
    assert scene.keeper.held == {}


def test_a_report_of_another_process_than_the_runs_own_means_nothing(scene):
    scene.begin()
    scene.executions.hear(Said(scene.place, FakeProcess(), Finished("run", 1, "completed", "1")))
    assert scene.outcomes == []


def test_a_report_about_another_grant_means_nothing(scene):
    scene.begin()
    scene.hear(Finished("run", 2, "completed", "1"))
    assert scene.outcomes == []


def test_a_worker_that_dies_under_its_run_is_lost(scene):
    scene.begin()
    scene.hear(Started("run", 1))
    scene.die()
    assert scene.settler.endings == [Ending("run", 1, WorkerLost(), KILLED)]


def test_a_worker_that_dies_before_it_entered_the_run_is_not_the_runs_fault(scene):
    scene.begin()
    scene.die()
    assert scene.outcomes == [Interrupted("not_started")]


def test_a_worker_that_dies_after_handing_over_takes_nothing_along(scene):
    scene.begin()
    scene.hear(Finished("run", 1, "completed", "1"))
    scene.die()
    assert scene.outcomes == [Completed("1")]


def test_a_worker_ended_by_its_watchdog_is_not_the_runs_fault(scene):
    scene.begin()
    scene.hear(Started("run", 1))
    scene.hear(Lapsed("run", 1))
    scene.die()
    assert scene.outcomes == [Interrupted("lease_lapsed")]


def test_a_run_that_leaves_although_nobody_told_it_to_is_marked_so(scene):
    scene.begin()
    scene.hear(Finished("run", 1, "interrupted", "stopping"))
    assert [ending.is_unasked for ending in scene.settler.endings] == [True]


def test_a_run_that_was_told_to_stop_is_not_taken_to_spin(scene):
    execution = scene.begin()
    scene.executions.stop(execution, "draining", grace_ms=1_000, kill_after_ms=500)
    # By the signal that its worker got as well, a moment before the supervisor's word.
    scene.hear(Finished("run", 1, "interrupted", "stopping"))
    assert [ending.is_unasked for ending in scene.settler.endings] == [False]


def test_a_worker_that_sees_the_lapse_first_does_not_make_its_run_wait(scene):
    scene.begin()
    scene.hear(Finished("run", 1, "interrupted", "lease_lapsed"))
    assert [ending.is_unasked for ending in scene.settler.endings] == [False]


@pytest.mark.parametrize(("reason", "dismissed"), [("unreadable", [0]), ("draining", [])])
def test_a_worker_that_cannot_read_its_run_is_replaced(scene, reason, dismissed):
    scene.begin()
    scene.hear(Finished("run", 1, "interrupted", reason))
    scene.executions.settled([Settlement(scene.settler.endings[0], "suspended")])
    assert scene.crew.dismissed == dismissed


class TestStopping:
    def stop(self, scene, reason="draining", grace_ms=1_000, kill_after_ms=500):
        (execution,) = scene.executions.under_way()
        scene.executions.stop(execution, reason, grace_ms=grace_ms, kill_after_ms=kill_after_ms)
        return execution

    def test_first_it_is_said_then_terminated_then_killed(self, scene):
        scene.begin()
        self.stop(scene)
        assert scene.crew.sent[-1] == (0, Stop("run", 1, "draining"))
        assert scene.place.process.signals == []
        scene.clock.set(1_000)
        scene.executions.enforce_stops()
        assert scene.crew.sent[-1] == (0, Stop("run", 1, "draining", urgent=True))
        assert scene.place.process.signals == ["TERM"]
        scene.clock.set(1_500)
        scene.executions.enforce_stops()
        scene.executions.enforce_stops()
        assert scene.place.process.signals == ["TERM", "KILL"]

    def test_the_next_deadline_is_the_next_thing_to_do(self, scene):
        scene.begin()
        assert scene.executions.next_deadline_in_ms() == float("inf")
        self.stop(scene)
        assert scene.executions.next_deadline_in_ms() == 1_000
        scene.clock.set(1_000)
        scene.executions.enforce_stops()
        assert scene.executions.next_deadline_in_ms() == 500
        scene.clock.set(1_500)
        scene.executions.enforce_stops()
        assert scene.executions.next_deadline_in_ms() == float("inf")

    def test_a_second_stop_can_only_shorten_the_patience(self, scene):
        scene.begin()
        self.stop(scene, grace_ms=1_000)
        execution = self.stop(scene, grace_ms=5_000)
        assert execution.stopping.terminate_at_ms == 1_000
        self.stop(scene, grace_ms=0, kill_after_ms=0)
        assert scene.place.process.signals == ["TERM", "KILL"]

    def test_a_worker_that_was_killed_for_a_reason_ends_for_that_reason(self, scene):
        scene.begin()
        scene.hear(Started("run", 1))
        self.stop(scene, grace_ms=0, kill_after_ms=0)
        scene.die()
        assert scene.outcomes == [Interrupted("draining")]

    def test_a_crash_while_draining_is_still_a_crash(self, scene):
        scene.begin()
        scene.hear(Started("run", 1))
        self.stop(scene, grace_ms=1_000)
        scene.die(WorkerExit(-11))
        assert scene.outcomes == [WorkerLost()]

    def test_a_worker_that_was_interrupted_wherever_it_was_gets_nothing_more_to_do(self, scene):
        scene.begin()
        self.stop(scene, grace_ms=0)
        scene.hear(Finished("run", 1, "interrupted", "draining"))
        scene.executions.settled([Settlement(scene.settler.endings[0], "suspended")])
        assert scene.crew.dismissed == [0]
        assert scene.executions.idle_places() == []


class TestOwnership:
    def test_a_lost_run_is_stopped_at_once_and_never_settled(self, scene):
        scene.begin()
        scene.executions.ownership_lost("run", 1, kill_after_ms=200)
        assert scene.place.process.signals == ["TERM"]
        scene.clock.set(200)
        scene.executions.enforce_stops()
        assert scene.place.process.signals == ["TERM", "KILL"]
        scene.die()
        assert scene.outcomes == []
        assert len(scene.executions) == 0

    def test_a_lost_runs_result_is_dropped(self, scene):
        scene.begin()
        scene.executions.ownership_lost("run", 1, kill_after_ms=200)
        scene.hear(Finished("run", 1, "completed", "1"))
        assert scene.outcomes == []

    def test_an_ending_that_waits_is_dropped_when_its_run_is_lost(self, scene):
        scene.begin()
        scene.hear(Finished("run", 1, "completed", "1"))
        scene.executions.ownership_lost("run", 1, kill_after_ms=200)
        assert scene.outcomes == []
        assert scene.crew.sent[-1] == (0, Settled("run", 1))

    def test_no_later_reason_replaces_a_lost_fence(self, scene):
        execution = scene.begin()
        scene.executions.ownership_lost("run", 1, kill_after_ms=200)
        scene.executions.stop(execution, "draining", grace_ms=0, kill_after_ms=0)
        assert execution.stopping.reason == "fence_lost"

    def test_news_about_another_grant_disturb_nobody(self, scene):
        execution = scene.begin(fence=2)
        scene.executions.ownership_lost("run", 1, kill_after_ms=200)
        scene.executions.ownership_lapsed("run", 1)
        assert execution.stopping is None

    def test_a_lapsed_run_is_ended_without_patience_and_put_back_by_its_fence(self, scene):
        scene.begin()
        scene.hear(Started("run", 1))
        scene.executions.ownership_lapsed("run", 1)
        assert scene.place.process.signals == ["TERM", "KILL"]
        scene.die()
        (ending,) = scene.settler.endings
        assert ending.outcome == Interrupted("lease_lapsed")
        scene.keeper.unconfirmed.add("run")
        assert scene.executions.may_settle(ending)

    def test_an_unconfirmed_run_is_not_settled_before_it_was_asked(self, scene):
        scene.begin()
        scene.hear(Finished("run", 1, "completed", "1"))
        (ending,) = scene.settler.endings
        scene.keeper.unconfirmed.add("run")
        assert not scene.executions.may_settle(ending)
        scene.keeper.unconfirmed.clear()
        assert scene.executions.may_settle(ending)


class TestDeadlines:
    def test_a_run_claimed_after_its_deadline_is_settled_without_a_worker(self, scene):
        scene.clock.set(500)
        scene.begin(deadline_at_ms=CLAIMED_AT_MS)
        assert scene.crew.sent == []
        assert scene.outcomes == [Interrupted("deadline_passed")]

    def test_a_handler_is_stopped_at_the_deadline_and_not_before(self, scene):
        scene.clock.set(500)
        scene.begin(deadline_at_ms=CLAIMED_AT_MS + 1_000)
        assert scene.executions.next_deadline_in_ms() == 1_000
        scene.clock.set(1_499)
        scene.executions.enforce_stops()
        assert scene.crew.sent == [(0, Start("run", 1, 0))]
        scene.clock.set(1_500)
        scene.executions.enforce_stops()
        assert scene.crew.sent[1:] == [(0, Stop("run", 1, "deadline_passed"))]

    def test_a_deaf_handler_is_interrupted_after_the_grace_and_killed_after_that(self, scene):
        scene.clock.set(500)
        scene.begin(deadline_at_ms=CLAIMED_AT_MS + 1_000)
        process = scene.place.process
        scene.clock.set(1_500)
        scene.executions.enforce_stops()
        scene.clock.set(1_500 + GRACE_MS)
        scene.executions.enforce_stops()
        assert process.signals == ["TERM"]
        scene.clock.set(1_500 + GRACE_MS + 1_000)
        scene.executions.enforce_stops()
        assert process.signals == ["TERM", "KILL"]
        scene.die()
        assert scene.outcomes == [Interrupted("deadline_passed")]

    def test_what_was_completed_before_the_stop_arrived_stays_completed(self, scene):
        scene.clock.set(500)
        scene.begin(deadline_at_ms=CLAIMED_AT_MS + 1_000)
        scene.clock.set(1_600)
        scene.executions.enforce_stops()
        scene.hear(Finished("run", 1, "completed", "1"))
        assert scene.outcomes == [Completed("1")]

    def test_a_request_to_cancel_comes_before_a_deadline(self, scene):
        scene.clock.set(500)
        scene.begin(requested_at_ms=7, deadline_at_ms=CLAIMED_AT_MS)
        assert scene.outcomes == [Interrupted("cancelled")]


class TestRecycling:
    def settle(self, scene, run_id):
        scene.begin(run_id)
        scene.hear(Finished(run_id, 1, "completed", "1"))
        scene.executions.settled([Settlement(scene.settler.endings[-1], "completed")])

    def test_a_worker_is_dismissed_after_its_last_run_and_not_before(self, scene):
        scene.executions.recycle = RecycleRule(most_runs=2)
        self.settle(scene, "a")
        assert scene.crew.dismissed == []
        self.settle(scene, "b")
        assert scene.crew.dismissed == [0]
        assert scene.crew.sent[-1] == (0, Settled("b", 1))

    def test_a_worker_that_holds_too_much_is_dismissed(self, scene):
        scene.executions.recycle = RecycleRule(most_mib=1)
        self.settle(scene, "a")
        scene.place.process.held_bytes = 2 * MIB
        self.settle(scene, "b")
        assert scene.crew.dismissed == [0]
