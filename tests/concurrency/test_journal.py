"""
Many processes write one stream while it is followed: nothing is missed, nothing rolled back
is handed out, and every entry comes in its order.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connections

from django_runstore import Journal, OwnerId, RunStore
from django_runstore.events import EntryRecord, JournalEvent
from django_runstore.models import JournalEntry
from django_runstore.outcomes import Activated
from tests.concurrency.processes import let_loose

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(240)]

WRITERS = 4
DEADLINE_SECONDS = 100
# The owner that the writers of tests.concurrency.jobs are.
OWNER = OwnerId("host", 1_000, "process-0")


@contextmanager
def followed(run_id: str, companion: str = "") -> Iterator[list[EntryRecord]]:
    """Follow a stream for the length of the block, and until an entry that ends it."""
    found: list[EntryRecord] = []
    failed: list[BaseException] = []

    def follow() -> None:
        try:
            entries = Journal().follow(
                run_id, companion=companion, poll_interval_ms=20, page_size=7
            )
            for entry in entries:
                if entry.event_type == "end":
                    break
                found.append(entry)
            entries.close()
        except BaseException as error:  # noqa: BLE001 - told by the test
            failed.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=follow)
    thread.start()
    yield found
    if companion == "run-store":
        # Only the store writes there; a fact of another type than those before ends it.
        JournalEntry.unguarded.create(
            run_id=run_id, companion=companion, seq=2**50, source_id="test", source_hash=b"test",
            source_seq=0, emitted_at_ms=0, event_type="end", payload_json="null",
        )  # fmt: skip
    else:
        Journal().emit_durable_unfenced(
            JournalEvent(run_id, "test", "end", None, companion=companion)
        )
    thread.join(DEADLINE_SECONDS)
    assert failed == []
    assert not thread.is_alive()


def owned_run() -> None:
    store = RunStore()
    store.create("run", "{}")
    assert isinstance(store.claim_and_own("run", store.get("run"), OWNER), Activated)


def stored(run_id: str, companion: str = "") -> list[int]:
    entries = JournalEntry.objects.filter(run_id=run_id, companion=companion)
    return list(entries.exclude(event_type="end").order_by("seq").values_list("seq", flat=True))


def name_of(entry: EntryRecord) -> str:
    return entry.payload["name"] if entry.event_type == "noted" else entry.payload


def test_a_follower_is_handed_all_that_was_committed_and_in_order(child_environment):
    owned_run()
    with followed("run") as found:
        kept = let_loose(
            "write_a_journal",
            [{"number": number, "run_id": "run", "times": 60} for number in range(WRITERS)],
            child_environment,
        )
    assert [entry.seq for entry in found] == stored("run")
    names = [name_of(entry) for entry in found]
    assert sorted(names) == sorted(name for names in kept for name in names)
    # And each writer's in the order in which it committed them.
    for number, written in enumerate(kept):
        assert [name for name in names if name.startswith(f"{number}-")] == written


def test_a_follower_of_the_ownership_is_handed_every_fact_in_order(child_environment):
    RunStore().create("run", "0")
    with followed("run", "run-store") as found:
        answers = let_loose(
            "count_up",
            [{"number": number, "seconds": 2} for number in range(WRITERS)],
            child_environment,
        )
    claims = sum(answer["claims"] for answer in answers)
    assert [entry.seq for entry in found] == stored("run", "run-store") == list(range(3 * claims))
    turns = ["claimed", "activated", "released"] * claims
    assert [entry.event_type for entry in found] == [f"runstore.ownership.{one}" for one in turns]


@pytest.mark.parametrize("companion", ["", "audit"])
def test_observers_of_a_run_that_is_created_meanwhile_all_append(child_environment, companion):
    times = 40
    with followed("late", companion) as found:
        answers = let_loose(
            "observe",
            [
                {
                    "number": number,
                    "run_id": "late",
                    "companion": companion,
                    "times": times,
                    "create_at": times // 4 if number == 0 else -1,
                }
                for number in range(WRITERS)
            ],
            child_environment,
        )
    assert sorted(seq for answer in answers for seq in answer) == list(range(WRITERS * times))
    assert all(answer == sorted(answer) for answer in answers)
    assert [entry.seq for entry in found] == list(range(WRITERS * times))


@pytest.mark.parametrize("exists", [True, False])
def test_of_those_who_say_the_same_thing_one_is_the_first(child_environment, exists):
    if exists:
        owned_run()
    identities = 40
    answers = let_loose(
        "say_first",
        [
            {"number": number, "run_id": "run", "identities": identities}
            for number in range(WRITERS)
        ],
        child_environment,
    )
    for codes in zip(*answers, strict=True):
        assert sorted(codes) == ["accepted", *["duplicate"] * (WRITERS - 1)]
    assert JournalEntry.objects.filter(source_id="first").count() == identities
