import json
import subprocess
import sys
import threading

import pytest
from django.utils.safestring import SafeString
from hypothesis import given
from hypothesis import strategies as st

from django_runstore.durable import (
    JsonComplaint,
    admit_json,
    admit_json_text,
    canonical_json,
    encode_json,
    json_text,
    parse_json_text,
    structurally_equal,
)

LONE_SURROGATE = "\ud800"

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


def short(value):
    return ascii(value)[:30]


def complaint_about(text, **options) -> JsonComplaint:
    with pytest.raises(JsonComplaint) as caught:
        admit_json_text(text, **options)
    return caught.value


class TestAdmittedText:
    @pytest.mark.parametrize(
        "text",
        [
            "null",
            "true",
            "-0",
            "1e2",
            '"x"',
            "[]",
            "{}",
            ' \t\r\n{ "b" : 1 , "a" : [ ] } \n',
            '{"a":1,"a":2}',
            '"\\u0000"',
            '"\\ud83d\\ude00"',
            '"\\u00e9é😀"',
            "12345678901234567890123",
            "0.10000000000000000000001",
            "1" * 308,
            str(2**1024 - 2**970 - 1),  # rounds to the greatest float
        ],
        ids=short,
    )
    def test_text_is_returned_character_for_character(self, text):
        assert admit_json_text(text) == text

    def test_a_subclass_of_str_is_copied_into_an_exact_str(self):
        admitted = admit_json_text(SafeString("{}"))

        assert (type(admitted), admitted) == (str, "{}")

    @given(json_values, st.sampled_from([None, 1, 4]), st.booleans())
    def test_whatever_json_writes_is_admitted(self, value, indent, ascii_only):
        text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)

        assert admit_json_text(text) == text

    @given(json_values)
    def test_parsing_gives_what_was_written(self, value):
        assert parse_json_text(json.dumps(value)) == value

    def test_the_last_of_repeated_keys_is_read(self):
        assert parse_json_text('{"a":1,"a":2}') == {"a": 2}

    def test_large_integers_are_read_exactly(self):
        assert parse_json_text("[9007199254740993]") == [9007199254740993]


class TestRefusedText:
    @pytest.mark.conformance(188)
    @pytest.mark.parametrize("text", [None, "", b"{}", 1, {}, []])
    def test_anything_but_text_is_no_json_text(self, text):
        assert str(complaint_about(text)) == "must be non-empty JSON text"

    @pytest.mark.conformance(188)
    @pytest.mark.parametrize(
        "text",
        [
            "{",
            " ",
            "{}x",
            "{'a':1}",
            "[1,]",
            "01",
            "+1",
            ".5",
            "1.",
            "NaN",
            "[Infinity]",
            '{"a":-Infinity}',
            '{"a":NaN,"a":1}',
            '"\n"',
            '"\0"',
            "\0",
            "\ufeff{}",
            "\u00a0{}",
            "١",  # noqa: RUF001 - a digit, but not one of JSON
            '"\\x"',
            "undefined",
        ],
    )
    def test_text_that_is_not_strict_json(self, text):
        assert str(complaint_about(text)) == "must be valid JSON text"

    @pytest.mark.parametrize(
        "text",
        [
            "1e400",
            "[-1e400]",
            "1" + "0" * 309,
            str(2**1024 - 2**970),  # rounds to 2**1024
            "1" * 4300,
            "1" * 4301,
            "[" + "9" * 100_000 + "]",
            "-" + "9" * 5000,
        ],
        ids=short,
    )
    def test_numbers_without_a_finite_float(self, text):
        assert str(complaint_about(text)) == "contains a non-finite number"

    @pytest.mark.parametrize("limit", ["0", "640", "4300"])
    def test_the_interpreters_digit_limit_changes_nothing(self, limit):
        script = (
            "from django_runstore.durable import *\n"
            "for text in ('9' * 309, '9' * 1000):\n"
            "    try: admit_json_text(text)\n"
            "    except JsonComplaint as complaint: print(complaint)\n"
            "print(len(encode_json(10 ** 308)))\n"
        )
        answer = subprocess.run(
            [sys.executable, "-X", f"int_max_str_digits={limit}", "-c", script],
            capture_output=True,
            text=True,
            check=True,
        )

        assert answer.stdout.splitlines() == ["contains a non-finite number"] * 2 + ["309"]

    @pytest.mark.parametrize(
        "text", ['"\\ud800"', '{"a":["\\uDFFF"]}', '"\\ude00\\ud83d"', f'"{LONE_SURROGATE}"']
    )
    def test_lone_surrogates_escaped_or_not(self, text):
        assert str(complaint_about(text)) == "contains unbounded or ill-formed text"

    def test_a_lone_surrogate_in_a_value_that_a_repeated_key_hides(self):
        text = f'{{"a":"{LONE_SURROGATE}","a":1}}'

        assert str(complaint_about(text)) == "contains unbounded or ill-formed text"

    def test_a_lone_surrogate_in_a_key(self):
        complaint = complaint_about('{"\\ud800":1}')

        assert str(complaint) == "contains an unbounded or ill-formed object key"

    def test_the_complaint_says_where(self):
        assert complaint_about('{"items":[1,{"name":"\\ud800"}]}').path == "$.items[1].name"


