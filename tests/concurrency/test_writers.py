"""Eight processes write one database for a while: nothing fails and nothing is lost."""

import os
from collections import Counter

import pytest
from django.db import connection

from django_runstore import RunStore
from django_runstore.models import JournalEntry, Run
from tests.concurrency.processes import let_loose

pytestmark = pytest.mark.django_db(transaction=True)

WRITERS = 8
RUNS = 12
# Long on the database that has one lock for all, and where nobody waits for the answer.
LONG = connection.vendor == "sqlite" and os.environ.get("CI") == "true"
SECONDS = 30 if LONG else 5

# On SQLite with a timeout so short that waiting for the lock alone would not do.
MODES = {
    "sqlite": {"deferred": "DEFERRED", "immediate": "IMMEDIATE"},
    "postgresql": {"read committed": None},
}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("mode", MODES[connection.vendor])
def test_no_writer_fails_and_no_update_is_lost(child_environment, mode):
    environment = dict(child_environment)
    if connection.vendor == "sqlite":
        options = f"?transaction_mode={MODES['sqlite'][mode]}&timeout=1"
        environment["DATABASE_URL"] += options
    for number in range(RUNS):
        RunStore().create(f"run-{number}", "0")

    answers = let_loose(
        "count_up",
        [{"number": number, "seconds": SECONDS} for number in range(WRITERS)],
        environment,
    )

    confirmed: Counter[str] = Counter()
    for answer in answers:
        confirmed.update(answer["confirmed"])
    stored = {run.run_id: int(run.state_json) for run in Run.objects.all()}
    assert {run_id: stored[run_id] for run_id in confirmed} == dict(confirmed)
    assert sum(stored.values()) == confirmed.total() > 0

    claims = sum(answer["claims"] for answer in answers)
    assert sum(Run.objects.values_list("fence", flat=True)) == claims
    # Each time claimed, activated and released.
    assert JournalEntry.objects.count() == 3 * claims
    assert set(Run.objects.values_list("status", flat=True)) == {"suspended"}
