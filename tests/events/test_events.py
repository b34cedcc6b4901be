"""The values of the journal: frozen, silent about payloads, with one text per identity."""

import dataclasses

import pytest

from django_runstore.events import (
    CheckpointRecord,
    Compaction,
    EntryPage,
    EntryRecord,
    Generation,
    JournalEvent,
)

SECRET = "only-for-readers"
ENTRY = EntryRecord("run", "", 3, "source", 7, 50, "type", SECRET, SECRET)
VALUES = [
    JournalEvent("run", "source", "type", SECRET, SECRET),
    ENTRY,
    EntryPage((ENTRY,), has_more=False),
    CheckpointRecord("run", "", 3, SECRET, 50, None),
    Compaction("run", "", 3, 3),
    Generation(0, -1),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_is_frozen_and_its_repr_tells_no_payload(value):
    name = dataclasses.fields(value)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, None)
    assert SECRET not in repr(value)


def entry(run_id: str = "run", companion: str = "", source: str = "source", number: int = 0):
    return dataclasses.replace(
        ENTRY, run_id=run_id, companion=companion, source_id=source, source_seq=number
    )


def test_an_event_id_names_run_source_and_number_with_their_lengths():
    assert entry("run-😀", source="s", number=7).event_id == "runstore:event:6:run-😀1:s7"
    assert entry("run", "audit", "s", 7).event_id == "runstore:event:5:audit3:run1:s7"


def test_no_two_identities_have_the_same_event_id():
    near = [
        *(entry("a1:b", source="c"), entry("a", source="1:bc"), entry("a", "1:b", "c")),
        *(entry("a", source="b", number=12), entry("a", source="b1", number=2)),
        *(entry("1:a", source="b"), entry("a", "1", "b"), entry("1", "a", "b")),
    ]
    assert len({one.event_id for one in near}) == len(near)
