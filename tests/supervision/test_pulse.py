"""How a host uses a pulse: real threads, a real loop, and durations short enough to wait for."""

import asyncio
import threading
import time

import pytest

from django_runstore.durations import LeaseDurations
from django_runstore.errors import RunPersistenceFailed
from django_runstore.outcomes import FenceLost, NotFound, Updated
from django_runstore.owners import OwnerId
from django_runstore.supervision import Pulse
from django_runstore.supervision.pulse import PulseEnded

OWNER = OwnerId("host", 1, "nonce")
SOON_S = 10

# Write tolerance 100 ms.
SHORT = LeaseDurations(heartbeat_interval_ms=20, stale_after_ms=150, skew_allowance_ms=30)
# Lapses at once, and then leaves a busy machine plenty of time: tolerance 10 ms.
EAGER = LeaseDurations(heartbeat_interval_ms=5_000, stale_after_ms=11_010, skew_allowance_ms=6_000)
# Nothing lapses while a test is looking.
LONG = LeaseDurations(heartbeat_interval_ms=10, stale_after_ms=600_000, skew_allowance_ms=100)


class FakeStore:
    def __init__(self, heartbeat=Updated, reconfirm=NotFound):
        self._heartbeat = heartbeat
        self._reconfirm = reconfirm
        self.beaten = threading.Event()
        self.beats = 0

    def heartbeat(self, run_id, owner, now_ms=None, *, fence=None):
        self.beats += 1
        self.beaten.set()
        return self._heartbeat()

    def reconfirm(self, run_id, owner, now_ms=None, *, fence=None):
        return self._reconfirm()


@pytest.fixture
def gate():
    """Calls that wait for it hang until the test ends."""
    opened = threading.Event()
    yield opened
    opened.set()


def failing():
    raise RunPersistenceFailed("heartbeat", "database operation failed")


def pulse(store, lease=LONG, **options):
    return Pulse(store, "run", OWNER, 1, lease=lease, **options)


async def end_of(event: threading.Event) -> None:
    assert await asyncio.get_running_loop().run_in_executor(None, event.wait, SOON_S)


def test_run_tells_that_the_run_was_lost():
    assert pulse(FakeStore(FenceLost)).run() == "lost"


def test_run_tells_that_the_ownership_lapsed():
    assert pulse(FakeStore(failing), SHORT).run() == "lapsed"


def test_run_ends_when_another_thread_stops_it():
    one = pulse(FakeStore())
    threading.Timer(0.05, one.stop).start()

    assert one.run() == "stopped"


@pytest.mark.conformance(55)
def test_a_heartbeat_that_hangs_does_not_stall_the_deadline(gate):
    began = time.monotonic()

    assert pulse(FakeStore(gate.wait), SHORT).run() == "lapsed"
    assert 0.1 <= time.monotonic() - began < SOON_S


@pytest.mark.conformance(66)
def test_a_reconfirmation_that_hangs_does_not_stall_the_deadline_either(gate):
    assert pulse(FakeStore(failing, gate.wait), SHORT).run() == "lapsed"


@pytest.mark.conformance(65)
def test_a_receipt_that_hangs_does_not_stall_the_deadline_either(gate):
    one = pulse(FakeStore(failing, Updated), SHORT, on_reconfirm=lambda _: gate.wait())

    assert one.run() == "lapsed"


def test_run_refuses_a_hook_that_needs_an_event_loop():
    async def hook(_):
        """Never called."""

    with pytest.raises(TypeError, match="aguard"):
        pulse(FakeStore(), on_lapse=hook).run()


def test_guarding_beats_while_the_block_works():
    store = FakeStore()

    with pulse(store).guarding() as guard:
        assert store.beaten.wait(SOON_S)
        assert not guard.stopped.is_set()
        assert guard.reason is None


def test_guarding_tells_the_work_to_stop_and_why():
    with pulse(FakeStore(FenceLost)).guarding() as guard:
        assert guard.stopped.wait(SOON_S)
        assert guard.reason == "lost"


def test_guarding_ends_the_pulse_with_the_block():
    store = FakeStore()
    with pulse(store).guarding() as guard:
        assert store.beaten.wait(SOON_S)

    assert guard.stopped.is_set()
    assert guard.reason == "stopped"


def test_guarding_stops_the_work_at_a_defect_and_raises_it_in_the_end():
    def defect():
        raise ZeroDivisionError

    guarding = pulse(FakeStore(defect)).guarding()
    with pytest.raises(ZeroDivisionError), guarding as guard:
        assert guard.stopped.wait(SOON_S)


def test_an_error_of_the_work_passes_guarding_unchanged():
    with pytest.raises(KeyError), pulse(FakeStore()).guarding():
        raise KeyError


