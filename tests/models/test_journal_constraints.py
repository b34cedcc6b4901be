"""Entries of the journal that no service could have written."""

import pytest
from django.db import IntegrityError, transaction

from django_runstore.models import JournalEntry

ENTRY = {
    "run_id": "run",
    "companion": "",
    "seq": 0,
    "source_id": "source",
    "source_hash": b"x" * 32,
    "source_seq": 0,
    "emitted_at_ms": 0,
    "event_type": "event",
    "payload_json": "{}",
}
BROKEN = {
    **{f"empty {name}": {name: ""} for name in ("run_id", "source_id", "event_type")},
    **{
        f"{name} is {value}": {name: value}
        for name in ("seq", "source_seq", "emitted_at_ms")
        for value in (-1, 2**53)
    },
}


def insert(**columns):
    JournalEntry.unguarded.create(**{**ENTRY, **columns})


@pytest.mark.parametrize("columns", BROKEN.values(), ids=BROKEN)
def test_a_broken_entry_cannot_be_inserted(db, columns):
    with pytest.raises(IntegrityError), transaction.atomic():
        insert(**columns)


@pytest.mark.parametrize(
    "same", [{"source_seq": 1}, {"seq": 1}], ids=["same sequence", "same event of one source"]
)
def test_an_entry_cannot_be_inserted_twice(db, same):
    insert()
    with pytest.raises(IntegrityError), transaction.atomic():
        insert(**same)


def test_each_companion_has_sequences_of_its_own(db):
    insert()
    insert(companion="run-store")
    assert JournalEntry.objects.count() == 2


def test_an_entry_outlives_its_run(db):
    insert(run_id="never-created")
    entry = JournalEntry.objects.get()
    assert str(entry) == "never-created#0 event"


def test_an_entry_of_a_companion_names_it(db):
    insert(companion="run-store", seq=4)
    assert str(JournalEntry.objects.get()) == "run/run-store#4 event"
