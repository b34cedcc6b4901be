"""Spec 8.1: which parts of a value are replaced."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_runstore.redaction import redact
from tests.conformance.hostile import HOSTILE, Text, touched


@pytest.mark.parametrize(
    "held",
    ["abc", "", 12, 1.5, True, None, ["a"], {"a": "b"}],
    ids=lambda held: type(held).__name__,
)
def test_whatever_a_field_of_a_credential_holds_is_replaced(held):
    assert redact({"password": held, "other": 1}) == {"password": "[REDACTED]", "other": 1}


@pytest.mark.parametrize("name", ["token", "tokens", "max_tokens", "completionTokens"])
@pytest.mark.parametrize("count", [0, 12, 1.5])
def test_a_count_of_tokens_is_kept(name, count):
    assert redact({name: count}) == {name: count}


@pytest.mark.parametrize("held", ["12", True, None, [12]], ids=str)
def test_what_is_no_number_is_no_count(held):
    assert redact({"max_tokens": held}) == {"max_tokens": "[REDACTED]"}


def test_fields_are_found_at_every_level():
    value = {"a": [{"b": ({"secret": 1},)}], "c": {"d": {"apiKey": "x"}}}
    assert redact(value) == {
        "a": [{"b": [{"secret": "[REDACTED]"}]}],
        "c": {"d": {"apiKey": "[REDACTED]"}},
    }


def test_texts_are_scanned_and_so_are_the_names_of_fields():
    assert redact(["password=abc"]) == ["password=[REDACTED]"]
    assert redact("password=abc") == "password=[REDACTED]"
    assert redact({"sk-abcdefghij0123456789": 1}) == {"[REDACTED]": 1}


def test_a_container_inside_itself_is_named():
    value: dict = {"n": 1}
    value["self"] = value
    value["list"] = [value]
    assert redact(value) == {"n": 1, "self": "[Circular]", "list": ["[Circular]"]}


def test_the_same_container_twice_is_no_circle():
    shared = {"n": 1}
    assert redact([shared, shared]) == [{"n": 1}, {"n": 1}]


def test_the_callers_value_is_not_changed():
    inner = {"secret": "x"}
    value = {"inner": inner}
    assert redact(value) == {"inner": {"secret": "[REDACTED]"}}
    assert value == {"inner": inner} == {"inner": {"secret": "x"}}


@pytest.mark.parametrize("name", HOSTILE)
def test_other_objects_are_handed_on_and_none_of_their_code_is_run(name):
    touched.clear()
    made = HOSTILE[name]()
    (handed_on,) = redact([made])
    assert handed_on is made
    kept = {made: 1} if type(made).__hash__ is object.__hash__ else {}
    assert redact(kept) is kept or kept == {}
    assert redact(Text("password=abc")) == "password=[REDACTED]"
    assert touched == []


def test_dates_are_left_to_whoever_encodes_them():
    assert redact({"at": dt.date(2026, 10, 1)}) == {"at": dt.date(2026, 10, 1)}


def test_more_levels_than_an_event_holds_do_not_exhaust_the_stack():
    value: list = []
    for _ in range(100_000):
        value = [value]
    assert redact(value) != []


def test_a_value_that_unfolds_to_more_than_an_event_holds_is_refused():
    value: list = [1]
    for _ in range(40):
        value = [value, value]
    with pytest.raises(ValueError, match="too many values"):
        redact(value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters(categories=["Lu"])),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["a", "b", "run"]), inner),
    )
)
def test_a_value_without_credentials_is_kept(value):
    assert redact(value) == value