@pytest.mark.conformance(64)
def test_stopping_leaves_no_lapse():
    lapsed = []
    with pulse(FakeStore(failing), SHORT, on_lapse=lapsed.append).guarding():
        pass

    assert lapsed == []


def test_arun_tells_why_it_ended():
    assert asyncio.run(pulse(FakeStore(FenceLost)).arun()) == "lost"


def test_arun_raises_a_defect():
    def defect():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(pulse(FakeStore(defect)).arun())


def test_arun_awaits_hooks_on_the_loop():
    lapsed = []

    async def on_lapse(unconfirmed_ms):
        lapsed.append((unconfirmed_ms >= 10, asyncio.get_running_loop()))

    async def scenario():
        assert await pulse(FakeStore(failing), EAGER, on_lapse=on_lapse).arun() == "lapsed"
        assert lapsed == [(True, asyncio.get_running_loop())]

    asyncio.run(scenario())


@pytest.mark.conformance(63)
def test_a_receipt_that_is_cancelled_ends_the_pulse_by_cancellation():
    lapsed = []

    async def on_reconfirm(_):
        raise asyncio.CancelledError

    async def scenario():
        store = FakeStore(failing, Updated)
        one = pulse(store, EAGER, on_reconfirm=on_reconfirm, on_lapse=lapsed.append)
        beating = asyncio.create_task(one.arun())
        await asyncio.wait({beating}, timeout=SOON_S)
        assert beating.cancelled()

    asyncio.run(scenario())
    assert lapsed == []


@pytest.mark.conformance(64)
def test_cancelling_arun_cancels_a_pending_receipt_and_records_no_lapse():
    lapsed = []

    async def scenario():
        entered, cancelled = asyncio.Event(), asyncio.Event()

        async def on_reconfirm(_):
            entered.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise

        store = FakeStore(failing, Updated)
        one = pulse(store, EAGER, on_reconfirm=on_reconfirm, on_lapse=lapsed.append)
        beating = asyncio.create_task(one.arun())
        await asyncio.wait_for(entered.wait(), SOON_S)
        beating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await beating
        await asyncio.wait_for(cancelled.wait(), SOON_S)

    asyncio.run(scenario())
    assert lapsed == []


@pytest.mark.conformance(65)
def test_a_receipt_that_never_returns_is_cancelled_at_the_lapse():
    async def scenario():
        cancelled = asyncio.Event()

        async def on_reconfirm(_):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise

        lease = LeaseDurations(
            heartbeat_interval_ms=1_000, stale_after_ms=2_110, skew_allowance_ms=1_100
        )
        one = pulse(FakeStore(failing, Updated), lease, on_reconfirm=on_reconfirm)
        assert await one.arun() == "lapsed"
        await asyncio.wait_for(cancelled.wait(), SOON_S)

    asyncio.run(scenario())


def test_beats_go_on_while_the_loop_is_blocked():
    async def scenario():
        store = FakeStore()
        beating = asyncio.create_task(pulse(store).arun())
        await end_of(store.beaten)
        store.beats = 0
        deadline = time.monotonic() + SOON_S
        while store.beats < 3 and time.monotonic() < deadline:
            time.sleep(0.01)  # noqa: ASYNC251 - blocking the loop is what is looked at
        beats = store.beats
        beating.cancel()
        assert beats >= 3

    asyncio.run(scenario())


def test_aguard_returns_what_the_work_returns():
    async def work():
        return "done"

    assert asyncio.run(pulse(FakeStore()).aguard(work())) == "done"


def test_aguard_raises_what_the_work_raises():
    async def work():
        raise KeyError

    with pytest.raises(KeyError):
        asyncio.run(pulse(FakeStore()).aguard(work()))


@pytest.mark.parametrize(
    ("heartbeat", "reason"), [(FenceLost, "lost"), (failing, "lapsed")], ids=["lost", "lapsed"]
)
def test_aguard_cancels_the_work_when_the_pulse_ends(heartbeat, reason):
    ended_by = []

    async def work():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended_by.append("cancellation")
            raise

    with pytest.raises(PulseEnded) as ended:
        asyncio.run(pulse(FakeStore(heartbeat), SHORT).aguard(work()))
    assert ended.value.reason == reason
    assert ended_by == ["cancellation"]


def test_aguard_cancelled_from_outside_ends_both():
    async def scenario():
        store = FakeStore()
        cancelled = asyncio.Event()

        async def work():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise

        guarding = asyncio.create_task(pulse(store).aguard(work()))
        await end_of(store.beaten)
        guarding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await guarding
        assert cancelled.is_set()

    asyncio.run(scenario())
