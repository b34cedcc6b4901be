import pytest
from django.db.models import TextChoices
from django.utils.safestring import SafeString
from hypothesis import given
from hypothesis import strategies as st

from django_runstore.durable import durable_text, is_durable_text, utf16_units

LONE_HIGH = "\ud83d"
LONE_LOW = "\ude00"
CJK = "字"  # 1 UTF-16 unit, 3 UTF-8 bytes
TWO_BYTES = "é"  # 1 UTF-16 unit, 2 UTF-8 bytes
ASTRAL = "😀"  # 2 UTF-16 units, 4 UTF-8 bytes


class Colour(TextChoices):
    RED = "red"


class Hostile:
    """Raises from everything that an inspection may touch."""

    def __getattribute__(self, name):
        raise RuntimeError(name)


class HostileText(str):
    """A string none of whose own methods may run."""

    __slots__ = ()

    def _refuse(self, *_arguments):
        raise RuntimeError

    __str__ = __repr__ = __len__ = __iter__ = __contains__ = encode = _refuse
    __eq__ = __hash__ = __getattribute__ = _refuse


@pytest.mark.conformance(185)
@pytest.mark.parametrize(
    "text", ["run", " ", "run-\n", "\x7f", "\ufffd", ASTRAL, "a\u0301", "\u2028", "ünïcode"]
)
def test_plain_unicode_and_astral_text_is_admitted_unchanged(text):
    assert durable_text(text) == text


@pytest.mark.conformance(185)
@pytest.mark.parametrize("value", [None, 1, 1.5, b"run", ["run"], object(), str])
def test_only_strings_are_durable_text(value):
    assert durable_text(value) is None


@pytest.mark.conformance(185)
def test_empty_text_is_refused():
    assert durable_text("") is None


@pytest.mark.conformance(185)
@pytest.mark.parametrize("text", ["\0", "a\0", "\0a", "é\0"])
def test_a_nul_is_refused_anywhere(text):
    assert durable_text(text) is None


@pytest.mark.conformance(185)
@pytest.mark.parametrize(
    "text", [LONE_HIGH, LONE_LOW, f"a{LONE_HIGH}b", LONE_LOW + LONE_HIGH, LONE_HIGH + LONE_LOW]
)
def test_surrogates_are_refused_even_in_the_order_of_a_pair(text):
    assert durable_text(text) is None


@pytest.mark.conformance(185)
@pytest.mark.parametrize(
    ("text", "admitted"),
    [
        ("x" * 1024, True),
        ("x" * 1025, False),
        (ASTRAL * 512, True),
        (ASTRAL * 512 + "x", False),
        (ASTRAL * 511 + "xx", True),
        (ASTRAL * 511 + "xxx", False),
    ],
    ids=lambda value: ascii(value)[-20:],
)
def test_the_length_limit_is_1024_utf16_units(text, admitted):
    assert is_durable_text(text) is admitted


@pytest.mark.parametrize(
    ("text", "size", "admitted"),
    [
        (TWO_BYTES * 1024, 2048, True),
        (CJK * 682 + "xx", 2048, True),
        (CJK * 682 + "xxx", 2049, False),
        (CJK * 683, 2049, False),
        (TWO_BYTES * 1023 + CJK, 2049, False),
    ],
    ids=lambda value: ascii(value)[-20:],
)
def test_the_size_limit_is_2048_utf8_bytes(text, size, admitted):
    assert len(text.encode()) == size
    assert is_durable_text(text) is admitted


@pytest.mark.parametrize(
    ("text", "units"), [("", 0), ("abc", 3), (ASTRAL, 2), (CJK, 1), (LONE_HIGH, 1), ("a😀b", 4)]
)
def test_utf16_units_count_astral_characters_twice(text, units):
    assert utf16_units(text) == units


def test_utf16_units_run_no_code_of_a_subclass():
    assert utf16_units(HostileText("red😀")) == 5


@given(st.text(st.characters()))
def test_utf16_units_are_characters_plus_astral_characters(text):
    assert utf16_units(text) == len(text) + sum(ord(character) > 0xFFFF for character in text)


@pytest.mark.parametrize(
    "value", [SafeString("red"), Colour.RED, pytest.param(HostileText("red"), id="hostile")]
)
def test_a_subclass_of_str_is_copied_into_an_exact_str(value):
    admitted = durable_text(value)

    assert type(admitted) is str
    assert admitted == "red"


def test_an_object_that_raises_on_every_look_is_refused_quietly():
    assert durable_text(Hostile()) is None


def test_a_class_attribute_that_pretends_to_be_str_is_not_believed():
    class Pretender:
        __class__ = str

    assert durable_text(Pretender()) is None


@given(st.text(max_size=1100))
def test_admission_follows_the_rules_for_any_text(text):
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        expected = False
    else:
        units = len(text.encode("utf-16-le")) // 2
        expected = 1 <= units <= 1024 and "\0" not in text and len(encoded) <= 2048

    assert is_durable_text(text) is expected


@given(st.text(min_size=1, max_size=600))
def test_admission_is_idempotent(text):
    admitted = durable_text(text)

    assert admitted is None or durable_text(admitted) == admitted
