"""Spec 8.1: how payload and meta become text."""

import datetime as dt
import json
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_runstore import UNSET
from django_runstore.durable import JsonComplaint, event_json, parse_event_json
from tests.conformance.hostile import HOSTILE, touched


def nested(containers: int, inner: object = None) -> object:
    value: object = [] if inner is None else [inner]
    for _ in range(containers - 1):
        value = [value]
    return value


def complaint_about(value: object) -> str:
    with pytest.raises(JsonComplaint) as caught:
        event_json(value)
    return str(caught.value)


def test_keys_are_sorted_at_every_level_and_nothing_is_spaced():
    value = {"b": [{"d": 1, "c": 2}], "a": {"z": None, "y": True}}
    assert event_json(value) == '{"a":{"y":true,"z":null},"b":[{"c":2,"d":1}]}'


@pytest.mark.parametrize(
    ("date", "text"),
    [
        (dt.date(2026, 10, 1), "2026-10-01"),
        (dt.datetime(2026, 10, 1, 3, 4, 5, tzinfo=dt.UTC), "2026-10-01T03:04:05+00:00"),
        (dt.datetime(2026, 10, 1, 3, 4, 5, 6), "2026-10-01T03:04:05.000006"),  # noqa: DTZ001 - naive
        (
            dt.datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")),
            "2026-01-01T00:00:00+01:00",
        ),
        (dt.time(1, 2), "01:02:00"),
    ],
)
def test_dates_become_iso_strings(date, text):
    assert event_json({"at": date}) == f'{{"at":"{text}"}}'


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_not_finite_become_null(number):
    assert event_json([number]) == "[null]"


def test_absent_members_drop():
    assert event_json({"a": UNSET, "b": [UNSET, 1]}) == '{"b":[null,1]}'
    assert complaint_about(UNSET) == "contains a non-plain object"


def test_one_and_one_point_nought_are_the_same_and_true_is_not():
    assert event_json([1, 1.0, 1.5, True]) == "[1,1,1.5,true]"


def test_256_containers_are_admitted_and_257_are_not():
    assert event_json(nested(256)) == "[" * 256 + "]" * 256
    assert event_json(nested(256, 1)) == "[" * 256 + "1" + "]" * 256
    assert complaint_about(nested(257)) == "exceeds the maximum event depth of 256"
    assert complaint_about(nested(100_000)) == "exceeds the maximum event depth of 256"


def test_what_unfolds_without_end_is_refused():
    value: list = [1]
    for _ in range(40):
        value = [value, value]
    assert complaint_about(value) == "exceeds the JSON members limit"


def test_a_circle_is_refused():
    value: list = []
    value.append(value)
    assert complaint_about(value) == "contains a cycle"


class Unreliable(dt.tzinfo):
    def utcoffset(self, _: object) -> dt.timedelta:
        raise RuntimeError("no offset today")


def test_a_date_that_cannot_be_written_is_refused():
    at = dt.datetime(2026, 1, 1, tzinfo=Unreliable())
    assert complaint_about(at) == "cannot be inspected without executing object code"


@pytest.mark.parametrize("name", HOSTILE)
def test_other_objects_are_refused_and_none_of_their_code_is_run(name):
    touched.clear()
    complaint_about([HOSTILE[name]()])
    assert touched == []


def test_text_that_no_database_stores_is_refused():
    assert complaint_about("\ud800") == "contains unbounded or ill-formed text"
    assert event_json("a\0b") == '"a\\u0000b"'


scalars = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(values)
def test_what_is_written_is_read_back(value):
    finite = json.loads(json.dumps(value), parse_constant=lambda _: None)
    assert parse_event_json(event_json(value)) == finite


@given(st.dictionaries(st.text(), st.integers()))
def test_equal_contents_have_equal_texts(value):
    turned = dict(reversed(list(value.items())))
    assert event_json(turned) == event_json(value)


@pytest.mark.parametrize("text", ["", "{", "NaN", "[1,]", None, b"{}", 1, "[" * 100_000])
def test_what_is_no_json_is_complained_of(text):
    with pytest.raises(JsonComplaint):
        parse_event_json(text)
