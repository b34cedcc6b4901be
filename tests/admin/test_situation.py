import os
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore import OwnerId, conf
from django_runstore.admin import situation
from django_runstore.admin.situation import SituationKind, situation_of
from django_runstore.handlers.registry import Handler, registry
from django_runstore.models import Run
from django_runstore.process_identity import host_scope
from django_runstore.services import RunStore
from django_runstore.testing import FakeClock
from django_runstore.testing.factories import RunFactory
from tests.supervision.sweeping import gone_pid

pytestmark = pytest.mark.django_db

START = 1_000_000_000
OWNER = OwnerId("web-1", 4102, "9f3a61c2")
STALE_AFTER = 30_000


@pytest.fixture
def clock(monkeypatch):
    clock = FakeClock(START)
    monkeypatch.setattr(situation, "clock_for", lambda _: clock)
    return clock


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Know one handler, whatever the tests' apps have."""
    monkeypatch.setattr(registry, "_handlers", {"known": Handler("known", print)})


@pytest.fixture
def tell(clock):
    """The kind, the words and whether somebody is needed."""

    def of(run):
        found = situation_of(Run.objects.get(pk=run.pk), "default")
        return found.kind, str(found), found.needs_attention

    return of


@pytest.fixture
def make(clock):
    return lambda **options: RunFactory(clock=clock, **options)


def set_columns(run, **columns):
    Run.unguarded.filter(pk=run.pk).update(**columns)


def dead():
    return OwnerId(host_scope(), gone_pid(), "t1-0123456789abcdef")


def alive():
    return OwnerId(host_scope(), os.getppid(), "u-0123456789abcdef")


class TestEnded:
    @pytest.mark.parametrize(
        ("status", "word"),
        [("completed", "Completed"), ("failed", "Failed"), ("cancelled", "Cancelled")],
    )
    def test_an_ended_run_says_how_and_when(self, tell, make, clock, status, word):
        run = make(status=status)
        clock.advance(3_000)
        assert tell(run) == ("ended", f"{word} 1970-01-12 13:46:40.000 (3.0 s ago).", False)


class TestRunning:
    def test_a_run_that_beats_and_advances(self, tell, make, clock):
        run = make(running=True, owner=OWNER)
        set_columns(run, progressed_at_ms=START - 2_000)
        clock.advance(400)
        assert tell(run) == (
            "advancing",
            (
                "Running on web-1 pid 4102 (9f3a61c2): last heartbeat 0.4 s ago, "
                "last advanced 2.4 s ago."
            ),
            False,
        )

    def test_a_run_that_has_not_reported_progress_yet_is_not_accused(self, tell, make):
        kind, words, needs_attention = tell(make(running=True))
        assert (kind, needs_attention) == ("advancing", False)
        assert "it has reported no progress yet" in words

    @pytest.mark.parametrize("column", ["progressed_at_ms", "started_at_ms"])
    @pytest.mark.parametrize(("silent_ms", "kind"), [(0, "advancing"), (1, "not_advancing")])
    def test_a_run_that_beats_but_does_not_advance(self, tell, make, column, silent_ms, kind):
        run = make(running=True, owner=OWNER)
        quiet_after_ms = conf.current().admin_quiet_after_ms
        set_columns(run, **{column: START - quiet_after_ms - silent_ms})
        found, words, needs_attention = tell(run)
        assert (found, needs_attention) == (kind, kind == "not_advancing")
        assert ("its work may be stuck" in words) == (kind == "not_advancing")

    def test_a_stale_owner_whose_process_lives_is_in_doubt_and_it_says_why(self, tell, make, clock):
        run = make(running=True, owner=alive())
        clock.advance(STALE_AFTER + 1)
        kind, words, needs_attention = tell(run)
        assert (kind, needs_attention) == ("stale_in_doubt", True)
        assert "was last heard of 30.0 s ago but is not provably dead" in words
        assert "its process exists on this host; it may be stopped, hung or cut off." in words

    def test_a_heartbeat_that_is_just_not_stale_is_no_matter(self, tell, make, clock):
        run = make(running=True)
        clock.advance(STALE_AFTER)
        assert tell(run)[0] == "advancing"

    def test_a_stale_owner_that_is_gone_says_on_what_grounds(self, tell, make, clock):
        run = make(running=True, owner=dead())
        clock.advance(STALE_AFTER + 1)
        kind, words, needs_attention = tell(run)
        assert (kind, needs_attention) == ("stale_and_gone", True)
        assert f"process {run.owner_pid} on" in words
        assert "no longer exists" in words
        # Two intervals of a second each.
        assert "once it has itself seen that for 2.0 s" in words

    def test_a_takeover_names_the_claimant(self, tell, make, clock):
        run = make(running=True, owner=OWNER)
        clock.advance(STALE_AFTER + 1)
        set_columns(
            run,
            claim_host_id="web-2",
            claim_pid=7,
            claim_nonce="abc",
            claimed_at_ms=START + STALE_AFTER,
        )
        kind, words, needs_attention = tell(run)
        assert (kind, needs_attention) == ("being_taken_over", False)
        assert "web-2 pid 7 (abc) claimed it 0.0 s ago to take it over" in words


