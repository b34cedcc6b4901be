"""Pulses over the real store: locked rows, locked tables, lost connections, stopped processes."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection, connections, transaction

from django_runstore.clocks import boottime_ms
from django_runstore.durations import LeaseDurations
from django_runstore.evidence import LivenessEvidence
from django_runstore.models import Run
from django_runstore.outcomes import Claimed, Transitioned
from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.supervision import Pulse
from django_runstore.supervision.lease_keeper import LeaseKeeper
from django_runstore.supervision.pulse import PulseEnded
from django_runstore.testing import FakeClock
from django_runstore.testing.factories import RunFactory
from tests.supervision.fake_time import FakeCalls
from tests.supervision.locking import everything_locked

OWNER = OwnerId("host", 1, "nonce")
SOON_S = 30

# Nothing lapses while a test is looking.
PATIENT = LeaseDurations(heartbeat_interval_ms=50, stale_after_ms=600_000, skew_allowance_ms=100)
# Write tolerance 850 ms.
IMPATIENT = LeaseDurations(heartbeat_interval_ms=50, stale_after_ms=1_000, skew_allowance_ms=100)


def owned(**options) -> Run:
    return RunFactory(running=True, owner=OWNER, **options)


def heartbeat_of(run: Run) -> int | None:
    return Run.objects.values_list("heartbeat_at_ms", flat=True).get(pk=run.run_id)


def eventually(condition: Callable[[], object]) -> bool:
    give_up_at = time.monotonic() + SOON_S
    while time.monotonic() < give_up_at:
        if condition():
            return True
        time.sleep(0.01)
    return False


def moves(run: Run) -> bool:
    """Whether the run is beaten for from here on."""
    before = heartbeat_of(run)
    return eventually(lambda: heartbeat_of(run) != before)


# --- in fake time ------------------------------------------------------------------


class FlakyStore(RunStore):
    """The real store over a connection that is broken at times."""

    def __init__(self, clock: FakeClock, breaks: Callable[[float], bool]):
        super().__init__(clock=clock)
        self._breaks = breaks

    def heartbeat(self, *args, **kwargs):
        self._use_connection()
        return super().heartbeat(*args, **kwargs)

    def heartbeat_many(self, *args, **kwargs):
        self._use_connection()
        return super().heartbeat_many(*args, **kwargs)

    def reconfirm(self, *args, **kwargs):
        self._use_connection()
        return super().reconfirm(*args, **kwargs)

    def _use_connection(self) -> None:
        if self._breaks(self.clock.now_ms()):
            raise OperationalError("server closed the connection unexpectedly")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(0)


@pytest.fixture
def calls(clock) -> FakeCalls:
    return FakeCalls(clock)


def make_keeper(store, lease, **options) -> tuple[LeaseKeeper, list[tuple[object, ...]]]:
    told: list[tuple[object, ...]] = []
    keeper = LeaseKeeper(
        store,
        OWNER,
        lease,
        on_lost=lambda *news: told.append(("lost", *news)),
        on_lapsed=lambda *news: told.append(("lapsed", *news)),
        **options,
    )
    return keeper, told


@pytest.mark.conformance(49)
@pytest.mark.django_db
def test_a_pulse_beats_and_ends_when_the_run_is_suspended(clock, calls):
    run = owned(clock=clock)
    store = RunStore(clock=clock)
    beaten_at: list[int | None] = []

    def suspend() -> None:
        beaten_at.append(heartbeat_of(run))
        assert store.transition_owned(run.run_id, OWNER, "suspended") == Transitioned()

    calls.at(1_500, suspend)
    pulse = Pulse(store, run.run_id, OWNER, run.owner_fence, clock, background=calls)

    assert pulse.run() == "lost"
    assert beaten_at == [1_000]
    assert clock.now_ms() == 2_000


@pytest.mark.django_db
def test_a_pulse_under_an_old_fence_is_lost_though_the_owner_is_the_same(clock, calls):
    run = owned(clock=clock)
    store = RunStore(clock=clock)
    store.transition_owned(run.run_id, OWNER, "suspended")
    store.claim_and_own(run.run_id, store.get(run.run_id), OWNER)

    pulse = Pulse(store, run.run_id, OWNER, run.owner_fence, clock, background=calls)

    assert pulse.run() == "lost"


@pytest.mark.django_db
def test_a_database_that_is_away_for_less_than_the_tolerance_costs_no_run(clock, calls):
    runs = [owned(clock=clock) for _ in range(3)]
    store = FlakyStore(clock, breaks=lambda now_ms: 2_000 <= now_ms < 19_500)
    keeper, told = make_keeper(
        store, LeaseDurations(), background=calls, read_boottime_ms=clock.now_ms
    )
    for run in runs:
        keeper.hold(run.run_id, run.owner_fence)
    calls.at(60_500, keeper.stop)

    keeper.run()

    assert told == []
    assert [heartbeat_of(run) for run in runs] == [60_000] * 3


@pytest.mark.django_db
def test_a_database_that_is_away_for_longer_costs_all_runs_before_a_peer_may_take_them(
    clock, calls
):
    runs = [owned(clock=clock) for _ in range(2)]
    store = FlakyStore(clock, breaks=lambda now_ms: now_ms >= 2_000)
    keeper, told = make_keeper(
        store, LeaseDurations(), background=calls, read_boottime_ms=clock.now_ms
    )
    for run in runs:
        keeper.hold(run.run_id, run.owner_fence)
    calls.at(20_500, keeper.stop)

    keeper.run()

    assert told == [("lapsed", run.run_id, run.owner_fence, 19_000) for run in runs]
    assert [heartbeat_of(run) for run in runs] == [1_000] * 2


@pytest.mark.django_db
def test_a_pulse_over_a_database_that_is_away_for_longer_lapses(clock, calls):
    run = owned(clock=clock)
    store = FlakyStore(clock, breaks=lambda now_ms: now_ms >= 2_000)

    pulse = Pulse(store, run.run_id, OWNER, run.owner_fence, clock, background=calls)

    assert pulse.run() == "lapsed"
    assert clock.now_ms() == 20_000


@pytest.mark.django_db
def test_a_pending_takeover_wins_over_the_reconfirmation_of_a_stopped_owner(clock, calls):
    run = owned(clock=clock)
    store = RunStore(clock=clock)
    keeper, told = make_keeper(
        store, LeaseDurations(), background=calls, read_boottime_ms=clock.now_ms
    )
    keeper.hold(run.run_id, run.owner_fence)

    def stop_and_be_stolen_from() -> None:
        clock.set(60_000)
        steal(store, run, 60_000)

    calls.at(500, stop_and_be_stolen_from)
    calls.at(61_500, keeper.stop)
    keeper.run()

    assert told == [("lapsed", run.run_id, run.owner_fence, 60_000)]


# --- in real time ------------------------------------------------------------------


def lane_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("runstore-")]


@pytest.fixture
def no_threads_left(transactional_db: None) -> Iterator[None]:
    """Wait for abandoned calls, before the database is emptied under them."""
    yield
    assert eventually(lambda: not lane_threads())


@contextmanager
def beating(keeper: LeaseKeeper, *runs: Run) -> Iterator[None]:
    for run in runs:
        keeper.hold(run.run_id, run.owner_fence)
    keeper.start()
    try:
        yield
    finally:
        keeper.stop()


def steal(store: RunStore, run: Run, now_ms: int) -> None:
    thief = OwnerId("other host", 2, "nonce")
    evidence = LivenessEvidence(OWNER, now_ms, "lease-expired")
    stolen = store.steal(run.run_id, store.get(run.run_id), thief, now_ms, evidence)
    assert isinstance(stolen, Claimed)


@pytest.mark.postgres("locks rows, not the database")
@pytest.mark.usefixtures("no_threads_left")
def test_a_row_locked_by_an_open_transaction_does_not_stop_the_beat_of_the_others():
    locked, *others = [owned() for _ in range(4)]
    keeper, told = make_keeper(RunStore(), PATIENT)

    with beating(keeper, locked, *others):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT 1 FROM runstore_run WHERE run_id = %s FOR UPDATE", [locked.run_id]
            )
            before = heartbeat_of(locked)
            assert all(moves(run) and moves(run) for run in others)
            assert heartbeat_of(locked) == before
        assert moves(locked)
    assert told == []


@pytest.mark.usefixtures("no_threads_left")
def test_a_locked_table_for_less_than_the_tolerance_costs_no_run():
    run = owned()
    store, asked = RunStore(), threading.Event()
    heartbeat_many = store.heartbeat_many

    def watched(*args, **kwargs):
        asked.set()
        return heartbeat_many(*args, **kwargs)

    store.heartbeat_many = watched
    keeper, told = make_keeper(store, PATIENT)

    with beating(keeper, run):
        with everything_locked():
            asked.clear()
            assert asked.wait(SOON_S)
        assert moves(run)
    assert told == []


@pytest.mark.usefixtures("no_threads_left")
def test_a_locked_table_does_not_stall_the_deadline():
    run = owned()
    keeper, told = make_keeper(RunStore(), IMPATIENT)

    with beating(keeper, run), everything_locked():
        assert eventually(lambda: told)

    ((kind, run_id, fence, unconfirmed_ms),) = told
    assert (kind, run_id, fence) == ("lapsed", run.run_id, run.owner_fence)
    assert unconfirmed_ms >= 850


@pytest.mark.usefixtures("no_threads_left")
def test_a_locked_table_does_not_stall_the_deadline_of_a_single_pulse():
    run = owned()
    pulse = Pulse(RunStore(), run.run_id, OWNER, run.owner_fence, lease=IMPATIENT)

    with pulse.guarding() as guard, everything_locked():
        assert guard.stopped.wait(SOON_S)

    assert guard.reason == "lapsed"


@pytest.mark.postgres("a server that can end a connection")
@pytest.mark.usefixtures("no_threads_left")
def test_a_connection_that_the_server_ended_is_replaced():
    run = owned()
    keeper, told = make_keeper(RunStore(), PATIENT)

    with beating(keeper, run):
        assert moves(run)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert moves(run)
    assert told == []


@pytest.mark.postgres("a server that lists its connections")
@pytest.mark.usefixtures("no_threads_left")
def test_a_stopped_keeper_leaves_no_connection_behind():
    def others() -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                " AND backend_type = 'client backend'"
            )
            return cursor.fetchone()[0]

    before = others()
    run = owned()
    keeper, _ = make_keeper(RunStore(), PATIENT)
    with beating(keeper, run):
        assert moves(run)
        assert others() > before

    assert eventually(lambda: others() == before)


@pytest.mark.usefixtures("no_threads_left")
def test_work_on_an_event_loop_is_cancelled_when_its_run_is_taken_away():
    run = owned()
    store = RunStore()
    cancelled = []

    async def work():
        await store.atransition_owned(run.run_id, OWNER, "suspended", fence=run.owner_fence)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(run.run_id)
            raise

    async def guarded():
        try:
            await Pulse(store, run.run_id, OWNER, run.owner_fence, lease=PATIENT).aguard(work())
        finally:
            # Of the thread that asgiref keeps for the twins.
            await sync_to_async(connections.close_all)()

    with pytest.raises(PulseEnded) as ended:
        asyncio.run(guarded())

    assert ended.value.reason == "lost"
    assert cancelled == [run.run_id]


# --- a process that is stopped ------------------------------------------------------

KEEPER_PROGRAM = """
import json, logging, sys
import django
django.setup()
from django_runstore.durations import LeaseDurations
from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.supervision.lease_keeper import LeaseKeeper

