import pytest

from django_runstore import conf
from django_runstore.handlers.registry import Handler, registry
from tests.admin.situation.sample import OWNER, STALE_AFTER, START, alive, dead, set_columns

pytestmark = pytest.mark.django_db


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

    @pytest.mark.parametrize(("silent_ms", "kind"), [(500, "advancing"), (501, "not_advancing")])
    def test_a_handler_says_how_long_it_may_go_without_progress(
        self, tell, make, monkeypatch, silent_ms, kind
    ):
        patient = Handler("patient", print, no_progress_after_ms=500)
        monkeypatch.setattr(registry, "get", {"patient": patient}.get)
        run = make(running=True, owner=OWNER, handler="patient")
        set_columns(run, progressed_at_ms=START - silent_ms)
        assert tell(run)[0] == kind

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
