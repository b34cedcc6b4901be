import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_runstore.durable.json_sizes import (
    container_bytes,
    javascript_text,
    number_bytes,
    text_bytes,
)


# ECMA-262, Number::toString.
@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.0, "-1"),
        (10.0, "10"),
        (1.5, "1.5"),
        (-1.5, "-1.5"),
        (0.1, "0.1"),
        (100.25, "100.25"),
        (0.0001, "0.0001"),
        (0.00001, "0.00001"),
        (0.000001, "0.000001"),
        (0.0000015, "0.0000015"),
        (1e-7, "1e-7"),
        (-1e-7, "-1e-7"),
        (1.5e-7, "1.5e-7"),
        (1.25e-10, "1.25e-10"),
        (1e15, "1000000000000000"),
        (1e16, "10000000000000000"),
        (123456789012345680.0, "123456789012345680"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.5e21, "1.5e+21"),
        (1e22, "1e+22"),
        (1e100, "1e+100"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
    ],
)
def test_floats_are_written_as_javascript_writes_them(number, text):
    assert javascript_text(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_javascript_text_reads_back_as_the_same_number(number):
    assert float(javascript_text(number)) == number


@pytest.mark.parametrize(
    ("number", "size"),
    [(0, 1), (-1, 2), (1.0, 1), (1e21, 5), (1e-7, 4), (-0.0, 1), (2**53 - 1, 16), (10**30, 31)],
)
def test_a_number_is_charged_its_characters(number, size):
    assert number_bytes(number) == size


@pytest.mark.conformance(183)
@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("", 2),
        ("a", 3),
        ('"', 4),
        ("\\", 4),
        ("\n", 4),
        ("\b\t\n\f\r", 12),
        ("\0", 8),
        ("\x1f", 8),
        ("\x7f", 3),
        ("/", 3),
        ("\x80", 4),
        ("\u07ff", 4),
        ("\u0800", 5),
        ("\u2028", 5),
        ("\uffff", 5),
        ("\U00010000", 6),
        ("x" * 30, 32),
        ("é" * 15, 32),
    ],
)
def test_a_string_is_charged_quotes_escapes_and_utf8(text, size):
    assert text_bytes(text) == size


@pytest.mark.parametrize(("members", "size"), [(0, 2), (1, 2), (2, 3), (5, 6)])
def test_a_container_is_charged_brackets_and_commas(members, size):
    assert container_bytes(members) == size
