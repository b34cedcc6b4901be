"""
What the processes of the concurrency tests do. Run as ``python -m``, not imported by tests.

Each job is a function of its arguments and returns what can be written as JSON.
"""

import json
import os
import random
import sys
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import django

django.setup()

from django.db import connection, transaction  # noqa: E402 - Django has to be set up first

from django_runstore import (  # noqa: E402
    AttemptStore,
    Journal,
    LivenessEvidence,
    OwnerId,
    RunPersistenceFailed,
    RunStore,
)
from django_runstore.attempts import AttemptPatch, AttemptRecord, FinishAttempt  # noqa: E402
from django_runstore.events import JournalEvent  # noqa: E402
from django_runstore.models import Attempt  # noqa: E402
from django_runstore.outcomes import (  # noqa: E402
    Accepted,
    Activated,
    FenceLost,
    Finished,
    Inserted,
    Patched,
    Transitioned,
    Updated,
)
from django_runstore.snapshots import OwnedTransition, RunNote  # noqa: E402
from django_runstore.testing import FakeClock  # noqa: E402
from tests.concurrency.change_jobs import change_for_a_while, follow_for_a_while  # noqa: E402, F401


def owner(number: int) -> OwnerId:
    return OwnerId("host", 1_000 + number, f"process-{number}")


def count_up(number: int, seconds: float) -> dict[str, Any]:
    """
    Claim runs, count up in their states under the fence, and put them back, for a while.

    The state is read from what the claim returned and written whole: an update that got lost
    or was made by a displaced owner leaves a count that nobody was told of.
    """
    store, me = RunStore(), owner(number)
    confirmed: Counter[str] = Counter()
    claims = unbeaten = 0
    give_back_at = time.monotonic() + seconds
    while time.monotonic() < give_back_at:
        for claimed in store.claim_many(me, 2):
            claims += 1
            run_id, fence = claimed.run.run_id, claimed.fence
            count = json.loads(claimed.run.state_json)
            assert store.heartbeat(run_id, me, fence=fence) == Updated()
            saved = store.save_progress(run_id, me, fence=fence, state_json=str(count + 1))
            assert saved == Updated()
            moved = store.transition_owned(run_id, me, "running", str(count + 2), fence=fence)
            assert moved == Transitioned()
            unbeaten += beat_until_confirmed(store, me, run_id, fence)
            ending = OwnedTransition(run_id, fence, "suspended", state_json=str(count + 3))
            assert store.transition_many(me, [ending]) == {run_id: Transitioned()}
            confirmed[run_id] += 3
    return {"confirmed": confirmed, "claims": claims, "unbeaten": unbeaten}


def beat_until_confirmed(store: RunStore, me: OwnerId, run_id: str, fence: int) -> int:
    """Beat as a pulse does, whose next try is the only retry; give how many were in vain."""
    unbeaten = 0
    while True:
        try:
            assert store.heartbeat_many(me, [(run_id, fence)]) == {run_id: Updated()}
        except RunPersistenceFailed as error:
            if error.detail["cause"] != "busy":
                raise
            unbeaten += 1
        else:
            return unbeaten


def claim_all(number: int, entered: str) -> list[str]:
    """Claim in batches until nothing is left; enter what was claimed."""
    store, me = RunStore(), owner(number)
    mine: list[str] = []
    while batch := store.claim_many(me, 3):
        for claimed in batch:
            enter(entered, f"{claimed.run.run_id} {claimed.fence} {number}")
            mine.append(claimed.run.run_id)
    return mine


def race_for_each(number: int, entered: str, run_ids: list[str]) -> list[str]:
    """Try to own every run from one and the same snapshot; enter what was won."""
    store, me = RunStore(), owner(number)
    seen = [store.get(run_id) for run_id in run_ids]
    mine: list[str] = []
    for row in seen:
        outcome = store.claim_and_own(row.run_id, row, me)
        if isinstance(outcome, Activated):
            enter(entered, f"{row.run_id} {outcome.fence} {number}")
            mine.append(row.run_id)
    return mine


def take_over_each(number: int, entered: str, run_ids: list[str], now_ms: int) -> list[str]:
    """Try to take every stale run over, from a read that all have made; enter what was won."""
    store, me = RunStore(clock=FakeClock(now_ms)), owner(number)
    seen = [store.get(run_id) for run_id in run_ids]
    mine: list[str] = []
    for row in seen:
        assert row.owner is not None
        evidence = LivenessEvidence(row.owner, now_ms, "same-host-pid-dead")
        outcome = store.claim_and_own(row.run_id, row, me, now_ms, evidence)
        if isinstance(outcome, Activated):
            enter(entered, f"{row.run_id} {outcome.fence} {number}")
            mine.append(row.run_id)
    return mine


