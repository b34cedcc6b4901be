"""
Every operation of the journal with arbitrary objects in every position.

Only typed errors come out, or an outcome where the input happens to be valid; a refused
call writes nothing, and no code of an argument is run.
"""

import pytest
from hypothesis import strategies as st

from django_runstore import Journal, JournalError
from django_runstore.errors import InvalidEvent
from django_runstore.events import JournalEvent
from tests.conformance.arbitrary import Recipe, anything, composed, leaves, recipes
from tests.conformance.fuzzing import call_with_anything
from tests.conformance.journal.calls import CALLS
from tests.conformance.journal.sample import event, everything
from tests.conformance.world import A, World

events = recipes(JournalEvent, *[anything] * 8)
whatever = st.one_of(
    anything,
    events,
    recipes(object.__new__, st.just(JournalEvent)),
    st.recursive(leaves, lambda inner: st.one_of(composed(inner), events), max_leaves=4),
)


def spoilt_event() -> st.SearchStrategy[Recipe]:
    """An event of which some fields are anything, its payload among them."""
    names = ["run_id", "source_id", "event_type", "payload", "meta", "source_seq", "dedupe"]
    fields = st.dictionaries(st.sampled_from([*names, "companion"]), anything, min_size=1)

    def make(drawn: dict[str, Recipe]) -> Recipe:
        return Recipe(lambda: event(**{name: recipe() for name, recipe in drawn.items()}))

    return fields.map(make)


def set_up() -> Journal:
    world = World()
    world.active(A)
    journal = Journal(clock=world.clock, arbiter=world.arbiter)
    for _ in range(3):
        journal.emit_durable(event(), A)
    journal.checkpoint("run", 1, {}, A)
    return journal


@pytest.mark.parametrize("operation", CALLS)
def test_anything_in_any_position_is_answered_or_refused(db, operation):
    journal = set_up()
    names = sorted(CALLS[operation])
    spoilt_arguments = st.dictionaries(st.sampled_from(names), whatever, min_size=1)
    if "event" in names:
        spoilt_arguments |= spoilt_event().map(lambda recipe: {"event": recipe})
    call_with_anything(
        spoilt_arguments,
        lambda made: getattr(journal, operation)(**{**CALLS[operation], **made}),
        everything,
        invalid=InvalidEvent,
        broken=JournalError,
        examples=120,
    )


@pytest.mark.parametrize(
    ("operation", "argument"), [(name, each) for name, call in CALLS.items() for each in call]
)
@pytest.mark.parametrize(
    "number",
    [2**63, 10**5_000, -(10**5_000), float("nan")],
    ids=["2**63", "5,001 digits", "5,001 negative digits", "nan"],
)
def test_numbers_of_any_size_are_refused_or_answered(db, operation, argument, number):
    journal = set_up()
    before = everything()
    if (operation, argument) == ("checkpoint", "state") and number == 2**63:
        assert journal.checkpoint(**{**CALLS[operation], "state": number}).state == 2**63
        return
    with pytest.raises(JournalError):
        getattr(journal, operation)(**{**CALLS[operation], argument: number})
    assert everything() == before
