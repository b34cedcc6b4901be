import json
from collections import OrderedDict, defaultdict, namedtuple
from datetime import UTC, datetime
from decimal import Decimal
from enum import IntEnum
from functools import partial
from uuid import UUID

import pytest
from django.db.models import TextChoices
from django.utils.functional import SimpleLazyObject
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st

from django_runstore.durable import JsonComplaint, admit_json
from django_runstore.durable.json_values import JsonAdmission

LONE_SURROGATE = "\ud800"
Pair = namedtuple("Pair", "left right")  # noqa: PYI024 - the old form is the one with no annotations


def json_values(texts=None, numbers=None):
    texts = st.text() if texts is None else texts
    numbers = (
        st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        if numbers is None
        else numbers
    )
    scalars = st.none() | st.booleans() | numbers | texts
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
        max_leaves=20,
    )


def complaint_about(value, **options) -> JsonComplaint:
    with pytest.raises(JsonComplaint) as caught:
        admit_json(value, **options)
    return caught.value


def nested(levels: int, innermost: object = None) -> list:
    """Nest ``levels`` lists; the innermost is empty unless something is given."""
    value = [] if innermost is None else [innermost]
    for _ in range(levels - 1):
        value = [value]
    return value


class Colour(TextChoices):
    RED = "red"


class Priority(IntEnum):
    HIGH = 3


class Measure(float):
    def __float__(self):
        raise RuntimeError


class HostileType(type):
    """A metaclass that raises from whatever asks about its classes."""

    armed = False

    def _refuse(cls, *_arguments):
        if HostileType.armed:
            raise RuntimeError
        return True

    __hash__ = __eq__ = __instancecheck__ = __subclasscheck__ = __call__ = _refuse

    def __getattribute__(cls, name):
        if HostileType.armed:
            raise RuntimeError(name)
        return super().__getattribute__(name)


class Hostile(metaclass=HostileType):
    def __getattribute__(self, name):
        raise RuntimeError(name)


class HostileInstance:
    def __getattribute__(self, name):
        raise RuntimeError(name)


class HostileKey(str):
    """A string that refuses to be hashed, compared or read."""

    __slots__ = ()
    armed = False

    def __hash__(self):
        if HostileKey.armed:
            raise RuntimeError
        return 1

    def __eq__(self, other):
        if HostileKey.armed:
            raise RuntimeError
        return self is other


@pytest.fixture
def armed(monkeypatch):
    monkeypatch.setattr(HostileKey, "armed", True)
    hostile = object.__new__(Hostile)
    monkeypatch.setattr(HostileType, "armed", True)
    return hostile


class TestAdmission:
    @given(json_values())
    def test_plain_values_come_back_equal(self, value):
        assert admit_json(value) == value

    @given(json_values())
    def test_admission_is_idempotent(self, value):
        once = admit_json(value)

        assert json.dumps(admit_json(once)) == json.dumps(once)

    @given(json_values())
    def test_the_order_of_members_is_kept(self, value):
        assert json.dumps(admit_json(value)) == json.dumps(value)

    @given(json_values())
    def test_admitted_values_survive_a_round_trip_through_json(self, value):
        admitted = admit_json(value)

        assert json.loads(json.dumps(admitted, ensure_ascii=False)) == admitted

    def test_the_copy_is_detached(self):
        inner = [1]
        value = {"items": inner}
        admitted = admit_json(value)

        inner.append(2)
        value["more"] = True

        assert admitted == {"items": [1]}

    def test_a_shared_reference_is_copied_each_time(self):
        shared = [1]
        admitted = admit_json([shared, {"again": shared}, shared])

        assert admitted == [[1], {"again": [1]}, [1]]
        assert isinstance(admitted, list)
        assert admitted[0] is not admitted[2]

    def test_a_tuple_becomes_the_list_that_will_be_read_back(self):
        assert admit_json(({"rows": ((1, "a"), ())},)) == [{"rows": [[1, "a"], []]}]

    @pytest.mark.parametrize(
        ("value", "plain"),
        [
            (SafeString("<b>"), "<b>"),
            (Colour.RED, "red"),
            (Priority.HIGH, 3),
            (Measure(1.5), 1.5),
        ],
    )
    def test_subclasses_of_scalars_are_copied_into_the_plain_type(self, value, plain):
        [admitted] = admit_json([value])

        assert (type(admitted), admitted) == (type(plain), plain)

    def test_keys_are_copied_into_exact_strings(self):
        admitted = admit_json({Colour.RED: 1, SafeString("b"): 2})

        assert admitted == {"red": 1, "b": 2}
        assert isinstance(admitted, dict)
        assert [type(key) for key in admitted] == [str, str]

    def test_a_bool_stays_a_bool(self):
        admitted = admit_json([True, False, 1, 0])

        assert json.dumps(admitted) == "[true, false, 1, 0]"

    @pytest.mark.parametrize("key", ["__proto__", "constructor", "", "\0", "a b", "😀"])
    def test_no_key_name_is_reserved(self, key):
        assert admit_json({key: 1}) == {key: 1}

    @pytest.mark.parametrize("text", ["\0", "\n", "\ufffd", "\uffff", "😀", ""])
    def test_any_well_formed_text_is_a_value(self, text):
        assert admit_json(text) == text

    @pytest.mark.parametrize("number", [2**53 + 1, -(2**63), 10**300 + 7])
    def test_finite_integers_are_kept_exactly(self, number):
        assert admit_json(number) == number

    @pytest.mark.parametrize("number", [5e-324, 1.7976931348623157e308, -0.0, 0.1])
    def test_finite_floats_are_kept_exactly(self, number):
        assert repr(admit_json(number)) == repr(number)


