"""An owner that was displaced while it wrote attempts, each in a process of its own."""

import pytest

from django_runstore import OwnerId, RunSnapshot, RunStore
from django_runstore.models import Attempt
from django_runstore.testing import FakeClock
from tests.concurrency.processes import let_loose

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_displaced_process_changes_no_byte_of_any_attempt(child_environment):
    store = RunStore(clock=FakeClock(0))
    store.create("run", "{}")
    store.claim_and_own("run", RunSnapshot("pending"), OwnerId("host", 1_000, "process-0"))
    arguments = [{"number": n, "now_ms": 40_000, "most": 5_000} for n in (0, 1)]
    old, new = let_loose("write_attempts", arguments, child_environment)
    assert new["outcome"] == "activated"
    assert old["lost"] == ["fence_lost"] * 10
    # What was made before the takeover is what is there, and not a byte of what came later.
    rows = [str(row) for row in Attempt.objects.order_by("attempt").values_list()]
    assert rows == new["rows"]
    assert 1 <= len(rows) < 5_000
    assert old["made"] >= 4 * len(rows) - 3
