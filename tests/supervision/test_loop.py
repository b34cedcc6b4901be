from types import SimpleNamespace

import pytest

from django_runstore.supervision import loop as loop_module
from django_runstore.supervision.loop import EndOptions, ExitStatus, Loop
from django_runstore.supervision.ownership_news import OwnershipNews
from django_runstore.testing import FakeClock


class FakeCrew:
    failed_starts = 0

    def __init__(self, clock):
        self.clock = clock
        self.places = ["place"]
        self.refills = 0
        self.dismissed = []
        self.naps = []

    def listen(self, timeout_ms):
        self.naps.append(timeout_ms)
        self.clock.advance(max(1.0, timeout_ms))
        return []

    def next_start_in_ms(self):
        return float("inf")

    def refill(self):
        self.refills += 1

    def dismiss(self, place):
        self.dismissed.append(place)


class FakeExecutions:
    """As many runs under way as the test says; a stop is written down."""

    def __init__(self):
        self.busy = []
        self.stops = []
        self.lost = []
        self.lapsed = []

    def __len__(self):
        return len(self.busy)

    def under_way(self):
        return list(self.busy)

    def idle_places(self):
        return [] if self.busy else ["place"]

    def next_deadline_in_ms(self):
        return float("inf")

    def enforce_stops(self):
        pass

    def settled(self, settlements):
        pass

    def may_settle(self, ending):
        return True

    def stop(self, execution, reason, *, grace_ms, kill_after_ms):
        self.stops.append((execution, reason, grace_ms, kill_after_ms))

    def ownership_lost(self, run_id, fence, *, kill_after_ms):
        self.lost.append((run_id, fence, kill_after_ms))

    def ownership_lapsed(self, run_id, fence):
        self.lapsed.append((run_id, fence))


class FakeSettler:
    backoff = SimpleNamespace(remaining_ms=lambda: 0)
    waiting = 0

    def __len__(self):
        return self.waiting

    def attempt(self, *, may_settle):
        return []


class FakeStalls:
    looks = 0
    next_look_ms = float("inf")

    def look(self):
        self.looks += 1

    def next_look_in_ms(self):
        return self.next_look_ms


class FakeRounds:
    has_looked = found_nothing = due_is_held = False

    def __init__(self):
        self.claims = 0
        self.hastened = []

    def claim(self, places):
        self.claims += 1

    def claim_soon(self):
        self.hastened.append("claim")

    def look_soon(self):
        self.hastened.append("look")

    def others_hold_due(self):
        return self.due_is_held

    def next_sweep_in_ms(self):
        return 1_000.0

    def look_for_requests(self):
        pass

    def look_for_the_dead(self):
        pass

    def next_claim_in_ms(self):
        return 500.0

    def next_look_in_ms(self):
        return 500.0


class FakeWakeUps:
    """What the test says the database has said."""

    def __init__(self):
        self.claimable = self.cancel_requested = False

    def take_claimable(self):
        taken, self.claimable = self.claimable, False
        return taken

    def take_cancel_requested(self):
        taken, self.cancel_requested = self.cancel_requested, False
        return taken


class Scene:
    def __init__(self, **options):
        self.clock = FakeClock(0)
        self.crew = FakeCrew(self.clock)
        self.executions = FakeExecutions()
        self.settler = FakeSettler()
        self.rounds = FakeRounds()
        self.signals = SimpleNamespace(count=0)
        self.keeper = SimpleNamespace(is_alive=lambda: True)
        self.news = OwnershipNews(lambda: None)
        self.wake_ups = FakeWakeUps()
        self.touched = []
        self.announced = []
        self.stalls = FakeStalls()
        self.loop = Loop(
            EndOptions(grace_ms=4_000, **options),
            crew=self.crew,
            executions=self.executions,
            keeper=self.keeper,
            settler=self.settler,
            rounds=self.rounds,
            stalls=self.stalls,
            signals=self.signals,
            news=self.news,
            wake_ups=self.wake_ups,
            lock=SimpleNamespace(touch=lambda: self.touched.append(1)),
            on_stopping=lambda: self.announced.append(self.rounds.claims),
        )

    def turn(self, times=1):
        for _ in range(times):
            self.loop._turn()


@pytest.fixture
def make_scene(monkeypatch):
    def make(**options):
        scene = Scene(**options)
        monkeypatch.setattr(loop_module, "boottime_ms", scene.clock.now_ms)
        return scene

    return make


def test_a_first_signal_drains_and_claims_nothing_more(make_scene):
    scene = make_scene()
    scene.executions.busy = ["run"]
    scene.turn()
    claims = scene.rounds.claims
    scene.signals.count = 1
    scene.turn(3)
    assert scene.executions.stops == [("run", "draining", 4_000, 1_000)]
    assert scene.rounds.claims == claims
    assert scene.loop._status() is None


@pytest.mark.parametrize("signals", [1, 2])
def test_it_is_announced_that_nothing_more_is_claimed(make_scene, signals):
    scene = make_scene()
    scene.turn()
    assert scene.announced == []
    scene.signals.count = signals
    scene.turn()
    assert len(scene.announced) == 1


def test_a_signal_is_taken_before_what_workers_say_that_got_it_too(make_scene):
    scene = make_scene()
    scene.executions.busy = ["run"]
    order = []
    scene.executions.hear = lambda _: order.append("heard")
    scene.executions.stop = lambda *_, **__: order.append("stopped")
    scene.crew.listen = lambda _: ["a report"]
    scene.signals.count = 1
    scene.turn()
    assert order == ["stopped", "heard"]


