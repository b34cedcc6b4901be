"""
Every attempt operation with arbitrary objects in every position.

Only typed errors come out, or an outcome where the input happens to be valid; a refused
call writes nothing, and no code of an argument is run.
"""

from typing import Any

import pytest
from hypothesis import strategies as st

from django_runstore.attempts import AttemptId, AttemptPatch, AttemptRecord, FinishAttempt
from django_runstore.errors import AttemptStoreError, InvalidAttempt
from tests.conformance.arbitrary import Recipe, anything, recipes
from tests.conformance.attempts import OPERATIONS, rows, started
from tests.conformance.fuzzing import call_with_anything

RECORDS = (AttemptId, AttemptRecord, FinishAttempt, AttemptPatch)

texts = st.sampled_from(["run", "step-digest", "running", "succeeded", ""])
small = st.integers(-1, 2)


def usually(likely: st.SearchStrategy[Any]) -> st.SearchStrategy[Recipe]:
    """Mostly what the field is for, so that the rest of the record is looked at too."""
    return st.one_of(likely.map(lambda value: Recipe(lambda: value)), anything)


identity = (usually(texts), usually(texts), usually(small))
records = st.one_of(
    recipes(AttemptId, *identity),
    recipes(AttemptRecord, *identity, usually(texts), usually(small), *[anything] * 7),
    recipes(FinishAttempt, *identity, usually(texts), usually(small), *[anything] * 3),
    recipes(AttemptPatch, *[anything] * 4),
    recipes(object.__new__, st.sampled_from(RECORDS)),
    anything,
)


def spoilt_arguments(operation: str) -> st.SearchStrategy[dict[str, Recipe]]:
    names = st.sampled_from(sorted(OPERATIONS[operation].arguments))
    return st.dictionaries(names, records, min_size=1)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_anything_in_any_position_is_answered_or_refused(db, operation):
    store = started()
    call_with_anything(
        spoilt_arguments(operation),
        lambda made: OPERATIONS[operation].on(store, **made),
        rows,
        invalid=InvalidAttempt,
        broken=AttemptStoreError,
        examples=100,
    )


@pytest.mark.parametrize(
    ("operation", "argument"),
    [(item.operation, name) for item in OPERATIONS.values() for name in item.arguments],
)
@pytest.mark.parametrize(
    "number",
    [2**63, 10**5_000, -(10**5_000), float("nan")],
    ids=["2**63", "5,001 digits", "5,001 negative digits", "nan"],
)
def test_numbers_of_any_size_are_refused(db, operation, argument, number):
    store = started()
    before = rows()
    if (argument, number) == ("checkpoint", 2**63):
        # An integer of any size that a float can hold is JSON.
        assert OPERATIONS[operation].on(store, checkpoint=number).code == "updated"
        return
    with pytest.raises(InvalidAttempt):
        OPERATIONS[operation].on(store, **{argument: number})
    assert rows() == before
