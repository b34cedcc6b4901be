import pytest
from django.db import OperationalError

from django_runstore.owners import OwnerId
from django_runstore.services import Journal, RunStore
from django_runstore.supervision.acknowledgements import Acknowledgements
from django_runstore.testing import FakeClock
from tests.supervision.processes import notes

pytestmark = pytest.mark.django_db

OWNER = OwnerId("host", 1, "u-0123456789abcdef")
ASKED_AT_MS, SEEN_AT_MS = 2_000, 5_000


@pytest.fixture
def store():
    clock = FakeClock(1_000)
    store = RunStore(clock=clock)
    store.create("run", "{}", handler="h")
    store.claim_many(OWNER, 1)
    store.request_cancel("run", ASKED_AT_MS)
    clock.set(SEEN_AT_MS)
    return store


@pytest.fixture
def seen(store):
    seen = Acknowledgements(store, OWNER)
    seen.add("run", 1)
    return seen


def acknowledged(store):
    found = store.get("run").cancel_acknowledgement
    return None if found is None else found.observed_at_ms


def test_row_and_journal_say_when_it_was_asked_and_when_it_was_seen(store, seen):
    seen.write({("run", 1)})
    assert acknowledged(store) == SEEN_AT_MS
    (entry,) = Journal().entries("run").entries
    assert (entry.event_type, entry.payload, entry.emitted_at_ms) == (
        "runstore.run.cancel_acknowledged",
        {"requested_at_ms": ASKED_AT_MS},
        SEEN_AT_MS,
    )
    assert len(seen) == 0


def test_a_run_that_is_owned_no_more_is_forgotten(store, seen):
    seen.write(set())
    assert (acknowledged(store), notes("run"), len(seen)) == (None, [], 0)


def test_a_run_of_another_fence_is_left_alone(store):
    seen = Acknowledgements(store, OWNER)
    seen.add("run", 2)
    seen.write({("run", 2)})
    assert (acknowledged(store), notes("run"), len(seen)) == (None, [], 0)


def test_what_the_database_does_not_take_is_written_later_and_once(store, seen, monkeypatch):
    def fail(*_, **__):
        raise OperationalError

    with monkeypatch.context() as broken:
        broken.setattr(Journal, "emit_durable", fail)
        with pytest.raises(OperationalError):
            seen.write({("run", 1)})
    assert (acknowledged(store), notes("run"), len(seen)) == (None, [], 1)

    seen.write({("run", 1)})
    assert acknowledged(store) == SEEN_AT_MS
    assert [kind for kind, _ in notes("run")] == ["runstore.run.cancel_acknowledged"]
