"""The server's own time, read without touching the caller's transaction."""

import threading
import time

import pytest
from django.db import DatabaseError, connection, connections, transaction

from django_runstore import server_time
from django_runstore.clocks import DatabaseClock, boottime_ms
from django_runstore.server_time import has_server_time, read_server_time

needs_server = pytest.mark.postgres("SQLite has no time of its own")


def read() -> float:
    return read_server_time("default", boottime_ms).server_ms


@pytest.mark.sqlite("the other one keeps time itself")
class TestSqlite:
    def test_has_no_server_time(self):
        assert not has_server_time("default")

    def test_database_clock_tells_the_system_time(self):
        before = time.time() * 1000
        assert before <= DatabaseClock().now_ms() <= time.time() * 1000


@needs_server
@pytest.mark.django_db(transaction=True)
class TestOutsideTransactions:
    def test_is_the_time_of_the_server(self):
        reading = read_server_time("default", boottime_ms)
        # One machine: the server's clock is this one, and the question takes a moment.
        assert abs(reading.server_ms - time.time() * 1000) < 5_000
        assert reading.before_ms <= reading.midpoint_ms <= reading.after_ms

    def test_uses_the_open_connection(self, django_assert_num_queries):
        connection.ensure_connection()
        with django_assert_num_queries(1):
            read()

    def test_leaves_no_connection_behind_in_a_thread_that_had_none(self):
        open_after: list[bool] = []

        def work() -> None:
            DatabaseClock().now_ms()
            open_after.append(connections["default"].connection is not None)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert open_after == [False]


@needs_server
@pytest.mark.django_db(transaction=True)
class TestInsideTransactions:
    def test_runs_on_while_the_transaction_stands_still(self):
        with transaction.atomic():
            first = read()
            assert read() > first

    def test_asks_on_another_connection(self, django_assert_num_queries):
        with transaction.atomic(), django_assert_num_queries(0):
            read()

    def test_does_not_begin_the_callers_transaction(self):
        with transaction.atomic():
            read()
            with connection.cursor() as cursor:  # allowed only before the first query
                cursor.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")

    def test_works_in_a_transaction_that_postgresql_has_aborted(self):
        with transaction.atomic():
            with pytest.raises(DatabaseError), connection.cursor() as cursor:
                cursor.execute("SELECT 1 / 0")
            assert read() > 0
            transaction.set_rollback(True)

    def test_works_in_a_block_that_django_has_marked_for_rollback(self):
        with transaction.atomic():
            transaction.set_rollback(True)
            assert read() > 0

    def test_works_when_the_callers_connection_was_lost(self):
        with transaction.atomic():
            connection.close()
            assert read() > 0

    def test_works_with_autocommit_off(self, django_assert_num_queries):
        connection.set_autocommit(False)
        try:
            with django_assert_num_queries(0):
                read()
        finally:
            connection.rollback()
            connection.set_autocommit(True)

    def test_failure_leaves_the_callers_transaction_usable(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(server_time, "_SERVER_TIME_SQL", {"postgresql": "SELECT 1 / 0"})
        with transaction.atomic():
            with pytest.raises(DatabaseError):
                read()
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
                assert cursor.fetchone() == (1,)

    def test_second_connection_is_closed(self):
        with transaction.atomic():
            before = sessions()
            read()
            deadline = time.monotonic() + 20
            while sessions() > before:  # a backend takes a moment to go
                assert time.monotonic() < deadline
                time.sleep(0.01)


def sessions() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        (count,) = cursor.fetchone()
    return int(count)
