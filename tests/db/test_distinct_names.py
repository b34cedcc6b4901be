import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore.db.distinct_names import Scan, distinct_names
from django_runstore.testing.factories import RunFactory

pytestmark = pytest.mark.django_db

QUEUES = Scan("queue", "status IN ('pending', 'suspended')")
HANDLERS = Scan("handler", "status IN ('completed', 'failed', 'cancelled')")


def test_each_name_is_listed_once_in_order():
    for queue in ("b", "a", "b", "c", "a"):
        RunFactory(queue=queue)
    assert distinct_names("default", [QUEUES], 10) == [["a", "b", "c"]]


def test_rows_outside_the_condition_are_left_out():
    RunFactory(queue="waiting", handler="x")
    RunFactory(queue="done", handler="y", completed=True)
    assert distinct_names("default", [QUEUES, HANDLERS], 10) == [["waiting"], ["y"]]


def test_several_scans_are_one_statement():
    with CaptureQueriesContext(connection) as queries:
        distinct_names("default", [QUEUES, HANDLERS, QUEUES], 10)
    assert len(queries) == 1


@pytest.mark.parametrize(("most", "expected"), [(1, ["a"]), (2, ["a", "b"]), (3, ["a", "b", "c"])])
def test_no_more_than_were_asked_for_are_listed(most, expected):
    for queue in "cab":
        RunFactory(queue=queue)
    assert distinct_names("default", [QUEUES], most) == [expected]


def test_an_empty_table_has_no_names():
    assert distinct_names("default", [QUEUES, HANDLERS], 10) == [[], []]


def test_the_empty_name_is_one():
    RunFactory.raw(handler="", status="failed")
    RunFactory.raw(handler="h", status="failed")
    assert distinct_names("default", [HANDLERS], 10) == [["", "h"]]
