# ruff: noqa: T201 - printing is what is tested
"""What handlers print, told with the run that printed it."""

import io
import logging
import sys

import pytest

from django_runstore.supervision.handler_output import LONGEST_LINE, captured, output

FACTS = {"run_id": "run-7", "fence": 3, "handler": "report"}


@pytest.fixture
def records():
    """What the project's handler of the logger is given."""
    found = []

    class Keep(logging.Handler):
        def emit(self, record):
            found.append(record)

    handler, level = Keep(), output.level
    output.addHandler(handler)
    output.setLevel(logging.INFO)
    output.propagate = False
    yield found
    output.removeHandler(handler)
    output.setLevel(level)
    output.propagate = True


@pytest.fixture
def nobody_listens(monkeypatch):
    monkeypatch.setattr(output, "hasHandlers", lambda: False)


def lines(records):
    return [(record.getMessage(), record.stream) for record in records]


def test_each_line_is_a_record_with_the_run(records):
    with captured(FACTS):
        print("one\ntwo")
        print("three", file=sys.stderr)
    assert lines(records) == [("one", "stdout"), ("two", "stdout"), ("three", "stderr")]
    record = records[0]
    assert (record.run_id, record.fence, record.handler, record.levelname) == (
        "run-7",
        3,
        "report",
        "INFO",
    )


def test_a_line_is_put_together_from_what_is_written_of_it(records):
    with captured(FACTS):
        print("a", end="")
        sys.stdout.flush()
        print("b", end="\r\n")
        print("the end", end="")
    assert lines(records) == [("ab", "stdout"), ("the end", "stdout")]


def test_a_line_without_an_end_is_passed_on_in_pieces(records):
    with captured(FACTS):
        sys.stdout.write("x" * (2 * LONGEST_LINE + 1))
    assert [len(text) for text, _ in lines(records)] == [LONGEST_LINE, LONGEST_LINE, 1]


def test_a_percent_sign_is_no_placeholder(records):
    with captured(FACTS):
        print("100 %s")
    assert lines(records) == [("100 %s", "stdout")]


@pytest.mark.usefixtures("nobody_listens")
def test_where_nobody_listens_it_goes_where_it_would_have_gone_with_the_run_before_it(capsys):
    with captured({**FACTS, "run_id": "run\n7"}):
        print("hello")
        print("oh", file=sys.stderr)
    assert capsys.readouterr() == ("run run\\n7: hello\n", "run run\\n7: oh\n")


def test_afterwards_the_streams_are_what_they_were():
    before = (sys.stdout, sys.stderr)
    with captured(FACTS):
        sys.stdout = io.StringIO()
    assert (sys.stdout, sys.stderr) == before


def test_they_are_also_after_an_exception():
    before = (sys.stdout, sys.stderr)
    with pytest.raises(LookupError), captured(FACTS):
        raise LookupError
    assert (sys.stdout, sys.stderr) == before


def test_a_handler_that_closes_a_stream_closes_nothing(records):
    with captured(FACTS):
        sys.stdout.close()
        print("still here")
    assert lines(records) == [("still here", "stdout")]
    with captured(FACTS):
        print("and next time")
    assert lines(records)[1:] == [("and next time", "stdout")]


@pytest.mark.usefixtures("nobody_listens")
def test_a_stream_that_cannot_be_written_to_fails_nothing(monkeypatch):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdout", closed)
    with captured(FACTS):
        print("into the void", flush=True)
        assert sys.stdout is not closed


def test_a_logging_handler_that_prints_does_not_begin_again(capsys, records):
    class Printing(logging.Handler):
        def emit(self, record):
            print("seen:", record.getMessage())

    handler = Printing()
    output.addHandler(handler)
    try:
        with captured(FACTS):
            print("once")
    finally:
        output.removeHandler(handler)
    assert lines(records) == [("once", "stdout")]
    assert capsys.readouterr().out == "seen: once\n"


def test_a_process_without_standard_streams_goes_on_without(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with captured(FACTS):
        print("to nobody")
        assert sys.stdout is None