class TestClaimed:
    def test_a_fresh_claim_names_who_and_since_when(self, tell, make, clock):
        run = make(claimed=True, owner=OWNER)
        clock.advance(300)
        assert tell(run) == (
            "claimed",
            "Claimed by web-1 pid 4102 (9f3a61c2) 0.3 s ago, which is about to become its owner.",
            False,
        )

    @pytest.mark.parametrize(
        ("claimant", "kind", "words"),
        [
            (dead, "claim_abandoned", "until it is released"),
            (alive, "claim_in_doubt", "its process exists on this host"),
        ],
    )
    def test_a_stale_claim_says_whether_its_claimant_is_gone(
        self, tell, make, clock, claimant, kind, words
    ):
        run = make(claimed=True, owner=claimant())
        clock.advance(STALE_AFTER + 1)
        found, said, needs_attention = tell(run)
        assert (found, needs_attention) == (kind, True)
        assert words in said


class TestNotRunning:
    @pytest.mark.parametrize("reason", ["sleep", "timer"])
    def test_a_sleeping_run_says_until_when(self, tell, make, reason):
        run = make(suspended=True)
        wakes = START + 60_000
        set_columns(run, waiting_reason=reason, waiting_wake_at_ms=wakes, available_at_ms=wakes)
        assert tell(run) == (
            "sleeping",
            "Sleeping until 1970-01-12 13:47:40.000 (in 60.0 s).",
            False,
        )

    def test_a_run_that_waits_for_somebody_says_for_what_and_how_long(self, tell, make):
        run = make(suspended=True)
        set_columns(run, waiting_reason="approval", available_at_ms=None)
        assert tell(run) == (
            "waiting",
            "Waiting for approval, with no time at which it goes on by itself.",
            True,
        )
        wakes = START + 60_000
        set_columns(run, waiting_wake_at_ms=wakes, available_at_ms=wakes)
        assert tell(run)[1] == (
            "Waiting for approval, until 1970-01-12 13:47:40.000 (in 60.0 s) at the latest."
        )

    def test_a_wait_that_is_over_is_a_wait_for_a_worker(self, tell, make):
        run = make(suspended=True, handler="known")
        set_columns(run, waiting_reason="approval", available_at_ms=START)
        assert tell(run)[0] == "waiting_for_worker"

    def test_a_parked_run_needs_somebody(self, tell, make):
        run = make(suspended=True)
        set_columns(run, available_at_ms=None)
        kind, words, needs_attention = tell(run)
        assert (kind, needs_attention) == ("parked", True)
        assert "until somebody wakes it" in words

    def test_a_delayed_run_says_when_it_is_due(self, tell, make):
        run = make(handler="known", available_at_ms=START + 7_200_000)
        assert tell(run) == (
            "not_yet_due",
            "Not due before 1970-01-12 15:46:40.000 (in 2 h).",
            False,
        )

    def test_a_run_without_a_handler_is_for_a_host_of_its_own(self, tell, make):
        assert tell(make())[0] == "host_of_its_own"

    def test_a_handler_that_is_not_installed_here_is_named(self, tell, make, clock):
        run = make(handler="un<known>")
        kind, words, needs_attention = tell(run)
        assert (kind, needs_attention) == ("handler_missing", False)
        assert "this process has no handler “un<known>”" in words
        clock.advance(situation.OVERDUE_AFTER_MS + 1)
        assert tell(run)[2]

    def test_a_run_whose_concurrency_key_is_in_use_says_by_how_many(self, tell, make):
        waiting = make(handler="known")
        set_columns(waiting, concurrency_key="tenant-7")
        assert tell(waiting)[0] == "waiting_for_worker"
        for _ in range(2):
            set_columns(make(running=True), concurrency_key="tenant-7")
        kind, words, _ = tell(waiting)
        assert kind == "concurrency_limit"
        assert "2 running runs have the concurrency key “tenant-7” too" in words

    def test_a_due_run_waits_for_a_worker_of_its_queue(self, tell, make, clock):
        run = make(handler="known", queue="slow")
        clock.advance(1_500)
        assert tell(run) == (
            "waiting_for_worker",
            "Waiting for a worker of queue “slow”, due for 1.5 s.",
            False,
        )

    def test_a_run_that_nobody_takes_asks_for_a_supervisor(self, tell, make, clock):
        run = make(handler="known")
        clock.advance(situation.OVERDUE_AFTER_MS + 1)
        _, words, needs_attention = tell(run)
        assert needs_attention
        assert "does a supervisor serve that queue?" in words


