import pytest
from django.db import connection
from django.db.models import Q
from django.test.utils import CaptureQueriesContext

from django_runstore.admin.json_text import LONGEST_SHOWN, read_json, shown_json
from django_runstore.models import Run
from django_runstore.testing.factories import RunFactory

pytestmark = pytest.mark.django_db


def keep_all(value):
    return value


def keep_no_secret(value):
    return {key: "gone" if key == "secret" else item for key, item in value.items()}


def fail(value):
    raise ZeroDivisionError(value)


def make_unstorable(value):
    return {object()}


@pytest.fixture
def show():
    """What is shown of the state of a run."""

    def of(state_json, most=LONGEST_SHOWN, plain=None):
        run = RunFactory.raw(state_json=state_json)
        wanted = read_json("state_json", most, plain)
        values = Run.objects.filter(pk=run.pk).annotate(**wanted).values(*wanted).get()
        return shown_json(values, "state_json", most, is_plain=plain is not None)

    return of


def redact_by(settings, function):
    settings.RUNSTORE = {"ADMIN_REDACTOR": f"{__name__}.{function.__name__}"}


def test_a_short_text_is_indented_and_whole(show):
    shown = show('{"a":[1]}')
    assert (shown.text, shown.size, shown.note) == ('{\n  "a": [\n    1\n  ]\n}', 9, "")
    assert not shown.is_large


def test_a_long_text_is_cut_says_so_and_is_folded(show):
    shown = show(f'"{"x" * 98}"', most=40)
    assert (len(shown.text), shown.size) == (40, 100)
    assert shown.note == "The first 40 of 100 characters."
    assert show(f'"{"x" * 2_000}"').is_large
    assert show("[" + ",".join("1" * 30) + "]").is_large


@pytest.mark.parametrize("text", ["not json", "[" * 500 + "]" * 500, "1" * 5_000, '{"a":'])
def test_what_cannot_be_indented_is_shown_as_it_is(show, text):
    assert show(text).text == text


def test_a_text_that_indentation_would_inflate_is_shown_as_it_is(show):
    text = "[" * 100 + ",".join(["1"] * 1_000) + "]" * 100
    assert show(text).text == text


def test_marks_and_lone_surrogates_are_spelled_out(show):
    assert show('"\u202e \\ud800 \\u2066"').text == r'"\u202e \ud800 \u2066"'


class TestHidden:
    @pytest.fixture(autouse=True)
    def _hide(self, settings):
        settings.RUNSTORE = {"ADMIN_SHOWS_STATE": False}

    def test_it_is_neither_shown_nor_read(self, show):
        with CaptureQueriesContext(connection) as queries:
            shown = show('"hunter2"')
        assert (shown.text, shown.size) == (None, None)
        assert "Hidden by RUNSTORE" in shown.note
        selects = [query["sql"] for query in queries if query["sql"].startswith("SELECT")]
        assert not any("_state_json_head" in sql for sql in selects)

    def test_what_holds_no_secret_is_shown_all_the_same(self, show):
        assert show('"fact"', plain=Q(status="pending")).text == '"fact"'


class TestRedacted:
    def test_the_redactor_is_given_the_decoded_value(self, show, settings):
        redact_by(settings, keep_no_secret)
        shown = show('{"secret":"hunter2","page":7}')
        assert shown.text == '{\n  "secret": "gone",\n  "page": 7\n}'

    def test_it_sees_more_than_is_shown(self, show, settings):
        redact_by(settings, keep_no_secret)
        shown = show('{"pad":"' + "x" * 100 + '","secret":"hunter2"}', most=60)
        assert "hunter" not in shown.text
        assert len(shown.text) == 60

    def test_a_text_that_is_too_long_for_it_is_not_shown_at_all(self, show, settings):
        redact_by(settings, keep_all)
        # 50 times what is shown is given to it.
        assert show('"' + "x" * 498 + '"', most=10).text is not None
        shown = show('"' + "x" * 499 + '"', most=10)
        assert (shown.text, shown.size) == (None, 501)
        assert "Too long to be redacted" in shown.note

    @pytest.mark.parametrize(
        ("function", "state_json", "name"),
        [
            (fail, '"hunter2"', "ZeroDivisionError"),
            (make_unstorable, '"hunter2"', "TypeError"),
            (keep_all, "hunter2", "JSONDecodeError"),
            (keep_all, "[" * 400, "JSONDecodeError"),
        ],
    )
    def test_nothing_gets_past_it_when_it_fails(self, show, settings, function, state_json, name):
        redact_by(settings, function)
        shown = show(state_json)
        assert shown.text is None
        assert shown.note == f"Not shown: it could not be redacted ({name})."

    def test_what_holds_no_secret_is_not_redacted(self, show, settings):
        redact_by(settings, fail)
        assert show('"fact"', plain=Q(status="pending")).text == '"fact"'

    def test_a_missing_column_stays_missing(self, settings):
        redact_by(settings, fail)
        run = RunFactory()
        wanted = read_json("result_json")
        values = Run.objects.filter(pk=run.pk).annotate(**wanted).values(*wanted).get()
        assert shown_json(values, "result_json").size is None
