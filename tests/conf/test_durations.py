"""The lease durations and the reasoning that ties them together. Spec: run-store 1.3."""

import pytest

from django_runstore import durations
from django_runstore.durations import LeaseDurations


def test_defaults_are_those_of_the_specification():
    assert (
        durations.HEARTBEAT_INTERVAL_MS,
        durations.STALE_AFTER_MS,
        durations.SKEW_ALLOWANCE_MS,
        durations.WRITE_TOLERANCE_MS,
    ) == (1_000, 30_000, 10_000, 30_000 - 10_000 - 1_000)


def test_defaults_have_no_complaints():
    assert LeaseDurations().complaints() == ()


def test_stale_is_strictly_older():
    lease = LeaseDurations()
    assert not lease.is_stale(70_000, 100_000)
    assert lease.is_stale(69_999, 100_000)


@pytest.mark.parametrize(
    ("lease", "named"),
    [
        (LeaseDurations(1_000, 2_999, 1_001), "at least 3 x HEARTBEAT_INTERVAL_MS"),
        (LeaseDurations(1_000, 30_000, 1_000), "SKEW_ALLOWANCE_MS (1000) must be greater"),
        (LeaseDurations(1_000, 4_000, 2_000), "(1000) must be greater than HEARTBEAT_INTERVAL_MS"),
    ],
    ids=["stale-after", "skew", "write-tolerance"],
)
def test_combination_that_breaks_the_reasoning_is_named(lease: LeaseDurations, named: str):
    assert any(named in complaint for complaint in lease.complaints())


@pytest.mark.parametrize(
    "lease",
    [
        LeaseDurations(1_000, 4_003, 1_001),
        LeaseDurations(1_000, 30_000, 1_001),
        LeaseDurations(1, 5, 2),
    ],
)
def test_combination_just_inside_the_rules_is_accepted(lease: LeaseDurations):
    assert lease.complaints() == ()


@pytest.mark.parametrize("field", ["heartbeat_interval_ms", "stale_after_ms", "skew_allowance_ms"])
@pytest.mark.parametrize("value", [0, -1])
def test_durations_must_be_positive(field: str, value: int):
    (complaint,) = LeaseDurations(**{field: value}).complaints()
    assert complaint == f"{field.upper()} must be greater than 0, not {value}."
