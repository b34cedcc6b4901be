"""Liveness by the lease alone. Spec: run-store 7.2; conformance 67."""

import pytest
from django.test import override_settings

from django_runstore.liveness import LivenessContext, lease_liveness, unexpired_lease
from django_runstore.owners import OwnerId

OWNER = OwnerId("h1", 1, "a")
CLAIMANT = OwnerId("h2", 2, "b")


def context(heartbeat_at_ms: int | None, now_ms: int) -> LivenessContext:
    return LivenessContext(CLAIMANT, heartbeat_at_ms, now_ms)


@pytest.mark.conformance(67)
@pytest.mark.parametrize(
    ("stale_after_ms", "heartbeat_at_ms", "now_ms", "is_alive"),
    [
        (30_000, 70_000, 100_000, True),
        (30_000, 69_999, 100_000, False),
        (30_000, None, 100_000, False),
        (30_000, 100_001, 100_000, True),
        (1_000, 4_000, 5_000, True),
        (1_000, 3_999, 5_000, False),
    ],
)
def test_owner_is_alive_until_its_stamp_is_strictly_older(
    stale_after_ms: int, heartbeat_at_ms: int | None, now_ms: int, is_alive: bool
):
    check = lease_liveness(stale_after_ms=stale_after_ms)
    assert check(OWNER, context(heartbeat_at_ms, now_ms)) is is_alive


@pytest.mark.conformance(67)
def test_default_window_is_thirty_seconds():
    assert lease_liveness()(OWNER, context(70_000, 100_000))
    assert not lease_liveness()(OWNER, context(69_999, 100_000))


def test_named_check_follows_the_configured_window():
    lease = {"HEARTBEAT_INTERVAL_MS": 100, "STALE_AFTER_MS": 1_000, "SKEW_ALLOWANCE_MS": 200}
    with override_settings(RUNSTORE={"LEASE": lease}):
        assert unexpired_lease(OWNER, context(4_000, 5_000))
        assert not unexpired_lease(OWNER, context(3_999, 5_000))
