"""Every operation goes through the door, which costs nothing unwatched and changes nothing."""

import inspect
import logging
from contextlib import contextmanager, suppress
from typing import Self

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore import InvalidRun, OwnedTransition, RunStore, services
from django_runstore.arbiters import DatabaseArbiter
from django_runstore.metrics import NO_SPAN, tallies
from django_runstore.metrics.exporting import listeners
from django_runstore.models import JournalEntry, Run
from django_runstore.outcomes import Claimed, NotFound, Transitioned
from django_runstore.services import door
from django_runstore.services.twin import twin
from django_runstore.testing import FakeClock
from tests.conformance.calls import CALLS, TELLING_ALL
from tests.conformance.world import A, B, P, World, unnumbered_tables
from tests.metrics.recorder import Recorder

SERVICES = [getattr(services, name) for name in services.__all__]

# A stream without an end, and a callback: neither is one call of the database.
NO_OPERATIONS = {"follow", "afollow", "when_committed"}
OPERATIONS = [
    pytest.param(service, name, id=f"{service.__name__}.{name}")
    for service in SERVICES
    for name, member in inspect.getmembers(service, inspect.isfunction)
    if not name.startswith("_")
    and not inspect.iscoroutinefunction(member)
    and name not in NO_OPERATIONS
]


class RaisingExporter:
    """Fails at every opportunity but being made."""

    def count(self, *_: object) -> None:
        raise LookupError("count")

    def span(self, _: str) -> None:
        raise LookupError("span")