@pytest.mark.conformance(186)
class TestRefusals:
    @pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
    def test_non_finite_floats(self, number):
        assert str(complaint_about([number])) == "contains a non-finite number"

    @pytest.mark.parametrize(
        "number",
        [2**1024, -(2**1024), 10**309, 10**4299, 10**4300, 10**5000, -(10**5000)],
        ids=int.bit_length,
    )
    def test_integers_that_no_float_can_hold(self, number):
        assert str(complaint_about(number)) == "contains a non-finite number"

    def test_the_greatest_finite_integer_is_the_one_that_rounds_to_the_greatest_float(self):
        halfway = 2**1024 - 2**970  # the first integer that would round to 2**1024

        assert admit_json(halfway - 1) == halfway - 1
        assert str(complaint_about(halfway)) == "contains a non-finite number"

    @pytest.mark.parametrize("text", [LONE_SURROGATE, "a\udfff", "\ud83d\ude00"])
    def test_ill_formed_text(self, text):
        assert str(complaint_about({"a": text})) == "contains unbounded or ill-formed text"

    @pytest.mark.parametrize("key", [LONE_SURROGATE, 1, None, 1.5, True, b"a", ("a",)])
    def test_keys_that_are_not_well_formed_strings(self, key):
        complaint = complaint_about({key: 1})

        assert str(complaint) == "contains an unbounded or ill-formed object key"

    @pytest.mark.conformance("D13")
    @pytest.mark.parametrize(
        ("value", "type_name"),
        [
            (b"", "bytes"),
            (bytearray(), "bytearray"),
            (memoryview(b""), "memoryview"),
            (1j, "complex"),
            (..., "ellipsis"),
            (lambda: None, "function"),
            (len, "function"),
            (Colour.RED.upper, "function"),
            (TestAdmission().test_a_bool_stays_a_bool, "function"),
            (int, "class"),
        ],
    )
    def test_built_in_values_that_json_has_no_form_for(self, value, type_name):
        assert str(complaint_about([value])) == f"contains a non-JSON {type_name}"

    @pytest.mark.conformance("D13")
    @pytest.mark.parametrize(
        "value",
        [
            object(),
            datetime(2026, 1, 1, tzinfo=UTC),
            Decimal(1),
            UUID(int=1),
            {1},
            frozenset(),
            range(3),
            iter([]),
            {}.keys(),
            partial(int),
            OrderedDict(),
            defaultdict(int),
            Pair(1, 2),
            type("Items", (list,), {})(),
            gettext_lazy("text"),
            SimpleLazyObject(dict),
            Colour,
        ],
    )
    def test_objects_that_are_not_plain(self, value):
        assert str(complaint_about([value])) == "contains a non-plain object"

    def test_a_list_inside_itself(self):
        value: list = []
        value.append(value)

        assert str(complaint_about(value)) == "contains a cycle"

    def test_a_dict_inside_a_tuple_inside_itself(self):
        value: dict = {}
        value["self"] = ([value],)

        assert str(complaint_about(value)) == "contains a cycle"

    def test_a_dict_that_another_thread_changes_meanwhile(self, monkeypatch):
        def interrupted(_self, _source):
            raise RuntimeError("dictionary changed size during iteration")

        monkeypatch.setattr(JsonAdmission, "_read_members", interrupted)

        complaint = complaint_about([{}])

        assert str(complaint) == "cannot be inspected without executing object code"
        assert complaint.__context__ is None


