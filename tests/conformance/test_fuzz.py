"""
Every operation with arbitrary objects in every position.

Only typed errors come out, or an outcome where the input happens to be valid; a refused
call writes nothing, and no code of an argument is run.
"""

import pytest
from hypothesis import strategies as st

from django_runstore import InvalidRun, RunStoreError
from tests.conformance.arbitrary import Recipe, anything
from tests.conformance.calls import CALLS
from tests.conformance.fuzzing import call_with_anything
from tests.conformance.world import A, World, tables


def spoilt_arguments(operation: str) -> st.SearchStrategy[dict[str, Recipe]]:
    """Some of the operation's arguments, to be replaced by anything."""
    names = st.sampled_from(sorted(CALLS[operation].arguments))
    return st.dictionaries(names, anything, min_size=1)


def set_up() -> World:
    world = World()
    world.active(A)
    world.pending("other")
    return world


@pytest.mark.parametrize("operation", CALLS)
def test_anything_in_any_position_is_answered_or_refused(db, operation):
    world = set_up()
    call_with_anything(
        spoilt_arguments(operation),
        lambda made: CALLS[operation].on(world.store, **made),
        tables,
        invalid=InvalidRun,
        broken=RunStoreError,
        examples=80,
    )


@pytest.mark.parametrize(
    ("operation", "argument"),
    [(call.operation, name) for call in CALLS.values() for name in call.arguments],
)
@pytest.mark.parametrize(
    "number",
    [2**63, 10**5_000, -(10**5_000), float("nan")],
    ids=["2**63", "5,001 digits", "5,001 negative digits", "nan"],
)
def test_numbers_of_any_size_are_refused_or_answered(db, operation, argument, number):
    world = set_up()
    before = tables()
    with pytest.raises(RunStoreError):
        CALLS[operation].on(world.store, **{argument: number})
    assert tables() == before
