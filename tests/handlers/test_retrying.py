import logging

import pytest

from django_runstore.handlers.retrying import (
    LONGEST_DELAY_MS,
    ExponentialBackoff,
    RetryPolicy,
    is_backoff,
)

STEADY = ExponentialBackoff(first_ms=100, factor=3, longest_ms=2_000, jitter=0)


@pytest.mark.parametrize(
    ("failures", "delay_ms"), [(1, 100), (2, 300), (3, 900), (4, 2_000), (1_000_000, 2_000)]
)
def test_delays_grow_up_to_a_bound(failures, delay_ms):
    assert STEADY(failures) == delay_ms


def test_a_part_of_each_delay_is_left_to_chance():
    backoff = ExponentialBackoff(first_ms=1_000, jitter=0.25)
    delays = {backoff(1) for _ in range(200)}
    assert min(delays) >= 750
    assert max(delays) <= 1_000
    assert max(delays) - min(delays) > 100


def test_by_default_the_first_failure_is_the_last():
    assert RetryPolicy().max_attempts == 1


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        (50, [50, 50, 50]),
        ([10, 20], [10, 20, 20]),
        ((10,), [10, 10, 10]),
        (lambda failures: failures * 1.5, [2, 3, 5]),
        (STEADY, [100, 300, 900]),
    ],
    ids=["number", "list", "tuple", "function", "exponential"],
)
def test_a_delay_is_a_number_one_per_failure_or_a_function(backoff, delays):
    policy = RetryPolicy(5, backoff)
    assert [policy.delay_ms(failures) for failures in (1, 2, 3)] == delays


@pytest.mark.parametrize(
    ("given", "delay_ms"), [(-5, 0), (float("inf"), LONGEST_DELAY_MS), (1e300, LONGEST_DELAY_MS)]
)
def test_a_functions_delay_is_cut_to_what_can_be_waited_for(given, delay_ms):
    assert RetryPolicy(5, lambda _: given).delay_ms(1) == delay_ms


@pytest.mark.parametrize("answer", [None, "soon", float("nan"), ZeroDivisionError()], ids=repr)
def test_a_function_that_gives_no_number_costs_the_default_delay_and_not_the_run(answer, caplog):
    caplog.set_level(logging.ERROR)

    def broken(failures):
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert 500 <= RetryPolicy(5, broken).delay_ms(1) <= 1_000
    assert "soon" not in caplog.text


@pytest.mark.parametrize("value", [0, 5, [1], (1, 2), STEADY, max, LONGEST_DELAY_MS])
def test_what_can_serve_as_a_backoff(value):
    assert is_backoff(value)


@pytest.mark.parametrize(
    "value", [None, -1, True, 1.5, "5", [], [1, -1], [True], {1}, LONGEST_DELAY_MS + 1]
)
def test_what_cannot(value):
    assert not is_backoff(value)
