"""Which changes of runs tell supervisors, and which do not."""

import psycopg
import pytest
from django.db import connection, transaction
from psycopg import sql

from django_runstore.db.listening import open_session
from django_runstore.db.run_notices import CANCEL_REQUESTED, CHANNEL, claimable_queue
from django_runstore.owners import OwnerId
from django_runstore.services import RunStore
from django_runstore.snapshots import OwnedTransition, Waiting
from django_runstore.testing import FakeClock

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.postgres("sends notices"),
]

OWNER = OwnerId("host", 1, "u-0123456789abcdef")
NOW = 1_000_000
LATER = NOW + 1


@pytest.fixture
def heard():
    """What was told since the last time it was asked."""
    session = open_session("default")
    session.execute(sql.SQL("LISTEN {}").format(sql.Identifier(CHANNEL)))

    def take():
        # What was committed before this is delivered with its answer.
        session.execute("SELECT 1")
        notices = []
        while notice := session.pgconn.notifies():
            notices.append(notice.extra.decode())
        return notices + [each.payload for each in session.notifies(timeout=0)]

    yield take
    session.close()


@pytest.fixture
def store():
    return RunStore(clock=FakeClock(NOW))


def claimed(store, *run_ids):
    for run_id in run_ids:
        store.create(run_id, "{}", queue=f"of {run_id}")
    return {each.run.run_id: each.fence for each in store.claim_many(OWNER, 10)}


def test_a_run_that_can_be_claimed_at_once_is_told_with_its_queue(store, heard):
    store.create("now", "{}", queue="mail")
    store.create("due", "{}", queue="old", available_at_ms=NOW)
    store.create("later", "{}", available_at_ms=LATER)
    assert [claimable_queue(payload) for payload in heard()] == ["mail", "old"]


def test_what_is_rolled_back_is_not_told_and_equal_notices_come_once(store, heard):
    with transaction.atomic():
        store.create("a", "{}")
        store.create("b", "{}")
        with transaction.atomic():
            store.create("c", "{}", queue="other")
            transaction.set_rollback(True)
        assert heard() == []
    assert heard() == ["claim:default"]


def test_what_is_put_back_for_now_is_told_and_what_is_put_back_for_later_is_not(store, heard):
    fences = claimed(store, "a", "b", "c", "d")
    heard()
    store.transition_owned("a", OWNER, "suspended", fence=fences["a"])
    assert heard() == ["claim:of a"]
    store.transition_many(
        OWNER,
        [
            OwnedTransition("b", fences["b"], "suspended", available_at_ms=NOW),
            OwnedTransition("c", fences["c"], "suspended", available_at_ms=LATER),
            OwnedTransition("d", fences["d"], "completed"),
        ],
    )
    assert heard() == ["claim:of b"]


def test_a_settled_run_of_a_limited_key_makes_room_for_another(store, heard):
    store.create("a", "{}", queue="mail", concurrency_key="customer")
    (run,) = store.claim_many(OWNER, 1)
    heard()
    store.transition_owned("a", OWNER, "running", "1", fence=run.fence)
    assert heard() == []
    store.transition_owned("a", OWNER, "completed", fence=run.fence)
    assert heard() == ["claim:mail"]


def test_a_wake_is_told_and_nothing_else_about_a_wait(store, heard):
    fences = claimed(store, "a")
    heard()
    store.park("a", Waiting("timer"), OWNER, fence=fences["a"])
    store.transition_owned("a", OWNER, "suspended", fence=fences["a"], available_at_ms=None)
    assert heard() == []
    store.wake("a")
    assert heard() == ["claim:of a"]
    store.wake("a")
    assert heard() == []


def test_a_cancel_request_is_told_without_the_run_and_once(store, heard):
    store.create("a", "{}")
    heard()
    store.request_cancel("a")
    assert heard() == [CANCEL_REQUESTED]
    store.request_cancel("a")
    assert heard() == []
    assert claimable_queue(CANCEL_REQUESTED) is None


def test_beats_and_claims_tell_nobody(store, heard):
    fences = claimed(store, "a")
    heard()
    store.heartbeat("a", OWNER)
    store.heartbeat_many(OWNER, list(fences.items()))
    assert heard() == []


def test_the_longest_queue_fits_into_a_notice(store, heard):
    name = "\N{SNOWMAN}" * 170  # 510 of 512 bytes
    store.create("a", "{}", queue=name)
    assert heard() == [f"claim:{name}"]


def test_nothing_is_sent_where_notices_are_off(store, heard, settings):
    settings.RUNSTORE = {"NOTICES": False}
    store.create("a", "{}")
    store.request_cancel("a")
    assert heard() == []


def test_the_session_is_none_of_djangos():
    session = open_session("default")
    assert type(session) is psycopg.Connection
    assert session is not connection.connection
    session.close()
