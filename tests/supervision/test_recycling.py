import pytest

from django_runstore.supervision.recycling import MIB, RecycleRule


def holds(number):
    return lambda: number


@pytest.mark.parametrize(
    ("rule", "runs", "held", "reason"),
    [
        (RecycleRule(), 10**9, 10**12, None),
        (RecycleRule(most_runs=3), 2, 0, None),
        (RecycleRule(most_runs=3), 3, 0, "it has executed 3 of 3 runs"),
        (RecycleRule(most_mib=100), 1, 100 * MIB, None),
        (RecycleRule(most_mib=100), 1, 101 * MIB, "it holds 101 MiB, more than 100"),
        (RecycleRule(most_mib=100), 1, None, None),
        (RecycleRule(most_runs=1, most_mib=1), 1, 2 * MIB, "it has executed 1 of 1 runs"),
    ],
)
def test_a_worker_is_replaced_after_so_many_runs_or_above_so_much_memory(rule, runs, held, reason):
    assert rule.reason(runs, holds(held)) == reason


def test_memory_is_not_asked_for_where_it_does_not_matter():
    assert RecycleRule(most_runs=5).reason(1, lambda: pytest.fail("asked")) is None