class TestHostileObjects:
    @pytest.mark.conformance(186)
    def test_an_object_that_raises_on_every_look_is_not_plain(self, armed):
        assert str(complaint_about([armed])) == "contains a non-plain object"

    def test_a_class_whose_metaclass_raises_is_not_plain(self, monkeypatch):
        monkeypatch.setattr(HostileType, "armed", True)

        assert str(complaint_about([Hostile])) == "contains a non-plain object"

    def test_an_object_is_not_a_key(self):
        complaint = complaint_about({HostileInstance(): 1})

        assert str(complaint) == "contains an unbounded or ill-formed object key"

    def test_hostile_keys_are_read_without_hashing_or_comparing_them(self, monkeypatch):
        value = {HostileKey(str(number)): number for number in range(9)}
        # A dict with gaps is not copied as a block but key by key.
        for key in list(value)[2:]:
            del value[key]
        monkeypatch.setattr(HostileKey, "armed", True)

        assert admit_json(value) == {"0": 0, "1": 1}

    def test_a_hostile_string_is_copied_without_running_it(self, monkeypatch):
        monkeypatch.setattr(HostileKey, "armed", True)

        assert admit_json([HostileKey("a")]) == ["a"]

    def test_a_pretended_class_is_not_believed(self):
        class Pretender:
            __class__ = dict

        assert str(complaint_about(Pretender())) == "contains a non-plain object"


class TestDepth:
    def test_129_nested_empty_lists_are_admitted(self):
        value = nested(129)

        assert admit_json(value) == value

    @pytest.mark.conformance(186, 187)
    def test_130_nested_lists_are_refused(self):
        assert str(complaint_about(nested(130))) == "exceeds the maximum JSON depth of 128"

    @pytest.mark.conformance(187)
    def test_a_scalar_at_depth_128_is_admitted(self):
        value = nested(128, 1)

        assert admit_json(value) == value

    @pytest.mark.conformance(187)
    def test_a_scalar_at_depth_129_is_refused(self):
        assert str(complaint_about(nested(129, 1))) == "exceeds the maximum JSON depth of 128"

    def test_objects_nest_as_lists_do(self):
        value: dict = {}
        for _ in range(128):
            value = {"a": value}

        assert admit_json(value) == value
        assert str(complaint_about({"a": value})) == "exceeds the maximum JSON depth of 128"

    def test_nesting_without_end_needs_no_stack(self):
        assert str(complaint_about(nested(200_000))) == "exceeds the maximum JSON depth of 128"


class TestCounts:
    @pytest.mark.conformance(187)
    def test_100000_values_are_admitted(self):
        value = [0] * 99_999  # and the list itself

        assert admit_json(value) == value

    @pytest.mark.conformance(186, 187)
    def test_100001_values_are_refused(self):
        complaint = complaint_about([0] * 100_000)

        assert str(complaint) == "contains more than 100000 JSON values"

    def test_shared_references_are_counted_each_time(self):
        shared = [0] * 999  # 1,000 values with the list

        assert admit_json([shared] * 99 + [0] * 999) is not None
        assert (
            str(complaint_about([shared] * 99 + [0] * 1000))
            == "contains more than 100000 JSON values"
        )

    @pytest.mark.conformance(186, 187)
    def test_100001_members_of_one_list_are_refused(self):
        assert str(complaint_about([0] * 100_001)) == "exceeds the JSON members limit"

    def test_100001_members_of_one_object_are_refused(self):
        value = {str(number): 0 for number in range(100_001)}

        assert str(complaint_about(value)) == "exceeds the JSON members limit"

    @pytest.mark.conformance(183, 187)
    def test_members_are_counted_over_all_containers(self):
        value = {"a": [0] * 50_000, "b": [0] * 49_999}  # 2 + 50,000 + 49,999 members

        assert str(complaint_about(value)) == "exceeds the JSON members limit"

    def test_doubling_references_are_refused_without_being_unfolded(self):
        value: list = []
        for _ in range(100):
            value = [value, value]

        assert str(complaint_about(value)).startswith(("contains more than", "exceeds the JSON"))


