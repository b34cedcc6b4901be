from decimal import Decimal
from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_runstore.durable import MAX_SAFE_INTEGER, safe_integer


class Round(IntEnum):
    SECOND = 2


class HostileInteger(int):
    """A number none of whose own methods may run."""

    __slots__ = ()

    def _refuse(self, *_arguments):
        raise RuntimeError

    __int__ = __index__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __eq__ = __hash__ = __getattribute__ = _refuse


class Hostile:
    def __getattribute__(self, name):
        raise RuntimeError(name)


def test_the_greatest_safe_integer_is_that_of_a_double():
    assert MAX_SAFE_INTEGER == 9_007_199_254_740_991


@pytest.mark.parametrize("number", [0, 1, 2**53 - 1])
def test_integers_up_to_the_limit_are_admitted(number):
    assert safe_integer(number) == number


@pytest.mark.parametrize("number", [-1, 2**53, 10**5000, -(10**5000)], ids=int.bit_length)
def test_integers_outside_the_range_are_refused(number):
    assert safe_integer(number) is None


@pytest.mark.parametrize("value", [True, False])
def test_a_bool_is_not_an_integer(value):
    assert safe_integer(value) is None


@pytest.mark.parametrize(
    "value", [1.0, 0.0, float("nan"), float("inf"), "1", b"1", None, Decimal(1), 1j, int]
)
def test_nothing_but_an_integer_is_admitted(value):
    assert safe_integer(value) is None


@pytest.mark.parametrize("value", [Round.SECOND, pytest.param(HostileInteger(2), id="hostile")])
def test_a_subclass_of_int_is_copied_into_an_exact_int(value):
    admitted = safe_integer(value)

    assert type(admitted) is int
    assert admitted == 2


def test_an_object_that_raises_on_every_look_is_refused_quietly():
    assert safe_integer(Hostile()) is None


@given(st.integers())
def test_admission_is_exactly_the_range(number):
    assert (safe_integer(number) is not None) is (0 <= number <= 2**53 - 1)
