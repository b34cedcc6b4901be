"""The clock that a test turns by hand."""

import threading

from django_runstore.testing import FakeClock


def test_stands_still():
    clock = FakeClock(5)
    assert (clock.now_ms(), clock.now_ms()) == (5, 5)


def test_starts_at_the_epoch():
    assert FakeClock().now_ms() == 0


def test_advances_by_what_it_is_told():
    clock = FakeClock(0)
    clock.advance(30_001)
    clock.advance(-1)
    assert clock.now_ms() == 30_000


def test_is_set_to_what_it_is_told():
    clock = FakeClock(9)
    clock.set(3)
    assert clock.now_ms() == 3


def test_no_advance_is_lost_between_threads():
    clock = FakeClock(0)

    def turn() -> None:
        for _ in range(1_000):
            clock.advance(1)

    threads = [threading.Thread(target=turn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock.now_ms() == 4_000
