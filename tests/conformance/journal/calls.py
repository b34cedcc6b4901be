"""Every operation of the journal with arguments that it admits."""

from typing import Any

from tests.conformance.journal.sample import event
from tests.conformance.world import A

CALLS: dict[str, dict[str, Any]] = {
    "emit_durable": {"event": event(source_seq=5), "owner": A, "fence": 1},
    "emit_durable_unfenced": {"event": event(source_seq=6)},
    "entries": {
        "run_id": "run",
        "after": 0,
        "event_types": ["sent"],
        "limit": 2,
        "companion": "",
    },
    "latest_checkpoint": {"run_id": "run", "companion": ""},
    "generation": {"run_id": "run"},
    "checkpoint": {
        "run_id": "run",
        "seq": 1,
        "state": {"sum": 1},
        "owner": A,
        "fence": 1,
        "companion": "",
    },
    "compact": {"run_id": "run", "owner": A, "up_to": 0, "fence": 1, "companion": ""},
}
