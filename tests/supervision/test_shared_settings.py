import json
import sqlite3
from enum import IntEnum
from pathlib import Path

import pytest
from django.db import connections

from django_runstore.supervision import shared_settings
from django_runstore.supervision.shared_settings import (
    UnsharableSettingsError,
    adopt_settings,
    describe_settings,
)


class Level(IntEnum):
    SERIALIZABLE = 3


@pytest.fixture
def receiver(monkeypatch):
    """Stands in for the settings of the process that adopts."""

    class Receiver:
        DATABASES = {"default": {"NAME": "developer", "OPTIONS": {"factory": sqlite3.Connection}}}

    monkeypatch.setattr(shared_settings, "settings", Receiver)
    return Receiver


def described(monkeypatch, **database):
    monkeypatch.setattr(connections["default"], "settings_dict", database)
    # Over the wire, as the worker gets it.
    return json.loads(json.dumps(describe_settings()))


def test_the_databases_in_force_are_described_and_not_the_settings_module(monkeypatch, receiver):
    sent = described(monkeypatch, ENGINE="x", NAME=Path("/data/test.db"), PORT=5432, USER=None)
    adopt_settings(sent)
    assert receiver.DATABASES["default"] == {
        "ENGINE": "x",
        "NAME": "/data/test.db",
        "PORT": 5432,
        "USER": None,
    }


def test_what_is_no_plain_data_is_taken_from_the_receivers_own_settings(monkeypatch, receiver):
    sent = described(monkeypatch, NAME="test", OPTIONS={"factory": object, "timeout": 20})
    adopt_settings(sent)
    assert receiver.DATABASES["default"]["OPTIONS"] == {
        "factory": sqlite3.Connection,
        "timeout": 20,
    }


def test_a_member_of_an_enumeration_is_not_sent_as_a_bare_number(monkeypatch, receiver):
    sent = described(monkeypatch, NAME="test", OPTIONS={"isolation_level": Level.SERIALIZABLE})
    with pytest.raises(UnsharableSettingsError, match=r"\['OPTIONS'\]\['isolation_level'\]"):
        adopt_settings(sent)


def test_settings_of_this_package_are_the_supervisors_too(monkeypatch, receiver, settings):
    settings.RUNSTORE = {"POLL_INTERVAL_MS": 7, "LIVENESS": ["a.b"]}
    monkeypatch.setattr(receiver, "RUNSTORE", settings.RUNSTORE, raising=False)
    sent = described(monkeypatch, NAME="test")
    receiver.RUNSTORE = {}
    adopt_settings(sent)
    assert receiver.RUNSTORE == {"POLL_INTERVAL_MS": 7, "LIVENESS": ["a.b"]}


@pytest.mark.parametrize("name", ["", ":memory:", "file:memorydb_default?mode=memory"])
def test_an_sqlite_database_in_memory_is_refused_with_what_to_change(monkeypatch, name):
    with pytest.raises(UnsharableSettingsError, match=r"\['TEST'\]\['NAME'\]"):
        described(monkeypatch, ENGINE="django.db.backends.sqlite3", NAME=name)