class TestBesides:
    def test_a_request_to_stop_is_told_with_whether_the_owner_knows(self, tell, make, clock):
        run = make(running=True, owner=OWNER)
        store = RunStore(clock=clock)
        store.request_cancel(run.pk)
        clock.advance(4_000)
        words = "It was asked to stop 4.0 s ago; its owner has not acknowledged that."
        assert tell(run)[1].endswith(words)
        store.acknowledge_cancel(run.pk, OWNER, fence=run.owner_fence)
        assert tell(run)[1].endswith("its owner has acknowledged that.")

    def test_a_request_to_a_run_that_nobody_owns_waits_for_the_next_owner(self, tell, make, clock):
        run = make(handler="known")
        RunStore(clock=clock).request_cancel(run.pk)
        assert tell(run)[1].endswith("asked to stop 0.0 s ago; whoever takes it next cancels it.")

    def test_deadline_failures_and_recoveries_are_told(self, tell, make):
        run = make(running=True)
        set_columns(run, deadline_at_ms=START - 60_000, failure_count=1, recovery_count=2)
        assert tell(run)[1].endswith(
            "Its deadline passed 60.0 s ago. It has failed 1 time. "
            "It has lost its worker or host 2 times since it last advanced."
        )


def test_every_kind_is_told_by_some_test():
    text = Path(__file__).read_text(encoding="utf-8")
    assert [kind for kind in SituationKind if f'"{kind}"' not in text] == []


def test_it_takes_at_most_two_queries(make, clock):
    run = make(running=True, owner=dead())
    RunStore(clock=clock).request_cancel(run.pk)
    clock.advance(STALE_AFTER + 1)
    read = Run.objects.defer("state_json", "cancel_acknowledgement_json").get(pk=run.pk)
    with CaptureQueriesContext(connection) as queries:
        situation_of(read, "default")
    assert len(queries) <= 2
    assert conf.current().lease.stale_after_ms == STALE_AFTER


def test_an_owner_that_would_turn_the_line_around_is_spelled_out(tell, make):
    run = make(running=True, owner=OwnerId("\u202ehost", 1, "n"))
    assert "\u202e" not in tell(run)[1]