class RaisingSpan:
    """Opens a span that fails at every opportunity, and takes an exception for its own."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> bool:
        raise LookupError("exit")

    def set(self, *_: object) -> None:
        raise LookupError("set")


class RaisingSpanExporter(RaisingExporter):
    def span(self, _: str) -> RaisingSpan:
        return RaisingSpan()


class SwallowingExporter:
    """Opens spans that would swallow whatever passes through them."""

    def count(self, *_: object) -> None:
        pass

    @contextmanager
    def span(self, _: str):
        with suppress(BaseException):
            yield NO_SPAN


class UnmadeExporter:
    def __init__(self) -> None:
        raise LookupError("init")


FAULTY = [
    RaisingExporter,
    RaisingSpanExporter,
    SwallowingExporter,
    UnmadeExporter,
]


def exporting(settings, *exporters: type) -> None:
    paths = [f"tests.services.test_door.{exporter.__name__}" for exporter in exporters]
    settings.RUNSTORE = {"EXPORTERS": paths}


@pytest.mark.parametrize(("service", "name"), OPERATIONS)
def test_every_operation_has_an_entry(service, name):
    assert door.Entry.of(getattr(service, name)).name == name


def test_a_method_without_an_entry_gets_no_twin():
    class Store:
        using = "default"
        service = "Store"

        def look(self) -> None:
            """Look."""

    with pytest.raises(TypeError, match=r"Store\.look is no operation: it has no @operation"):
        twin(Store.look)


def test_an_operation_keeps_its_name_its_signature_and_its_words():
    assert str(inspect.signature(RunStore.abandon_claim)) == (
        "(self, run_id: str, claimant: django_runstore.owners.OwnerId, claimed_at_ms: int, "
        "*, fence: int | None = None) -> django_runstore.outcomes.Abandoned | "
        "django_runstore.outcomes.ClaimLost"
    )
    assert RunStore.abandon_claim.__qualname__ == "Claiming.abandon_claim"
    assert (RunStore.abandon_claim.__doc__ or "").lstrip().startswith("Give a claim back")


@pytest.mark.parametrize("operation", sorted(CALLS))
def test_nothing_is_made_for_an_operation_that_nobody_listens_to(
    db, settings, monkeypatch, operation
):
    settings.RUNSTORE = {}
    world = World()
    world.active(A)

    def refuse(*_: object) -> None:
        raise AssertionError("made for nobody")

    monkeypatch.setattr(door, "Passage", refuse)
    monkeypatch.setattr(door, "Spans", refuse)
    monkeypatch.setattr(door, "Ending", refuse)
    CALLS[operation].on(world.store)


@pytest.mark.parametrize("operation", sorted(CALLS))
def test_listening_adds_no_statement(db, settings, operation):
    numbers = []
    for exporters in ([], ["tests.metrics.recorder.Recorder"]):
        settings.RUNSTORE = {"EXPORTERS": exporters}
        JournalEntry.unguarded.all().delete()
        Run.unguarded.all().delete()
        world = World()
        world.active(A)
        with CaptureQueriesContext(connection) as captured:
            CALLS[operation].on(world.store)
        numbers.append(len(captured))

    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("faulty", FAULTY)
@pytest.mark.parametrize("operation", sorted(CALLS.keys() - TELLING_ALL))
def test_a_faulty_exporter_changes_no_answer_and_no_write(db, settings, operation, faulty):
    results = []
    for exporters in ([], [faulty]):
        exporting(settings, *exporters)
        JournalEntry.unguarded.all().delete()
        Run.unguarded.all().delete()
        world = World()
        world.active(A)
        answer = CALLS[operation].on(world.store)
        results.append((answer, unnumbered_tables()))

    assert results[0] == results[1]


@pytest.mark.parametrize("faulty", FAULTY)
def test_a_faulty_exporter_changes_no_error(db, settings, faulty):
    exporting(settings, faulty)
    with pytest.raises(InvalidRun) as caught:
        World().store.claim("run", P, A, -1)

    assert caught.value.operation == "claim"
    assert caught.value.__context__ is None


@pytest.mark.parametrize("faulty", [RaisingExporter, RaisingSpanExporter, UnmadeExporter])
def test_a_faulty_exporter_is_complained_of_once(db, settings, caplog, faulty):
    exporting(settings, faulty)
    world = World()
    with caplog.at_level(logging.WARNING, "django_runstore.metrics"):
        for number in range(3):
            world.pending(f"run-{number}")

    path = f"tests.services.test_door.{faulty.__name__}"
    assert caplog.messages == [f"{path} failed and is ignored: LookupError"]
    assert [record.exc_info for record in caplog.records] == [None]


def test_a_faulty_exporter_does_not_keep_the_others_from_hearing(db, settings):
    settings.RUNSTORE = {
        "EXPORTERS": [
            "tests.services.test_door.RaisingExporter",
            "tests.metrics.recorder.Recorder",
            "tests.services.test_door.RaisingSpanExporter",
        ]
    }
    heard = [listener.exporter for listener in listeners()]
    World().store.heartbeat("run", A, 0)

    (recorder,) = [exporter for exporter in heard if isinstance(exporter, Recorder)]
    assert recorder.heartbeats() == {"not_found": 1}
    assert [span.attributes["outcome"] for span in recorder.spans] == ["not_found"]


@pytest.mark.django_db(transaction=True)
def test_an_exporter_that_fails_after_the_commit_changes_nothing(settings):
    exporting(settings, RaisingExporter)
    world = World()
    world.active(A)

    assert world.store.transition_owned("run", A, "completed") == Transitioned()
    assert world.store.get("run").status == "completed"


def test_settings_that_are_broken_keep_nobody_from_reading(db, settings):
    world = World()
    world.pending()
    settings.RUNSTORE = {"EXPORTER": ["tests.metrics.recorder.Recorder"]}

    assert world.store.get("run").run_id == "run"


def test_an_operation_inside_another_has_a_span_of_its_own(db, recorder):
    class Asking(DatabaseArbiter):
        def decide(self, run_id, lease, request, *, stale_after_ms):
            World().store.get(run_id)
            return super().decide(run_id, lease, request, stale_after_ms=stale_after_ms)

    world = World(Asking())
    world.pending()
    recorder.forget()
    assert isinstance(world.store.claim("run", P, B, 0), Claimed)

    outer, inner = recorder.spans
    assert outer.attributes == {
        "run_id": "run",
        "claimant_host_id": "host-a",
        "outcome": "claimed",
    }
    assert inner.attributes == {"run_id": "run", "outcome": "success"}


def test_notes_outside_an_operation_go_nowhere(recorder):
    door.note(run_id="run")

    assert recorder.spans == []


def test_a_batch_whose_list_changes_meanwhile_is_answered_all_the_same(db, recorder, caplog):
    moves = [OwnedTransition("nobody", 1, "completed")]

    class Meddling(FakeClock):
        def now_ms(self) -> float:
            moves.append(OwnedTransition("later", 1, "completed"))
            return super().now_ms()

    world = World(clock=Meddling(0))

    assert world.store.transition_many(A, moves) == {"nobody": NotFound()}
    assert caplog.messages == ["a tally of the metrics failed and is ignored: KeyError"]


def test_what_a_cancelled_call_notes_afterwards_is_dropped(recorder):
    entry = door.Entry.of(RunStore.get)
    with entry.open(RunStore(), ("run",), {}) as passage:
        pass
    passage.perform(lambda: door.note(run_id="late"))

    assert [span.attributes for span in recorder.spans] == [{"outcome": "success"}]


def test_an_answer_that_is_no_outcome_is_a_success_whatever_it_holds(recorder):
    class Answer:
        code = "hunter2"

    class Store:
        service, using = "Store", "default"

        @door.operation(tallies.uncounted)
        def look(self) -> Answer:
            return Answer()

    Store().look()

    assert [span.attributes for span in recorder.spans] == [{"outcome": "success"}]
