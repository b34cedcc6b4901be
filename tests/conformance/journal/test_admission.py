"""Spec 8.1 and 9.2: which events are admitted; a refused one is not even asked about."""

import datetime as dt
import json

import pytest
from django.test import override_settings

from django_runstore import Journal
from django_runstore.errors import InvalidEvent
from django_runstore.events import JournalEvent
from tests.conformance.hostile import hostile
from tests.conformance.journal.sample import event, everything
from tests.conformance.world import A, World

CONTRACT = "invalid_event: Journal.{}: event violates the journal input contract"
SAFE = 2**53 - 1

LookAlike = type("JournalEvent", (), {})
HostileEvent = hostile(JournalEvent, "__getattribute__")

BROKEN = {
    **{
        f"{field} is {name}": event(**{field: value})
        for field in ("run_id", "source_id", "event_type")
        for name, value in {
            "empty": "",
            "null": None,
            "a number": 1,
            "bytes": b"run",
            "too long": "x" * 1_025,
            "too long in units": "😀" * 513,
            "too many bytes": "€" * 683,
            "a NUL": "a\0b",
            "a lone surrogate": "\ud800",
        }.items()
    },
    **{
        f"source_seq is {value!r}": event(source_seq=value)
        for value in (-1, SAFE, 2**70, 1.0, 1.5, float("nan"), True, "1", [])
    },
    **{
        f"dedupe is {value!r}": event(dedupe=value)
        for value in ("", "Content", None, 1, ["content"])
    },
    "companion is null": event(companion=None),
    "companion is a NUL": event(companion="\0"),
    "companion is too many bytes": event(companion="x" * 513),
    "companion is the store's": event(companion="run-store"),
    "source is the store": event(source_id="runstore"),
    "source is a part of the package": event(source_id="runstore.supervisor"),
    "payload is too deep": event(payload=json.loads("[" * 257 + "]" * 257)),
    "payload has a key that is no text": event(payload={1: 2}),
    "payload is bytes": event(payload=b""),
    "payload is an object": event(payload=object()),
    "payload is a set": event(payload={1}),
    "payload has a lone surrogate": event(payload=["\ud800"]),
    "payload has too large a number": event(payload=10**400),
    "meta is an object": event(meta=object()),
    "a dict": {"run_id": "run", "source_id": "s", "event_type": "t", "payload": 1},
    "a look-alike": LookAlike(),
    "a subclass": HostileEvent("run", "shop", "sent", 1),
    "nothing in it": object.__new__(JournalEvent),
    "null": None,
    "the class": JournalEvent,
}


@pytest.fixture
def owned(world: World, journal: Journal) -> Journal:
    world.active(A)
    return journal


@pytest.mark.conformance("D13")
@pytest.mark.parametrize("name", BROKEN)
def test_an_event_that_breaks_the_contract_is_refused_and_nothing_is_asked(
    owned, name, django_assert_num_queries
):
    with django_assert_num_queries(0):
        with pytest.raises(InvalidEvent) as caught:
            owned.emit_durable(BROKEN[name], A)
        assert str(caught.value) == CONTRACT.format("emit_durable")
        with pytest.raises(InvalidEvent) as caught:
            owned.emit_durable_unfenced(BROKEN[name])
        assert str(caught.value) == CONTRACT.format("emit_durable_unfenced")
    assert caught.value.__context__ is None
    assert set(caught.value.detail) == {"field", "detail"}


ADMITTED = {
    "the longest ids": {"source_id": "x" * 1_024, "event_type": "😀" * 512},
    "the last number": {"source_seq": SAFE - 1},
    "the first number": {"source_seq": 0},
    "a longest companion": {"companion": "ä" * 256},
    "a name that only begins alike": {"source_id": "runstores"},
    "256 containers": {"payload": json.loads("[" * 256 + "]" * 256)},
    "null": {"payload": None},
    "false": {"payload": False},
    "a date": {"payload": dt.date(2026, 10, 1)},
    "an escaped NUL": {"payload": "a\0b"},
    "a tuple": {"payload": (1, 2)},
}


@pytest.mark.parametrize("fields", ADMITTED.values(), ids=ADMITTED)
def test_an_event_within_the_contract_is_admitted(owned, fields):
    assert owned.emit_durable(event(**fields), A).seq == 0


# --- redactors ------------------------------------------------------------------------------


def raising(_: object) -> object:
    raise RuntimeError("could not hide s3cr3t")


def raising_for_lists(value: object) -> object:
    return raising(value) if type(value) is list else value


def names_only(value: object) -> object:
    return sorted(value) if isinstance(value, dict) else value


@pytest.mark.parametrize(
    ("redactor", "field"),
    [(raising, "payload"), (raising_for_lists, "meta")],
    ids=["payload", "meta"],
)
def test_a_redactor_that_fails_is_an_error_without_a_cause(world, redactor, field):
    world.active(A)
    before = everything()
    with pytest.raises(InvalidEvent) as caught:
        Journal(redactor=redactor).emit_durable(event(payload={"a": "s3cr3t"}, meta=["s3cr3t"]), A)
    assert str(caught.value) == (
        f"invalid_event: Journal.emit_durable: {field} could not be redacted"
    )
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert everything() == before


def test_a_redactor_that_gives_what_cannot_be_stored_breaks_the_contract(world):
    world.active(A)
    with pytest.raises(InvalidEvent, match="event violates the journal input contract"):
        Journal(redactor=lambda _: object()).emit_durable(event(), A)


def test_a_redactor_of_the_journal_is_used_instead_of_the_default(world):
    world.active(A)
    journal = Journal(clock=world.clock, arbiter=world.arbiter, redactor=names_only)
    journal.emit_durable(event(payload={"b": 1, "a": "password=abc"}), A)
    assert journal.entries("run").entries[0].payload == ["a", "b"]


def test_the_setting_names_the_redactor_of_every_journal_without_one(world):
    world.active(A)
    journal = Journal(clock=world.clock, arbiter=world.arbiter)
    with override_settings(RUNSTORE={"REDACTOR": f"{__name__}.names_only"}):
        journal.emit_durable(event(payload={"token": "x"}), A)
    journal.emit_durable(event(payload={"token": "x"}), A)
    payloads = [entry.payload for entry in journal.entries("run").entries]
    assert payloads == [["token"], {"token": "[REDACTED]"}]


def test_the_callers_payload_is_not_changed(owned):
    payload = {"token": "x", "list": [{"secret": 1}]}
    owned.emit_durable(event(payload=payload), A)
    assert payload == {"token": "x", "list": [{"secret": 1}]}
