"""An arbiter that holds an operation up, so that a test can cancel it half-way."""

import threading
from typing import Final

from django_runstore.arbiters import DatabaseArbiter

PATIENCE_S: Final = 20


class SlowArbiter(DatabaseArbiter):
    """Decides when the test lets it."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.released = threading.Event()

    def decide(self, run_id, lease, request, *, stale_after_ms):
        self.asked.set()
        assert self.released.wait(PATIENCE_S)
        return super().decide(run_id, lease, request, stale_after_ms=stale_after_ms)