def test_a_second_signal_stops_without_patience(make_scene):
    scene = make_scene()
    scene.executions.busy = ["run"]
    for count in (1, 2):
        scene.signals.count = count
        scene.turn()
    assert scene.executions.stops[-1] == ("run", "stopping", 0, 0)


def test_two_signals_at_once_are_two(make_scene):
    scene = make_scene()
    scene.executions.busy = ["run"]
    scene.signals.count = 2
    scene.turn()
    assert scene.executions.stops == [("run", "stopping", 0, 0)]


def test_it_is_over_when_everything_is_given_back(make_scene):
    scene = make_scene()
    scene.signals.count = 1
    scene.turn()
    assert scene.loop._status() is ExitStatus.DONE
    assert scene.crew.dismissed == ["place"]


def test_what_the_database_does_not_take_in_time_is_left_to_others(make_scene):
    scene = make_scene()
    scene.settler.waiting = 1
    scene.signals.count = 1
    assert scene.loop.run() is ExitStatus.UNSETTLED
    # The grace and, past that, the lease; 30 s by default.
    assert 34_000 <= scene.clock.now_ms() < 36_000


def test_a_pulse_that_ends_by_itself_stops_everything(make_scene):
    scene = make_scene()
    scene.executions.busy = ["run"]
    scene.keeper.is_alive = lambda: False
    scene.turn(2)
    assert scene.executions.stops == [("run", "stopping", 0, 0)]
    scene.executions.busy = []
    assert scene.loop._status() is ExitStatus.PULSE_DIED


def test_draining_ends_when_nothing_was_found_and_nothing_is_under_way(make_scene):
    scene = make_scene(drain=True)
    assert scene.loop._status() is None
    scene.rounds.found_nothing = True
    assert scene.loop._status() is ExitStatus.DONE
    scene.executions.busy = ["run"]
    assert scene.loop._status() is None


@pytest.mark.parametrize("mode", ["drain", "once"])
def test_workers_that_cannot_start_end_a_run_to_completion(make_scene, mode):
    scene = make_scene(**{mode: True})
    scene.crew.failed_starts = 3
    assert scene.loop._status() is ExitStatus.NO_WORKERS


def test_workers_that_cannot_start_do_not_end_a_service(make_scene):
    scene = make_scene()
    scene.crew.failed_starts = 1_000
    assert scene.loop._status() is None


def test_news_of_the_keeper_are_acted_on(make_scene):
    scene = make_scene()
    scene.news.lost("a", 1)
    scene.news.lapsed("b", 2, 19_000)
    scene.turn()
    assert scene.executions.lost == [("a", 1, 1_000)]
    assert scene.executions.lapsed == [("b", 2)]


def test_it_sleeps_until_there_is_something_to_do(make_scene):
    scene = make_scene()
    scene.turn()
    assert scene.crew.naps == [500]


def test_what_waits_to_be_settled_is_looked_at_again_soon(make_scene):
    scene = make_scene()
    scene.settler.waiting = 1
    scene.turn()
    assert scene.crew.naps == [loop_module.SHORTEST_NAP_MS]


def test_the_lock_file_is_marked_as_in_use_now_and_then(make_scene):
    scene = make_scene()
    scene.turn()
    assert scene.touched == []
    scene.loop._lock_timer.expire()
    scene.turn(2)
    assert scene.touched == [1]


def test_notices_hasten_what_they_are_about(make_scene):
    scene = make_scene()
    scene.turn()
    assert scene.rounds.hastened == []
    scene.wake_ups.claimable = True
    scene.turn()
    scene.wake_ups.cancel_requested = True
    scene.turn(2)
    assert scene.rounds.hastened == ["claim", "look"]


def test_an_idle_loop_turns_no_more_often_than_something_is_due(make_scene):
    scene = make_scene()
    scene.executions.busy = ["run"]
    scene.rounds.next_look_in_ms = lambda: 60_000.0
    turns = 0
    while scene.clock.now_ms() < 60_000:
        scene.turn()
        turns += 1
    # What is due once per second is the sweep.
    assert turns == 60


def test_whatever_is_not_due_for_long_the_pulse_is_looked_after(make_scene):
    scene = make_scene()
    scene.executions.busy = ["run"]
    scene.rounds.next_look_in_ms = scene.rounds.next_sweep_in_ms = lambda: 60_000.0
    scene.turn()
    assert scene.crew.naps == [1_500]


def test_a_signal_that_comes_during_a_turn_keeps_that_turn_from_claiming(make_scene):
    scene = make_scene()

    def interrupted():
        scene.signals.count += 1

    scene.rounds.look_for_the_dead = interrupted
    scene.turn(5)
    assert scene.rounds.claims == 0
    assert len(scene.announced) == 1


def test_what_a_signal_during_the_claim_comes_too_late_for_is_stopped_like_the_rest(make_scene):
    scene = make_scene()

    def claim(_places):
        scene.rounds.claims += 1
        scene.signals.count += 1
        scene.executions.busy = ["run"]

    scene.rounds.claim = claim
    scene.turn(5)
    assert scene.rounds.claims == 1
    assert scene.executions.stops == [("run", "draining", 4_000, loop_module.KILL_AFTER_MS)]


def test_a_drain_waits_for_what_others_have_locked(make_scene):
    scene = make_scene(drain=True)
    scene.rounds.found_nothing = scene.rounds.due_is_held = True
    assert scene.loop._status() is None
    scene.rounds.due_is_held = False
    assert scene.loop._status() is ExitStatus.DONE
