"""What the database says by itself, and what becomes of it when it says nothing more."""

import logging
import threading

import pytest
from django.db import connection

from django_runstore.db import run_notices
from django_runstore.db.boundary import write
from django_runstore.services import RunStore
from django_runstore.supervision.wake_ups import WakeUps
from tests.supervision.processes import until
from tests.supervision.proxy import Proxy

pytestmark = pytest.mark.django_db(transaction=True)

postgres = pytest.mark.postgres("sends notices")
QUICKLY = {"probe_interval_s": 0.1, "answer_within_s": 1.0}


@pytest.fixture
def listen():
    """Start to listen; every ``wake`` is counted."""
    started = []

    def start(queues=None, **options):
        woken = threading.Semaphore(0)
        wake_ups = WakeUps("default", queues, woken.release, **(QUICKLY | options))
        wake_ups.start()
        started.append(wake_ups)
        return wake_ups, woken

    yield start
    for wake_ups in started:
        wake_ups.stop()
        assert not wake_ups._thread.is_alive()


@pytest.fixture
def proxy(monkeypatch):
    # The test's own connection goes past it.
    connection.ensure_connection()
    found = connection.get_connection_params()
    proxy = Proxy(found["host"], found.get("port", 5432))
    options = connection.settings_dict["OPTIONS"] | {"host": str(proxy.folder)}
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", options)
    yield proxy
    proxy.close()


def hears(wake_ups):
    """Wait until it does, and drop what it was told to look at because of that."""
    until(lambda: wake_ups.hears)
    until(wake_ups.take_claimable)
    until(wake_ups.take_cancel_requested)


@postgres
def test_what_becomes_claimable_and_what_is_to_be_cancelled_wakes(listen):
    wake_ups, woken = listen()
    hears(wake_ups)
    RunStore().create("run", "{}")
    assert woken.acquire(timeout=30)
    until(wake_ups.take_claimable)
    assert not wake_ups.take_claimable()
    assert not wake_ups.take_cancel_requested()
    RunStore().request_cancel("run")
    until(wake_ups.take_cancel_requested)
    assert not wake_ups.take_claimable()


@postgres
def test_other_queues_and_other_probes_are_not_heard(listen):
    wake_ups, _ = listen(queues=["mail"])
    hears(wake_ups)
    hears(listen()[0])
    RunStore().create("other", "{}", queue="other")
    RunStore().create("mail", "{}", queue="mail")
    until(wake_ups.take_claimable)
    RunStore().create("more", "{}", queue="other")
    RunStore().request_cancel("more")
    until(wake_ups.take_cancel_requested)
    assert not wake_ups.take_claimable()


@postgres
def test_once_it_listens_it_has_everything_looked_at(listen):
    # Stored between the last poll and the beginning of the session.
    RunStore().create("run", "{}")
    wake_ups, woken = listen()
    assert woken.acquire(timeout=30)
    until(wake_ups.take_claimable)
    assert wake_ups.hears


@pytest.mark.parametrize("having_sent", [b"LISTEN", b""])
@postgres
def test_a_peer_that_is_gone_without_a_word_is_noticed_and_replaced(
    listen, proxy, caplog, having_sent
):
    caplog.set_level(logging.INFO, "django_runstore.db")
    wake_ups, _ = listen()
    hears(wake_ups)
    proxy.kill_silently(having_sent=having_sent, new_ones=True)
    until(lambda: wake_ups.hears is False)
    proxy.heal()
    hears(wake_ups)
    RunStore().create("run", "{}")
    until(wake_ups.take_claimable)
    # Once each, however many attempts it took.
    assert [record.getMessage() for record in caplog.records] == [
        "notices do not arrive; polling only",
        "notices are back",
    ]


@postgres
def test_a_pooler_that_loses_the_listen_is_noticed_and_replaced(listen, caplog):
    wake_ups, _ = listen()
    hears(wake_ups)
    listening = wake_ups._listener._session.info.backend_pid
    # What happens to a session that is handed to another client.
    wake_ups._listener._session.pgconn.send_query(b"UNLISTEN *")
    until(lambda: "notices do not arrive; polling only" in caplog.messages)
    hears(wake_ups)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [listening])
        assert cursor.fetchone() == (0,)


@postgres
def test_a_session_that_the_server_ends_is_replaced(listen, caplog):
    wake_ups, _ = listen()
    hears(wake_ups)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(%s, 30000)",
            [wake_ups._listener._session.info.backend_pid],
        )
    until(lambda: "notices do not arrive; polling only" in caplog.messages)
    hears(wake_ups)


def sessions():
    """What listens or probes in this database, by its last statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT query FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() "
            "AND (query LIKE 'LISTEN %%' OR query LIKE '%%pg_notify($1%%')"
        )
        return cursor.fetchall()


@postgres
def test_probes_reach_nobody_else_and_leave_no_session_behind(listen):
    wake_ups, _ = listen()
    hears(wake_ups)
    until(lambda: wake_ups._listener._probe is None)
    assert sessions()
    wake_ups.stop()
    until(lambda: sessions() == [])


@postgres
def test_where_notices_are_off_nothing_is_listened_for(settings, listen):
    settings.RUNSTORE = {"NOTICES": False}
    wake_ups, _ = listen()
    assert not wake_ups._thread.is_alive()
    assert wake_ups.hears is None


@pytest.mark.sqlite("sends no notices")
def test_where_the_database_has_no_notices_nothing_is_listened_for(listen):
    wake_ups, _ = listen()
    assert not wake_ups._thread.is_alive()
    assert wake_ups.hears is None
    write("default", lambda: run_notices.announce_claimable("default", ["mail"]))
    assert not wake_ups.take_claimable()


def test_what_breaks_in_the_thread_ends_nothing_else(monkeypatch, caplog):
    monkeypatch.setattr("django_runstore.supervision.wake_ups.sends_notices", lambda _: True)
    wake_ups = WakeUps("default", None, lambda: None)

    def broken():
        raise ValueError("secret")

    monkeypatch.setattr(wake_ups._listener, "turn", broken)
    wake_ups.start()
    until(lambda: wake_ups.hears is False)
    wake_ups.stop()
    assert caplog.messages == ["listening for notices broke: ValueError"]


def test_stopping_closes_what_it_waits_for():
    wake_ups = WakeUps("default", None, lambda: None)
    wake_ups.stop()
    assert wake_ups._reading.fileno() == -1
    assert wake_ups._writing.fileno() == -1