def write_a_journal(number: int, run_id: str, times: int) -> list[str]:
    """
    Append to one stream in every way there is, some of it rolled back; give what was committed.

    All writers are the same owner: what is raced for is the sequence and not the run.
    """
    store, journal, me = RunStore(), Journal(), owner(0)
    fence = store.get(run_id).owner_fence
    assert fence is not None
    chance = random.Random(number)
    kept: list[str] = []

    def emit(name: str) -> None:
        event = JournalEvent(run_id, f"writer-{number}", "written", name)
        assert isinstance(journal.emit_durable(event, me, fence=fence), Accepted)

    for turn in range(times):
        name = f"{number}-{turn}"
        match chance.choice(["event", "unfenced", "note", "several", "savepoint", "rolled back"]):
            case "event":
                emit(name)
                kept.append(name)
            case "unfenced":
                event = JournalEvent(run_id, "observer", "written", name)
                assert isinstance(journal.emit_durable_unfenced(event), Accepted)
                kept.append(name)
            case "note":
                note = RunNote("noted", {"name": name})
                ending = OwnedTransition(run_id, fence, "running", note=note)
                assert store.transition_many(me, [ending]) == {run_id: Transitioned()}
                kept.append(name)
            case "several":
                with transaction.atomic():
                    emit(f"{name}-a")
                    emit(f"{name}-b")
                kept += [f"{name}-a", f"{name}-b"]
            case "savepoint":
                with transaction.atomic():
                    emit(f"{name}-a")
                    with transaction.atomic():
                        emit(f"{name}-rolled back")
                        transaction.set_rollback(True)
                    emit(f"{name}-b")
                kept += [f"{name}-a", f"{name}-b"]
            case "rolled back":
                with transaction.atomic():
                    emit(f"{name}-rolled back")
                    transaction.set_rollback(True)
    return kept


def observe(number: int, run_id: str, companion: str, times: int, create_at: int) -> list[int]:
    """Append unfenced events to a run that one of the observers creates meanwhile."""
    journal = Journal()
    sequences: list[int] = []
    for turn in range(times):
        if turn == create_at:
            RunStore().create(run_id, "{}")
        event = JournalEvent(run_id, f"observer-{number}", "seen", turn, companion=companion)
        receipt = journal.emit_durable_unfenced(event)
        assert isinstance(receipt, Accepted)
        sequences.append(receipt.seq)
    return sequences


def say_first(number: int, run_id: str, identities: int) -> list[str]:
    """Try to be the first to say each of some things; give how each ended."""
    journal = Journal()
    answers = []
    for identity in range(identities):
        event = JournalEvent(
            run_id, "first", "said", number, source_seq=identity, dedupe="identity"
        )
        answers.append(journal.emit_durable_unfenced(event).code)
    return answers


def write_attempts(number: int, now_ms: int, most: int) -> dict[str, Any]:
    """
    Write attempts as the owner until ten writes in a row are lost (number 0), or take over.

    Gives how many were made and lost, or every row as it stood when the takeover was done.
    """
    if number:
        return take_over_while_written(owner(number), now_ms)
    attempts, me = AttemptStore(), owner(0)
    made = 0
    for attempt in range(1, most):
        new = AttemptRecord("run", "step", attempt, "running", attempt, meta=f"late {attempt}")
        answers = [
            attempts.put(new, me, fence=1),
            attempts.heartbeat("run", "step", attempt, me, attempt, f"late {attempt}", fence=1),
            attempts.patch(new, AttemptPatch(error=f"late {attempt}"), me, fence=1),
            attempts.finish(FinishAttempt("run", "step", attempt, "done", 1), me, fence=1),
        ]
        made += sum(answer in _MADE for answer in answers)
        if answers[0] == FenceLost():
            break
    lost = [attempts.put(replace(new, attempt=n), me, fence=1).code for n in range(most, most + 10)]
    return {"made": made, "lost": lost}


_MADE = (Inserted(), Updated(), Patched(), Finished())


def take_over_while_written(me: OwnerId, now_ms: int) -> dict[str, Any]:
    """Take the run over once its owner has begun to write."""
    store = RunStore(clock=FakeClock(now_ms))
    seen = store.get("run")
    while not Attempt.objects.exists():
        time.sleep(0.005)
    evidence = LivenessEvidence(owner(0), now_ms, "same-host-pid-dead")
    outcome = store.claim_and_own("run", seen, me, now_ms, evidence)
    return {"outcome": outcome.code, "rows": attempt_rows()}


def attempt_rows() -> list[str]:
    """Every byte of every attempt."""
    return [str(row) for row in Attempt.objects.order_by("attempt").values_list()]


def delete_run(run_id: str) -> int:
    """Delete a run as another program would; give how many rows that were."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM runstore_run WHERE run_id = %s", [run_id])
        return int(cursor.rowcount)


def enter(path: str, line: str) -> None:
    """Do what a handler does to the outside world: append a line, whole."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


def main() -> None:
    name, arguments = sys.argv[1:]
    connection.ensure_connection()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    sys.stdout.write(json.dumps(globals()[name](**json.loads(arguments))))


if __name__ == "__main__":
    main()
