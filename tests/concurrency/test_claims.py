"""Cases 3, 4 and 25: many processes want the same runs, and each run has one owner."""

from pathlib import Path

import pytest

from django_runstore import OwnerId, RunSnapshot, RunStore
from django_runstore.models import JournalEntry, Run
from django_runstore.testing import FakeClock
from tests.concurrency.processes import let_loose

pytestmark = pytest.mark.django_db(transaction=True)

CLAIMANTS = 4
RUN_IDS = [f"run-{number:03}" for number in range(60)]


@pytest.fixture
def entered(tmp_path: Path) -> Path:
    """The file in which whoever enters a run leaves a line."""
    path = tmp_path / "entered"
    path.touch()
    return path


def assert_each_has_one_owner(answers: list[list[str]], entered: Path, fence: int) -> None:
    owners = {run_id: number for number, mine in enumerate(answers) for run_id in mine}
    assert sorted(run_id for mine in answers for run_id in mine) == RUN_IDS
    assert sorted(entered.read_text().splitlines()) == [
        f"{run_id} {fence} {owners[run_id]}" for run_id in RUN_IDS
    ]
    rows = Run.objects.values_list("run_id", "owner_nonce", "owner_fence", "status")
    assert sorted(rows) == [
        (run_id, f"process-{owners[run_id]}", fence, "running") for run_id in RUN_IDS
    ]


def facts() -> list[str]:
    kinds = JournalEntry.objects.filter(companion="run-store").values_list("event_type", flat=True)
    return [kind.rpartition(".")[2] for kind in kinds]


def test_batches_never_hand_out_a_run_twice(child_environment, entered: Path):
    for run_id in RUN_IDS:
        RunStore().create(run_id, "{}")
    arguments = [{"number": n, "entered": str(entered)} for n in range(CLAIMANTS)]
    answers = let_loose("claim_all", arguments, child_environment)
    assert_each_has_one_owner(answers, entered, fence=1)
    assert sorted(facts()) == sorted(["claimed", "activated"] * len(RUN_IDS))


def test_of_all_who_saw_a_run_waiting_one_enters(child_environment, entered: Path):
    for run_id in RUN_IDS:
        RunStore().create(run_id, "{}")
    arguments = [
        {"number": n, "entered": str(entered), "run_ids": RUN_IDS} for n in range(CLAIMANTS)
    ]
    answers = let_loose("race_for_each", arguments, child_environment)
    assert_each_has_one_owner(answers, entered, fence=1)
    assert sorted(facts()) == sorted(["claimed", "activated"] * len(RUN_IDS))


def test_of_all_who_saw_a_run_stale_one_enters(child_environment, entered: Path):
    gone = OwnerId("host", 1, "gone")
    store = RunStore(clock=FakeClock(0))
    for run_id in RUN_IDS:
        store.create(run_id, "{}")
        store.claim_and_own(run_id, RunSnapshot("pending"), gone)
    arguments = [
        {"number": n, "entered": str(entered), "run_ids": RUN_IDS, "now_ms": 40_000}
        for n in range(CLAIMANTS)
    ]
    answers = let_loose("take_over_each", arguments, child_environment)
    assert_each_has_one_owner(answers, entered, fence=2)
    once_each = ["claimed", "activated", "stolen", "activated"]
    assert sorted(facts()) == sorted(once_each * len(RUN_IDS))
