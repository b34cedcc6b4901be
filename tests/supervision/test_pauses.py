import pytest

from django_runstore.supervision import pauses as pauses_module
from django_runstore.supervision.pauses import Backoff, Poll, Timer


class Hands:
    def __init__(self):
        self.ms = 0.0

    def __call__(self):
        return self.ms


def test_pauses_double_and_stay_within_their_bound():
    backoff = Backoff(100, 1_000, read_ms=Hands())
    pauses = []
    for _ in range(40):
        backoff.failed()
        pauses.append(backoff.remaining_ms())
    assert 50 <= pauses[0] <= 100
    assert 100 <= pauses[1] <= 200
    assert all(500 <= pause <= 1_000 for pause in pauses[4:])


def test_a_pause_ends_by_itself_or_with_a_success():
    hands = Hands()
    backoff = Backoff(100, 100, read_ms=hands)
    backoff.failed()
    hands.ms = 100
    assert backoff.remaining_ms() == 0
    backoff.failed()
    backoff.succeeded()
    assert (backoff.remaining_ms(), backoff.failures) == (0, 0)


def test_a_timer_is_due_at_first_and_then_once_per_interval():
    timer = Timer(60_000, jitter=True)
    assert timer.remaining_ms() == 0
    timer.restart()
    assert 47_000 < timer.remaining_ms() <= 72_000
    timer.expire()
    assert timer.remaining_ms() == 0


@pytest.fixture
def hands(monkeypatch):
    hands = Hands()
    monkeypatch.setattr(pauses_module, "boottime_ms", hands)
    # The longest that jitter makes of it.
    monkeypatch.setattr(pauses_module.random, "uniform", lambda _least, most: most)
    return hands


def test_polls_come_later_and_later_while_nothing_is_found_and_soon_again_afterwards(hands):
    poll = Poll(100, 300)
    assert poll.remaining_ms() == 0
    pauses = []
    for found in (False, False, False, False, True, False):
        poll.looked(found=found)
        pauses.append(poll.remaining_ms())
    assert pauses == pytest.approx([120, 180, 270, 360, 120, 180])


def test_a_hastened_poll_is_due_soon_and_begins_anew(hands):
    poll = Poll(100, 1_000)
    for _ in range(9):
        poll.looked(found=False)
    hands.ms = 5
    poll.hasten(20)
    assert poll.remaining_ms() == 15
    hands.ms = 30
    poll.hasten(20)
    assert poll.remaining_ms() == 0
    poll.looked(found=False)
    assert poll.remaining_ms() == 120


def test_a_hastened_poll_is_never_later_than_it_was(hands):
    poll = Poll(10, 10)
    poll.looked(found=True)
    poll.hasten(20)
    assert poll.remaining_ms() == 12


def test_the_longest_pause_is_not_below_the_shortest(hands):
    poll = Poll(500, 100)
    for _ in range(2):
        poll.looked(found=False)
        assert poll.remaining_ms() == 600