class TestLimits:
    @pytest.mark.parametrize(
        "text",
        ["[" * 129 + "]" * 129, "[" * 128 + "1" + "]" * 128, '{"a":' * 128 + "{}" + "}" * 128],
        ids=short,
    )
    def test_values_at_depth_128_are_admitted(self, text):
        assert admit_json_text(text) == text

    @pytest.mark.parametrize(
        "text",
        [
            "[" * 130 + "]" * 130,
            "[" * 129 + "1" + "]" * 129,
            '{"a":' * 129 + "1" + "}" * 129,
            "[" * 5_000 + "]" * 5_000,
            "[" * 500_000 + "]" * 500_000,
            '{"a":' * 500_000 + "1" + "}" * 500_000,
        ],
        ids=short,
    )
    def test_values_at_depth_129_and_beyond_are_refused(self, text):
        assert str(complaint_about(text)) == "exceeds the maximum JSON depth of 128"

    def test_brackets_in_strings_are_no_depth(self):
        text = json.dumps(["[{" * 1000, '"[' * 1000, "\\[" * 1000])

        assert admit_json_text(text) == text

    @pytest.mark.parametrize(
        ("text", "too_deep"),
        [
            ("[" * 129 + "]" * 129, False),
            ("[" * 130 + "]" * 130, True),
            ("[" + ",".join(["[]"] * 1000) + "]", False),
            ('["' + "[" * 1000 + '"]', False),
            ('["\\"' + "[" * 1000 + '"]', False),
            ('{"a":' * 130, True),
        ],
        ids=short,
    )
    def test_only_deep_text_is_blamed_for_a_used_up_stack(self, text, too_deep):
        assert json_text._nests_too_deeply(text) is too_deep

    def test_a_used_up_stack_is_not_blamed_on_the_text(self):
        text = '["[[[[[[\\"[",' + "[" * 100 + "]" * 100 + "]"
        answers: list[object] = []

        def read_ever_deeper():
            try:
                answers.append(admit_json_text(text))
            except JsonComplaint as complaint:
                answers.append(complaint)
            read_ever_deeper()

        def run():
            with pytest.raises(RecursionError):
                read_ever_deeper()

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()

        assert set(answers) == {text}

    def test_100000_values_are_admitted(self):
        text = "[" + ",".join(["0"] * 99_999) + "]"

        assert admit_json_text(text) == text

    def test_100001_values_are_refused(self):
        text = "[" + ",".join(["0"] * 100_000) + "]"

        assert str(complaint_about(text)) == "contains more than 100000 JSON values"

    def test_100001_members_are_refused(self):
        text = "[" + ",".join(["0"] * 100_001) + "]"

        assert str(complaint_about(text)) == "exceeds the JSON members limit"

    def test_large_text_of_few_values_has_no_limit(self):
        text = json.dumps({"text": "x" * 4_000_000})

        assert admit_json_text(text) == text

    @pytest.mark.conformance(188)
    def test_white_space_counts_toward_a_byte_limit(self):
        assert admit_json_text(" {} ", max_bytes=4) == " {} "
        assert str(complaint_about(" {}  ", max_bytes=4)) == "exceeds the JSON byte limit"

    def test_a_byte_limit_counts_utf8_bytes(self):
        assert admit_json_text('"é"', max_bytes=4) == '"é"'
        assert str(complaint_about('"éé"', max_bytes=5)) == "exceeds the JSON byte limit"

    def test_a_byte_limit_holds_for_the_value_too(self):
        complaint = complaint_about("[1e20]", max_bytes=6)  # 21 digits as JavaScript writes it

        assert str(complaint) == "exceeds the JSON byte limit"