class TestBytes:
    @pytest.mark.parametrize(
        ("value", "size"),
        [
            (None, 4),
            (True, 4),
            (False, 5),
            (0, 1),
            (-12, 3),
            (1.0, 1),
            (-0.0, 1),
            (0.5, 3),
            (1e21, 5),
            (1e-7, 4),
            ("", 2),
            ("\n", 4),
            ("\x01", 8),
            ("é", 4),
            ("😀", 6),
            ([], 2),
            ([0], 3),
            ([0, 0, 0], 7),
            ((0, 0), 5),
            ({}, 2),
            ({"a": 1}, 2 + 4 + 1),
            ({"a": 1, "é": [None]}, 2 + 1 + (3 + 1 + 1) + (4 + 1 + 2 + 4)),
            ("x" * 30, 32),
            ("é" * 15, 32),
        ],
    )
    def test_a_value_costs_exactly_its_bytes(self, value, size):
        admit_json(value, max_bytes=size)
        with pytest.raises(JsonComplaint):
            admit_json(value, max_bytes=size - 1)

    def test_30_characters_fit_into_32_bytes(self):
        assert admit_json("x" * 30, max_bytes=32) == "x" * 30

    def test_31_characters_do_not_fit_into_32_bytes(self):
        complaint = complaint_about("x" * 31, max_bytes=32)

        assert str(complaint) == "contains unbounded or ill-formed text"

    def test_15_two_byte_characters_fit_into_32_bytes(self):
        assert admit_json("é" * 15, max_bytes=32) == "é" * 15

    def test_16_two_byte_characters_do_not_fit_into_32_bytes(self):
        complaint = complaint_about("é" * 16, max_bytes=32)

        assert str(complaint) == "contains unbounded or ill-formed text"

    @pytest.mark.conformance(186)
    def test_a_key_over_the_limit_is_an_unbounded_key(self):
        complaint = complaint_about({"x" * 31: 1}, max_bytes=32)

        assert str(complaint) == "contains an unbounded or ill-formed object key"

    @pytest.mark.conformance(186)
    @pytest.mark.parametrize(
        "value", [["x" * 20, "x" * 20], {"x" * 20: "x" * 20}, [0] * 17, [None] * 8, [[]] * 11]
    )
    def test_a_sum_over_the_limit_exceeds_it(self, value):
        assert str(complaint_about(value, max_bytes=32)) == "exceeds the JSON byte limit"

    @given(json_values(numbers=st.integers(-(2**53), 2**53)))
    def test_without_floats_the_cost_is_the_size_of_the_compact_text(self, value):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        size = len(text.encode())

        admit_json(value, max_bytes=size)
        with pytest.raises(JsonComplaint):
            admit_json(value, max_bytes=size - 1)


class TestPaths:
    @pytest.mark.parametrize(
        ("value", "path"),
        [
            (b"", "$"),
            ([0, b""], "$[1]"),
            ({"items": [0, 0, 0, {"name": b""}]}, "$.items[3].name"),
            ({"a": [[], {"b": {}}], "line_2": b""}, "$.line_2"),
            ({"first": 1, "not a name": b""}, "${1}"),
            ({"first": 1, "sk4live2key": [b""]}, "${1}[0]"),
            ({"a": {"b": 1, LONE_SURROGATE: 2}}, "$.a{1}"),
            ({"a": (0, b"")}, "$.a[1]"),
        ],
    )
    def test_the_path_leads_to_the_refused_value(self, value, path):
        assert complaint_about(value).path == path

    def test_a_deep_path_shows_its_ends(self):
        path = complaint_about({"start": nested(128, 1)}).path

        assert path == "$.start" + "[0]" * 7 + "..." + "[0]" * 8

    @given(json_values())
    def test_neither_text_nor_path_repeats_a_value_or_grows(self, value):
        complaint = complaint_about(["secret-4711", {"secret 4711": [value, b"secret-4711"]}])

        assert str(complaint) == "contains a non-JSON bytes"
        assert complaint.path == "$[1]{0}[1]"
