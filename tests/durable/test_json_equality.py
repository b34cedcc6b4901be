import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_runstore.durable import structurally_equal

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.0, 1.0, -1.0, 0.5])
    | st.sampled_from(["", "1", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.conformance(184)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (None, None),
        (True, True),
        (1, 1.0),
        (0, -0.0),
        (2**53, 2.0**53),
        ("é", "é"),
        ([], []),
        ({}, {}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": [{"b": 1, "c": 2}]}, {"a": [{"c": 2.0, "b": 1}]}),
    ],
)
def test_values_that_say_the_same_are_equal(first, second):
    assert structurally_equal(first, second)
    assert structurally_equal(second, first)


@pytest.mark.conformance(184)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (True, 1),
        (False, 0),
        (True, 1.0),
        (True, False),
        (None, False),
        (None, 0),
        ("1", 1),
        ("", None),
        ("a", "b"),
        (1, 2),
        (2**53 + 1, 2.0**53),
        ([], {}),
        ([1], 1),
        ([1, 2], [2, 1]),
        ([1], [1, 1]),
        ([True], [1]),
        ({"a": None}, {}),
        ({"a": 1}, {"b": 1}),
        ({"a": True}, {"a": 1}),
        ({"0": 1}, [1]),
        ([[1, [2]], 3], [[1, [4]], 3]),
    ],
)
def test_values_that_say_something_else_are_unequal(first, second):
    assert not structurally_equal(first, second)
    assert not structurally_equal(second, first)


@given(json_values)
def test_a_copy_is_equal(value):
    assert structurally_equal(value, copy.deepcopy(value))


@given(json_values, json_values)
def test_equality_is_symmetric(first, second):
    assert structurally_equal(first, second) is structurally_equal(second, first)


@given(json_values, json_values)
def test_equality_implies_equality_in_python(first, second):
    if structurally_equal(first, second):
        assert first == second


def test_deep_values_need_no_stack():
    first: list = []
    second: list = []
    for _ in range(100_000):
        first, second = [first], [second]

    assert structurally_equal(first, second)
    assert not structurally_equal(first, [second])


def test_shared_references_are_compared_once():
    first: list = [1]
    second: list = [1.0]
    for _ in range(200):
        first, second = [first, first], [second, second]

    assert structurally_equal(first, second)


def test_a_difference_after_a_shared_reference_is_found():
    shared = [1]

    assert not structurally_equal([shared, shared, 1], [[1], [1], 2])
    assert not structurally_equal([shared, shared], [[1], [2]])


def test_cycles_end():
    first: list = []
    first.append(first)
    second: list = []
    second.append(second)

    assert structurally_equal(first, second)


class Agreeable:
    def __eq__(self, other):
        return True

    __hash__ = None


@pytest.mark.parametrize("other", [1, "a", None, True, [], {}])
def test_an_object_that_claims_to_equal_everything_equals_nothing(other):
    assert not structurally_equal(Agreeable(), other)
    assert not structurally_equal(other, Agreeable())