class TestDiagnostics:
    @pytest.mark.parametrize(
        "text",
        [
            '{"token":"secret-4711"',
            '{"token":"secret-4711","n":NaN}',
            '{"token":"secret-4711","n":' + "9" * 5000 + "}",
            '{"token":"secret-4711","n":' + "[" * 500_000 + "]" * 500_000 + "}",
            '{"token":"secret-4711","n":"\\ud800"}',
        ],
        ids=short,
    )
    def test_a_complaint_does_not_carry_the_text_anywhere(self, text):
        complaint = complaint_about(text)

        assert complaint.__context__ is None
        assert complaint.__cause__ is None
        assert "secret" not in f"{complaint!r}{complaint.__dict__}"


class TestScreening:
    """Most texts skip the full walk; the answer may not depend on it."""

    @given(
        st.recursive(
            st.sampled_from(
                ["1", "1e400", "9" * 310, '"\\ud800"', '"\\\\ud800"', '"x"', "0.5", "-1", "null"]
            ),
            lambda inner: (
                st.lists(inner, max_size=4).map(lambda parts: f"[{','.join(parts)}]")
                | st.lists(st.tuples(st.sampled_from(['"a"', '"\\udc00"']), inner), max_size=4).map(
                    lambda pairs: "{" + ",".join(f"{key}:{value}" for key, value in pairs) + "}"
                )
            ),
            max_leaves=12,
        )
    )
    def test_text_and_parsed_value_get_the_same_answer(self, text):
        def answer(admit):
            try:
                return encode_json(admit())
            except JsonComplaint as complaint:
                return (str(complaint), complaint.path)

        assert answer(lambda: parse_json_text(text)) == answer(lambda: admit_json(json.loads(text)))


class TestEncoding:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (None, "null"),
            (True, "true"),
            ({"b": [1, 2.5], "a": {}}, '{"b":[1,2.5],"a":{}}'),
            ((1, ("x",)), '[1,["x"]]'),
            ("Zürich 😀\0", '"Zürich 😀\\u0000"'),
            (2**64 + 1, "18446744073709551617"),
        ],
    )
    def test_text_is_compact_unescaped_and_in_order(self, value, text):
        assert encode_json(value) == text

    @given(json_values)
    def test_encoded_values_are_admitted_and_read_back(self, value):
        text = encode_json(value)

        assert admit_json_text(text) == text
        assert parse_json_text(text) == value

    @given(json_values)
    def test_encoding_is_idempotent(self, value):
        text = encode_json(value)

        assert encode_json(parse_json_text(text)) == text

    @pytest.mark.parametrize(
        ("value", "complaint"),
        [
            (float("nan"), "contains a non-finite number"),
            pytest.param(10**5000, "contains a non-finite number", id="5001 digits"),
            ({1: 2}, "contains an unbounded or ill-formed object key"),
            (object(), "contains a non-plain object"),
        ],
    )
    def test_what_is_not_admitted_is_not_encoded(self, value, complaint):
        for encode in (encode_json, canonical_json):
            with pytest.raises(JsonComplaint, match=complaint):
                encode(value)

    def test_a_byte_limit_is_passed_on(self):
        assert encode_json("x" * 30, max_bytes=32) == f'"{"x" * 30}"'
        with pytest.raises(JsonComplaint):
            encode_json("x" * 31, max_bytes=32)


class TestCanonicalText:
    def test_keys_are_sorted_at_every_level(self):
        value = {"b": [{"d": 1, "c": 2}], "a": {"z": None, "y": "é"}}

        assert canonical_json(value) == '{"a":{"y":"é","z":null},"b":[{"c":2,"d":1}]}'

    @pytest.mark.parametrize(
        ("value", "text"),
        [(1.0, "1"), (-0.0, "0"), (1.5, "1.5"), (True, "true"), ([2.0], "[2]")],
    )
    def test_a_float_without_a_fraction_is_written_as_an_integer(self, value, text):
        assert canonical_json(value) == text

    @given(json_values, json_values)
    def test_equal_texts_are_equal_values(self, first, second):
        assert (canonical_json(first) == canonical_json(second)) is structurally_equal(
            first, second
        )

    @given(json_values)
    def test_it_can_be_read_back(self, value):
        assert structurally_equal(parse_json_text(canonical_json(value)), value)
