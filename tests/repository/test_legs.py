"""What dev.py reads out of a test run and says about it."""

from collections import Counter

import pytest

from devtools.legs import UNAVAILABLE_STATUS, LegResult, read_report
from devtools.summary import closing_line, describe, succeeded
from django_runstore.testing import postgres

REPORT = """\
<?xml version="1.0" encoding="utf-8"?>
<testsuites name="pytest tests">
  <testsuite name="pytest" errors="1" failures="1" skipped="3" tests="6" time="2.50">
    <testcase classname="a" name="one" time="0.1"/>
    <testcase classname="a" name="two"><failure message="assert 0">...</failure></testcase>
    <testcase classname="a" name="three"><skipped type="pytest.skip" message="needs SQLite"/></testcase>
    <testcase classname="a" name="four"><skipped type="pytest.skip" message="needs SQLite"/></testcase>
    <testcase classname="a" name="five"><skipped type="pytest.xfail" message="known"/></testcase>
    <testcase classname="a" name="six"><error message="setup">...</error></testcase>
  </testsuite>
</testsuites>
"""  # noqa: E501 - as pytest writes it

PASSED = LegResult("SQLite", 0, Counter(passed=10, skipped=2), Counter({"needs X": 2}), 1.5)
FAILED = LegResult("PostgreSQL", 1, Counter(passed=9, failed=3), seconds=2.0)
UNTESTED = LegResult("PostgreSQL", UNAVAILABLE_STATUS)


def test_every_outcome_is_counted_once():
    result = read_report("SQLite", 1, REPORT)

    assert result.counts == {"passed": 1, "failed": 1, "skipped": 2, "xfailed": 1, "errors": 1}


def test_a_reason_is_counted_for_every_test_that_it_skipped():
    assert read_report("SQLite", 1, REPORT).skip_reasons == {"needs SQLite": 2}


def test_the_summary_states_each_leg_and_the_reasons_of_its_skips():
    text = describe([PASSED, FAILED], "Python 3.13")

    assert "SQLite      10 passed, 0 failed, 2 skipped in 1.5 s" in text
    assert "2 skipped: needs X" in text
    assert "PostgreSQL  9 passed, 3 failed, 0 skipped in 2.0 s" in text


def test_a_database_that_was_not_tested_is_announced_loudly():
    assert "!! POSTGRESQL WAS NOT TESTED" in describe([PASSED, UNTESTED], "")


def test_the_last_line_is_in_the_words_of_pytest():
    line = closing_line([PASSED, FAILED])

    assert line.strip("= ") == "3 failed, 19 passed, 2 skipped in 3.50s"
    assert line.startswith("===")


def test_a_leg_that_was_killed_does_not_look_like_one_that_passed():
    killed = LegResult("PostgreSQL", -15)

    assert closing_line([PASSED, killed]).strip("= ").startswith("10 passed, 2 skipped, 1 error ")


def test_no_test_is_said_in_the_words_of_pytest():
    assert closing_line([UNTESTED]).strip("= ") == "no tests ran in 0.00s"


@pytest.mark.parametrize(
    ("results", "strict", "verdict"),
    [
        ([PASSED], True, True),
        ([PASSED, FAILED], False, False),
        ([PASSED, UNTESTED], False, True),
        ([PASSED, UNTESTED], True, False),
        ([UNTESTED], False, False),
        ([LegResult("SQLite", 5)], False, False),
    ],
)
def test_the_verdict_is_good_when_all_that_ran_passed(results, strict, verdict):
    assert succeeded(results, strict=strict) is verdict


def test_both_sides_agree_on_the_status_for_no_postgresql():
    assert UNAVAILABLE_STATUS == postgres.UNAVAILABLE_STATUS
