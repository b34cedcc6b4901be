from django_runstore.supervision.pauses import Backoff, Timer


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
