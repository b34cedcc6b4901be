from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore import OwnerId, conf
from django_runstore.admin.situation import SituationKind, situation_of
from django_runstore.models import Run
from django_runstore.services import RunStore
from tests.admin.situation.sample import OWNER, STALE_AFTER, START, dead, set_columns

pytestmark = pytest.mark.django_db


class TestEnded:
    @pytest.mark.parametrize(
        ("status", "word"),
        [("completed", "Completed"), ("failed", "Failed"), ("cancelled", "Cancelled")],
    )
    def test_an_ended_run_says_how_and_when(self, tell, make, clock, status, word):
        run = make(status=status)
        clock.advance(3_000)
        assert tell(run) == ("ended", f"{word} 1970-01-12 13:46:40.000 (3.0 s ago).", False)


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
    tests = Path(__file__).parent.glob("test_*.py")
    text = "".join(path.read_text(encoding="utf-8") for path in tests)
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
