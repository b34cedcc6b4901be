"""A supervisor with nothing to do leaves the database and the processor alone."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.supervision import pauses
from django_runstore.supervision.crew import Place
from django_runstore.supervision.rounds import Rounds
from django_runstore.supervision.settlement import Settler
from django_runstore.supervision.sweeper import Sweeper
from tests.supervision.test_rounds import FakeExecutions, FakeKeeper

OWNER = OwnerId("host", 1, "u-0123456789abcdef")
MINUTE_MS = 60_000


@pytest.fixture
def hands(monkeypatch):
    class Hands:
        ms = 0.0

    monkeypatch.setattr(pauses, "boottime_ms", lambda: Hands.ms)
    # Without jitter, so that there is something to count.
    monkeypatch.setattr(pauses.random, "uniform", lambda least, most: (least + most) / 2)
    return Hands


@pytest.mark.django_db(transaction=True)
def test_an_idle_minute_at_default_settings_costs_few_statements(settings, hands, monkeypatch):
    settings.RUNSTORE = {"CLOCK": "django_runstore.clocks.SystemClock"}
    store = RunStore()
    claims = []
    rounds = Rounds(
        store,
        OWNER,
        None,
        executions=FakeExecutions(),
        keeper=FakeKeeper(),
        settler=Settler(store, OWNER),
        sweep=Sweeper("default", OWNER, store.clock).sweep_once,
    )
    claim_many = RunStore.claim_many
    monkeypatch.setattr(
        RunStore,
        "claim_many",
        lambda *args, **options: claims.append(hands.ms) or claim_many(*args, **options),
    )
    turns = 0
    with CaptureQueriesContext(connection) as queries:
        while hands.ms < MINUTE_MS:
            rounds.look_for_the_dead()
            rounds.claim([Place(0)])
            hands.ms += min(rounds.next_claim_in_ms(), rounds.next_sweep_in_ms())
            turns += 1
    # 0, 0.5, 1.25, 2.4, 4.1 and then every two seconds; the dead are looked for every second.
    assert len(claims) == 5 + (60_000 - 4_063) // 2_000
    assert turns == pytest.approx(60 + len(claims), abs=2)
    # Each look is one statement in a transaction; PostgreSQL is told in one more how long to
    # wait for locks. Sixty sweeps look at claims and at runs, and six of them for strays.
    looks = len(claims) + 60 * 2 + 6
    assert len(queries) <= looks * 4 + len(claims)