def tell(*words):
    print(json.dumps(words), flush=True)

class Teller(logging.Handler):
    def emit(self, record):
        tell("logged", record.getMessage())

logger = logging.getLogger("django_runstore.supervision")
logger.addHandler(Teller())
logger.setLevel(logging.INFO)
run_id, fence, owner = json.loads(sys.argv[1])
keeper = LeaseKeeper(
    RunStore(),
    OwnerId(*owner),
    LeaseDurations(heartbeat_interval_ms=1_000, stale_after_ms=4_000, skew_allowance_ms=1_500),
    on_lost=lambda *news: tell("lost", *news),
    on_lapsed=lambda *news: tell("lapsed", *news),
)
keeper.hold(run_id, fence)
keeper.start()
sys.stdin.read()
keeper.stop()
"""


@contextmanager
def keeper_process(run: Run, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    owner = [OWNER.host_id, OWNER.pid, OWNER.nonce]
    process = subprocess.Popen(
        [sys.executable, "-c", KEEPER_PROGRAM, json.dumps([run.run_id, run.owner_fence, owner])],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.communicate()


@contextmanager
def stopped(process: subprocess.Popen[str]) -> Iterator[None]:
    """Stop a process for longer than its write tolerance of 1.5 seconds."""
    os.kill(process.pid, signal.SIGSTOP)
    until_ms = boottime_ms() + 2_000
    assert eventually(lambda: boottime_ms() > until_ms)
    yield
    os.kill(process.pid, signal.SIGCONT)


def first_of(process: subprocess.Popen[str], *wanted: str) -> str | None:
    assert process.stdout is not None
    for line in process.stdout:
        word, *rest = json.loads(line)
        said = rest[0] if word == "logged" else word
        if said in wanted:
            return said
    return None


@pytest.mark.usefixtures("transactional_db")
def test_a_process_that_was_stopped_reconfirms_a_run_that_is_still_its_own(child_environment):
    run = owned()
    with keeper_process(run, child_environment) as process:
        assert moves(run)
        with stopped(process):
            pass

        assert first_of(process, "run lease reconfirmed", "lapsed") == "run lease reconfirmed"
        assert moves(run)


@pytest.mark.usefixtures("transactional_db")
def test_a_process_that_was_stopped_lets_go_of_a_run_that_is_being_taken_over(
    child_environment, settings
):
    settings.RUNSTORE = {
        "LEASE": {
            "HEARTBEAT_INTERVAL_MS": 200,
            "STALE_AFTER_MS": 1_000,
            "SKEW_ALLOWANCE_MS": 300,
        }
    }
    run = owned()
    with keeper_process(run, child_environment) as process:
        assert moves(run)
        with stopped(process):
            store = RunStore()
            steal(store, run, int(store.clock.now_ms()))

        assert first_of(process, "run lease reconfirmed", "lapsed") == "lapsed"
