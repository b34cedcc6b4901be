"""What the pulse of many runs costs, and how long its gaps are over a slow database."""

import itertools
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from django_runstore.durations import LeaseDurations
from django_runstore.models import Run
from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.supervision.lease_keeper import LeaseKeeper
from tests.supervision.processes import until

pytestmark = pytest.mark.django_db(transaction=True)

OWNER = OwnerId("host", 1, "nonce")
LATENCY_S = 0.5
PRODUCTION = LeaseDurations()


class WatchedStore(RunStore):
    """The real store; every statement of a pulse is written down, and may take its time."""

    def __init__(self, latency_s=0.0):
        super().__init__()
        self.pulses = []
        self._latency_s = latency_s

    def heartbeat_many(self, *args, **kwargs):
        made = []

        def execute(run, sql, params, many, context):
            made.append(sql)
            time.sleep(self._latency_s)
            return run(sql, params, many, context)

        with connection.execute_wrapper(execute):
            answers = super().heartbeat_many(*args, **kwargs)
            # The commit is a round trip too, and no statement.
            time.sleep(self._latency_s)
        self.pulses.append(made)
        return answers


@contextmanager
def pulse_of(count: int, store: RunStore) -> Iterator[list[object]]:
    """Own so many runs and beat for them; gives what the keeper complains of."""
    for number in range(count):
        store.create(f"run-{number:04}", "{}", handler="h")
    told: list[object] = []
    keeper = LeaseKeeper(
        store,
        OWNER,
        PRODUCTION,
        on_lost=lambda *news: told.append(news),
        on_lapsed=lambda *news: told.append(news),
    )
    for claimed in store.claim_many(OWNER, count):
        keeper.hold(claimed.run.run_id, claimed.fence)
    keeper.start()
    try:
        yield told
    finally:
        keeper.stop()


@pytest.mark.parametrize("count", [1, 10, 200])
def test_an_interval_costs_one_update_for_however_many_runs(count):
    store = WatchedStore()
    with pulse_of(count, store) as told:
        until(lambda: len(store.pulses) >= 2)
    assert told == []
    for made in store.pulses[:2]:
        assert [sql for sql in made if "heartbeat_at_ms" in sql] == made[-1:]
        # The other two prepare the transaction, however many runs there are.
        assert len(made) == 3, made


@pytest.mark.timeout(120)
def test_case_18_a_thousand_runs_at_500_ms_of_latency():
    store = WatchedStore(LATENCY_S)
    stamps = set()

    def enough():
        seen = set(Run.objects.values_list("heartbeat_at_ms", flat=True))
        # Committed together: whoever reads sees one stamp, or that of the claim.
        assert len(seen) == 1
        stamps.update(seen)
        return len(stamps) >= 5

    with pulse_of(1_000, store) as told:
        until(enough, 60)
    assert told == []
    ordered = sorted(stamps)
    gaps = [later - earlier for earlier, later in itertools.pairwise(ordered)]
    assert max(gaps) <= math.floor(PRODUCTION.stale_after_ms / 3)
    # It was slow indeed: no gap is shorter than the statements of one pulse took.
    assert min(gaps[1:]) >= LATENCY_S * 1_000 * len(store.pulses[0])


def test_case_18_a_pulse_too_slow_for_its_interval_is_warned_of_once(caplog):
    # Four round trips take more than three intervals.
    store = WatchedStore(0.8)
    with pulse_of(1, store):
        until(lambda: len(store.pulses) >= 3)
    warnings = [record for record in caplog.records if record.message == "run pulse was late"]
    assert [record.runs for record in warnings] == [1]
    assert warnings[0].late_ms > PRODUCTION.heartbeat_interval_ms
