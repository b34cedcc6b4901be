"""Limits of maintenance: they hold for the transaction, and for nothing after it."""

import pytest
from django.db import OperationalError, connection, transaction

from django_runstore.db.lock_wait import STATEMENT_PER_LOCK_WAIT, limit_statements

SETTINGS = ("lock_timeout", "statement_timeout")


def limits():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting(name) FROM unnest(%s::text[]) AS name", [list(SETTINGS)]
        )
        return [limit for (limit,) in cursor.fetchall()]


@pytest.mark.postgres("has limits per transaction")
@pytest.mark.django_db(transaction=True)
def test_the_limits_end_with_the_transaction():
    before = limits()
    with transaction.atomic():
        limit_statements("default", 250)
        assert limits() == ["250ms", f"{250 * STATEMENT_PER_LOCK_WAIT}ms"]
    assert limits() == before


@pytest.mark.postgres("has limits per transaction")
@pytest.mark.django_db(transaction=True)
def test_a_statement_that_hangs_is_ended():
    def hang():
        with transaction.atomic(), connection.cursor() as cursor:
            limit_statements("default", 10)
            cursor.execute("SELECT pg_sleep(60)")

    with pytest.raises(OperationalError, match="statement timeout"):
        hang()


@pytest.mark.sqlite("has a busy timeout per connection instead")
@pytest.mark.django_db
def test_nothing_is_asked_where_there_are_no_such_limits(django_assert_num_queries):
    with django_assert_num_queries(0):
        limit_statements("default", 10)
