import pytest

from django_runstore.admin.situation.not_running import OVERDUE_AFTER_MS
from django_runstore.models import SupervisorProcess
from tests.admin.situation.sample import OWNER, STALE_AFTER, START, alive, dead, set_columns

pytestmark = pytest.mark.django_db


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
        clock.advance(OVERDUE_AFTER_MS + 1)
        assert tell(run)[2]

    def test_a_state_of_a_newer_release_waits_for_its_code(self, tell, make):
        run = make(handler="known")
        set_columns(run, state_version=3)
        kind, words, needs_attention = tell(run)
        assert (kind, needs_attention) == ("state_too_new", False)
        assert "its state has version 3 and this process reads up to 1" in words

    def test_a_run_whose_concurrency_key_is_in_use_says_by_how_many(self, tell, make):
        waiting = make(handler="known")
        set_columns(waiting, concurrency_key="tenant-7", concurrency_limit=2)
        for _ in range(2):
            assert tell(waiting)[0] == "waiting_for_worker"
            set_columns(make(running=True), concurrency_key="tenant-7")
        kind, words, _ = tell(waiting)
        assert kind == "concurrency_limit"
        assert "2 runs with the key “tenant-7” are live, and 2 may be" in words

    def test_a_due_run_waits_for_a_worker_of_its_queue(self, tell, make, clock):
        run = make(handler="known", queue="slow")
        clock.advance(1_500)
        assert tell(run) == (
            "waiting_for_worker",
            "Waiting for a worker of queue “slow”, due for 1.5 s.",
            False,
        )

    @pytest.mark.parametrize(
        ("queues", "pulsed_ms_ago", "is_draining", "serves"),
        [
            ("null", 0, False, True),
            ('["slow","fast"]', 0, False, True),
            ('["fast"]', 0, False, False),
            ("null", 0, True, False),
            # Stale after 30 s, and a word every 10 s.
            ("null", 40_000, False, True),
            ("null", 40_001, False, False),
        ],
    )
    def test_a_run_that_nobody_takes_says_whether_a_supervisor_serves_its_queue(
        self, tell, make, clock, queues, pulsed_ms_ago, is_draining, serves
    ):
        run = make(handler="known", queue="slow")
        clock.advance(OVERDUE_AFTER_MS + 1)
        SupervisorProcess.unguarded.create(
            host_id="h",
            pid=1,
            nonce="n",
            started_at_ms=0,
            pulsed_at_ms=int(clock.now_ms()) - pulsed_ms_ago,
            version="1",
            queues_json=queues,
            capacity=4,
            is_draining=is_draining,
        )
        _, words, needs_attention = tell(run)
        assert needs_attention
        assert ("1 supervisor at work serves that queue" in words) == serves
        assert ("No supervisor that is at work serves that queue." in words) != serves

    def test_a_run_that_has_just_become_due_asks_for_no_supervisor(self, tell, make, clock):
        run = make(handler="known")
        clock.advance(OVERDUE_AFTER_MS)
        assert "supervisor" not in tell(run)[1]
