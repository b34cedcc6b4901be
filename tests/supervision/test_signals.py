import os
import select
import signal
import threading

import pytest

from django_runstore.supervision.signals import StopSignals


def is_readable(signals):
    return bool(select.select([signals], [], [], 0)[0])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_signal_is_counted_and_wakes(number):
    with StopSignals() as signals:
        os.kill(os.getpid(), number)
        select.select([signals], [], [], 5)
        assert signals.count == 1
        signals.clear()
        assert not is_readable(signals)


def test_a_hangup_stays_ignored_where_it_was():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignals():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_another_thread_can_wake():
    with StopSignals() as signals:
        threading.Thread(target=signals.wake).start()
        assert select.select([signals], [], [], 5)[0]


def test_waking_never_waits_however_often_it_happens():
    with StopSignals() as signals:
        for _ in range(100_000):
            signals.wake()
        signals.clear()
        assert not is_readable(signals)


def test_the_signals_are_given_back():
    numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
    before = list(map(signal.getsignal, numbers))
    with StopSignals() as signals:
        assert signal.getsignal(signal.SIGTERM) not in before
    signals.wake()
    assert list(map(signal.getsignal, numbers)) == before


def test_another_thread_than_the_main_one_is_refused():
    refusals = []

    def enter():
        try:
            with StopSignals():
                pass
        except RuntimeError as error:
            refusals.append(str(error))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert refusals == ["A supervisor has to run in the main thread of its process."]
