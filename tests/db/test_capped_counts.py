import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_runstore.db.capped_counts import capped_counts
from django_runstore.models import Run
from django_runstore.testing.factories import RunFactory

pytestmark = pytest.mark.django_db


def test_each_query_is_counted_under_its_name_in_one_statement():
    RunFactory.create_batch(2, queue="a")
    RunFactory(queue="b")
    with CaptureQueriesContext(connection) as queries:
        counts = capped_counts(
            "default",
            {"a": Run.objects.filter(queue="a"), "all": Run.objects.order_by("pk")},
            10,
        )
    assert counts == {"a": 2, "all": 3}
    assert len(queries) == 1


@pytest.mark.parametrize(("most", "expected"), [(1, 1), (2, 2), (3, 3), (4, 3)])
def test_counting_ends_at_the_most(most, expected):
    RunFactory.create_batch(3)
    assert capped_counts("default", {"all": Run.objects.all()}, most) == {"all": expected}


def test_what_can_hold_nothing_counts_nothing():
    RunFactory()
    counts = capped_counts("default", {"none": Run.objects.none(), "all": Run.objects.all()}, 9)
    assert counts == {"none": 0, "all": 1}


def test_no_query_at_all_asks_nothing():
    with CaptureQueriesContext(connection) as queries:
        assert capped_counts("default", {"none": Run.objects.none()}, 9) == {"none": 0}
    assert len(queries) == 0
